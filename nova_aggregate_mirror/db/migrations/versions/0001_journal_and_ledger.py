# SPDX-License-Identifier: Apache-2.0
"""The journal of what is dirty, and the ledger of aggregate UUIDs."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None


def upgrade() -> None:
    op.create_table(
        'dirty',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'),
                  primary_key=True, autoincrement=True),
        sa.Column('host', sa.String(255)),
        sa.Column('nodes', sa.Text().with_variant(
            mysql.MEDIUMTEXT(), 'mysql').with_variant(
            mysql.MEDIUMTEXT(), 'mariadb'), nullable=False),
        sa.Column('aggregate_uuid', sa.String(36)),
        sa.Column('request_id', sa.String(255), nullable=False),
        sa.Column('owner', sa.String(255), nullable=False),
        sa.Column('created_at', sa.Float(53), nullable=False),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('last_error', sa.Text(), nullable=False),
        sqlite_autoincrement=True)
    op.create_index('ix_dirty_host', 'dirty', ['host'])
    op.create_index('ix_dirty_aggregate_uuid', 'dirty', ['aggregate_uuid'])
    op.create_table(
        'ledger',
        sa.Column('aggregate_uuid', sa.String(36), primary_key=True),
        sa.Column('created_at', sa.Float(53), nullable=False))
