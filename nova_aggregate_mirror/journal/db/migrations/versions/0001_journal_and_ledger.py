# SPDX-License-Identifier: Apache-2.0
"""The journal, ledger, lease, nova-api processes and full syncs."""

from alembic import op

from nova_aggregate_mirror.journal.db import models

revision = '0001'
down_revision = None


def upgrade() -> None:
    # Those that an interrupted migration has created stay. A later migration
    # finds its change made in tables that are created here.
    models.metadata.create_all(op.get_bind())
