# SPDX-License-Identifier: Apache-2.0
"""Tables of the journal, as of the newest migration."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

metadata = sa.MetaData()

# TEXT of MySQL holds 64 KB, the UUIDs of only 1700 ironic nodes.
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
"""One row per add-host or remove-host; see ``journal.Row``.

``nodes`` are comma-separated. Times are in seconds since the epoch, and for
display only.
"""

ledger = sa.Table(
    'ledger', metadata,
    sa.Column('aggregate_uuid', sa.String(36), primary_key=True),
    sa.Column('created_at', sa.Float(53), nullable=False),
    sa.Column('deleted_at', sa.Float(53)),
    sa.Column('absent_since', sa.Float(53)))
"""Every UUID of a current or former nova host aggregate.

``deleted_at`` marks a UUID that a user deleted. ``absent_since`` is the time
of the first full sync in the current uninterrupted absence from nova.
"""

cells = sa.Table(
    'cells', metadata,
    sa.Column('cell_uuid', sa.String(36), primary_key=True))
"""The cells, except cell0, of the nova that the journal belongs to."""

lease = sa.Table(
    'lease', metadata,
    sa.Column('name', sa.String(64), primary_key=True),
    sa.Column('holder', sa.String(255), nullable=False),
    sa.Column('renewals', sa.BigInteger(), nullable=False),
    sa.Column('seconds', sa.Float(53), nullable=False),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('taken_at', sa.Float(53), nullable=False))
"""The leases of agents, see ``lease``, and what ``binding.lock`` locks."""

processes = sa.Table(
    'processes', metadata,
    sa.Column('id', sa.String(36), primary_key=True),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('version', sa.String(64), nullable=False),
    sa.Column('mode', sa.String(16), nullable=False),
    sa.Column('seen_at', sa.Float(53), nullable=False))
"""Nova-api processes with the hook, for display: see ``api_processes``."""

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
    sa.Column('compared', sa.Boolean(), nullable=False),
    sa.Column('mode', sa.String(16), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('removals', LongText, nullable=False),
    sqlite_autoincrement=True)
"""The history of full syncs, newest last; see ``full_syncs.Entry``."""


def insert_new(connection: Any, table: sa.Table) -> Any:
    """Build an INSERT that ignores existing rows.

    A savepoint is no alternative: a server that rolls back a transaction for
    a deadlock drops the savepoint, which hides the deadlock from the caller.
    """
    if connection.dialect.name in ('mysql', 'mariadb'):
        return sa.insert(table).prefix_with('IGNORE')
    module = sqlite if connection.dialect.name == 'sqlite' else postgresql
    return module.insert(table).on_conflict_do_nothing()
