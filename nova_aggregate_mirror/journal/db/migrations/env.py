# SPDX-License-Identifier: Apache-2.0
"""Alembic environment script; uses the connection from ``db.migration``."""

from alembic import context

context.configure(connection=context.config.attributes['connection'])
with context.begin_transaction():
    context.run_migrations()
