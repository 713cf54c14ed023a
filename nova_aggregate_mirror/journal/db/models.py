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
    sa.Column('id', sa.String(36), primary_key=True),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('nodes', LongText, nullable=False),
    sa.Column('request_id', sa.String(255), nullable=False),
    sa.Column('running', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('last_error', sa.Text(), nullable=False),
    sa.Column('mirrored_at', sa.Float(53)))
"""One row for each add-host or remove-host that placement may not show yet.

``id`` is a UUID of the process that writes the row. ``nodes`` are the UUIDs of
the host's compute nodes, joined with commas. ``running`` is set until the
operation closes the row or hands it over. ``mirrored_at`` is the last time
that the host was found or made right, and empty after a failure. Times are in
seconds since the epoch, and for display only.
"""

ledger = sa.Table(
    'ledger', metadata,
    sa.Column('aggregate_uuid', sa.String(36), primary_key=True),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('deleted_at', sa.Float(53)),
    sa.Column('absent_since', sa.Float(53)))
"""Every UUID that is, or once was, a nova host aggregate's.

``deleted_at`` marks a UUID that a user deletes, ``absent_since`` is the first
of the full syncs without interruption that did not find it in nova.
"""

cells = sa.Table(
    'cells', metadata,
    sa.Column('cell_uuid', sa.String(36), primary_key=True))
"""The cell mappings, without cell0, of the nova that the journal belongs to.
"""

lease = sa.Table(
    'lease', metadata,
    sa.Column('name', sa.String(64), primary_key=True),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('renewals', sa.BigInteger(), nullable=False),
    sa.Column('seconds', sa.Float(53), nullable=False))
"""Which agent leads; and the rows that ``queries.lock`` locks.

Each renewal counts one up. Clocks are not compared: an agent that has watched
a lease stay as it is for its ``seconds`` takes it.
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
    sa.Column('removals', LongText, nullable=False),
    sqlite_autoincrement=True)
"""What full syncs did, newest last; see ``history.Entry``."""
