# SPDX-License-Identifier: Apache-2.0
"""Alembic environment script; uses the connection from ``db.models``."""

from alembic import context

from nova_aggregate_mirror.journal.db import models

context.configure(connection=context.config.attributes['connection'],
                  target_metadata=models.metadata)
with context.begin_transaction():
    context.run_migrations()
