# SPDX-License-Identifier: Apache-2.0
"""The journal, ledger, lease, nova-api processes and full syncs."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None

LongText = sa.Text().with_variant(
    mysql.MEDIUMTEXT(), 'mysql').with_variant(mysql.MEDIUMTEXT(), 'mariadb')

tables = sa.MetaData()

sa.Table(
    'dirty', tables,
    sa.Column('id', sa.String(36), primary_key=True),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('nodes', LongText, nullable=False),
    sa.Column('request_id', sa.String(255), nullable=False),
    sa.Column('running', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('last_error', sa.Text(), nullable=False),
    sa.Column('mirrored_at', sa.Float(53)))
sa.Table(
    'ledger', tables,
    sa.Column('aggregate_uuid', sa.String(36), primary_key=True),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('deleted_at', sa.Float(53)),
    sa.Column('absent_since', sa.Float(53)))
sa.Table(
    'cells', tables,
    sa.Column('cell_uuid', sa.String(36), primary_key=True))
sa.Table(
    'lease', tables,
    sa.Column('name', sa.String(64), primary_key=True),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('renewals', sa.BigInteger(), nullable=False),
    sa.Column('seconds', sa.Float(53), nullable=False),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('taken_at', sa.Float(53), nullable=False))
sa.Table(
    'processes', tables,
    sa.Column('id', sa.String(36), primary_key=True),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('version', sa.String(64), nullable=False),
    sa.Column('mode', sa.String(16), nullable=False),
    sa.Column('seen_at', sa.Float(53), nullable=False))
sa.Table(
    'syncs', tables,
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
    sa.Column('compared', sa.Boolean(), nullable=False),
    sa.Column('mode', sa.String(16), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('removals', LongText, nullable=False),
    sqlite_autoincrement=True)


def upgrade() -> None:
    # Those that an interrupted migration has created stay.
    tables.create_all(op.get_bind())
