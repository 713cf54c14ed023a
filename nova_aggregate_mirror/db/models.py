# SPDX-License-Identifier: Apache-2.0
"""The tables of the journal, as the newest migration leaves them."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

metadata = sa.MetaData()

# 64 KB, MySQL's TEXT, holds the UUIDs of 1700 ironic nodes: not enough.
LongText = sa.Text().with_variant(
    mysql.MEDIUMTEXT(), 'mysql').with_variant(mysql.MEDIUMTEXT(), 'mariadb')
RowId = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')

dirty = sa.Table(
    'dirty', metadata,
    sa.Column('id', RowId, primary_key=True, autoincrement=True),
    sa.Column('host', sa.String(255), index=True),
    sa.Column('nodes', LongText, nullable=False),
    sa.Column('aggregate_uuid', sa.String(36), index=True),
    sa.Column('request_id', sa.String(255), nullable=False),
    sa.Column('owner', sa.String(255), nullable=False),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('last_error', sa.Text(), nullable=False),
    sa.Column('next_attempt_at', sa.Float(53), nullable=False, index=True,
              server_default='0'),
    sa.Column('claimant', sa.String(255), nullable=False, server_default=''),
    sa.Column('claimed_until', sa.Float(53), nullable=False,
              server_default='0'),
    # An id that came back would let a late completion close a newer row.
    sqlite_autoincrement=True)
"""One row for each operation that placement may not show yet.

Either ``host`` and ``nodes`` (its compute node UUIDs, joined with commas) or
``aggregate_uuid`` (of an aggregate being deleted) is set. ``owner`` is empty
once the operation has ended without mirroring. ``claimant`` works on it and
has it for itself until ``claimed_until``: that saves work, and nothing depends
on it. Times are in seconds since the epoch.
"""

ledger = sa.Table(
    'ledger', metadata,
    sa.Column('aggregate_uuid', sa.String(36), primary_key=True),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('emptied_at', sa.Float(53)))
"""Every UUID that is, or once was, a nova host aggregate's.

``emptied_at`` is since when nova has no such aggregate and placement was found
empty of it.
"""

lease = sa.Table(
    'lease', metadata,
    sa.Column('name', sa.String(64), primary_key=True),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('renewals', sa.BigInteger(), nullable=False),
    sa.Column('seconds', sa.Float(53), nullable=False))
"""Who leads. Each renewal counts one up.

Nobody compares clocks: whoever has watched a lease stay as it is for its
``seconds`` takes it.
"""

syncs = sa.Table(
    'syncs', metadata,
    sa.Column('id', RowId, primary_key=True, autoincrement=True),
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
"""What full syncs did, newest last; see ``history.Entry``."""
