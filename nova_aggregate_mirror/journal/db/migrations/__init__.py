# SPDX-License-Identifier: Apache-2.0
"""Alembic environment of the journal's database."""
