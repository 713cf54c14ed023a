# SPDX-License-Identifier: Apache-2.0
"""The history of full syncs; nothing else reads or writes it."""

from alembic import op
import sqlalchemy as sa

revision = '0003'
down_revision = '0002'


def upgrade() -> None:
    # A table of its own: agents of the release before do not know it.
    op.create_table(
        'syncs',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'),
                  primary_key=True, autoincrement=True),
        sa.Column('command', sa.String(255), nullable=False),
        sa.Column('host', sa.String(255), nullable=False),
        sa.Column('started_at', sa.Float(53), nullable=False),
        sa.Column('ended_at', sa.Float(53), nullable=False),
        sa.Column('passes', sa.Integer(), nullable=False),
        sa.Column('seconds', sa.Float(53), nullable=False),
        sa.Column('added', sa.Integer(), nullable=False),
        sa.Column('removed', sa.Integer(), nullable=False),
        sa.Column('stale', sa.Integer(), nullable=False),
        sa.Column('failed', sa.Integer(), nullable=False),
        sa.Column('status', sa.Integer(), nullable=False),
        sa.Column('reason', sa.Text(), nullable=False),
        sqlite_autoincrement=True)
