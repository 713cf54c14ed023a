# SPDX-License-Identifier: Apache-2.0
"""The journal, ledger, lease, nova-api processes and full syncs."""

from alembic import op

from nova_aggregate_mirror.journal.db import models

revision = '0001'
down_revision = None


def upgrade() -> None:
    # While no migration follows, the models are its tables: the one that first
    # changes them copies them here. What an interrupted one has created stays.
    models.metadata.create_all(op.get_bind())
