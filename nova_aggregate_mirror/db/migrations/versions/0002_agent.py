# SPDX-License-Identifier: Apache-2.0
"""What agents need: claims, the next attempt, the lease, forgetting."""

from alembic import op
import sqlalchemy as sa

revision = '0002'
down_revision = '0001'


def upgrade() -> None:
    # Each has a default, because a nova-api of the release before may still
    # write rows.
    op.add_column('dirty', sa.Column(
        'next_attempt_at', sa.Float(53), nullable=False, server_default='0'))
    op.add_column('dirty', sa.Column(
        'claimant', sa.String(255), nullable=False, server_default=''))
    op.add_column('dirty', sa.Column(
        'claimed_until', sa.Float(53), nullable=False, server_default='0'))
    op.create_index('ix_dirty_next_attempt_at', 'dirty', ['next_attempt_at'])
    op.add_column('ledger', sa.Column('emptied_at', sa.Float(53)))
    op.create_table(
        'lease',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('holder', sa.String(255), nullable=False),
        sa.Column('renewals', sa.BigInteger(), nullable=False),
        sa.Column('seconds', sa.Float(53), nullable=False))
