# SPDX-License-Identifier: Apache-2.0
"""Tables of the journal: as of this release, and as a database has them."""

from collections import abc
import dataclasses
import pathlib
import shlex
import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines

metadata = sa.MetaData()
# TEXT of MySQL holds 64 KB, the UUIDs of only 1700 ironic nodes.
LongText = sa.Text().with_variant(
    mysql.MEDIUMTEXT(), 'mysql').with_variant(mysql.MEDIUMTEXT(), 'mariadb')
RowId = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
Name, Uuid, Text = sa.String(255), sa.String(36), sa.Text()
Flag, Count, Time = sa.Boolean(), sa.Integer(), sa.Float(53)


def _required(**types: Any) -> list[sa.Column[Any]]:
    """Return columns of these names and types, which are never NULL."""
    return [sa.Column(name, kind, nullable=False)
            for name, kind in types.items()]


dirty = sa.Table(
    'dirty', metadata, sa.Column('id', Uuid, primary_key=True),
    *_required(host=Name, nodes=LongText, request_id=Name, running=Flag,
               created_at=Time, attempts=Count, last_error=Text),
    sa.Column('mirrored_at', Time))
"""One row per add-host or remove-host; see ``journal.Row``. Commas separate
the nodes; times are in seconds since the epoch, and for display only."""
ledger = sa.Table(
    'ledger', metadata, sa.Column('aggregate_uuid', Uuid, primary_key=True),
    *_required(created_at=Time),
    sa.Column('deleted_at', Time), sa.Column('absent_since', Time))
"""Every UUID of a current or former nova host aggregate.

``deleted_at`` marks a UUID that a user deleted. ``absent_since`` is the time
of the first full sync in the current uninterrupted absence from nova.
"""
cells = sa.Table(
    'cells', metadata, sa.Column('cell_uuid', Uuid, primary_key=True))
"""The cells, except cell0, of the nova that the journal belongs to."""
lease = sa.Table(
    'lease', metadata, sa.Column('name', sa.String(64), primary_key=True),
    *_required(holder=Name, renewals=sa.BigInteger(), seconds=Time, host=Name,
               taken_at=Time))
"""The leases of agents, see ``lease``, and what ``binding.lock`` locks."""
processes = sa.Table(
    'processes', metadata, sa.Column('id', Uuid, primary_key=True),
    *_required(host=Name, version=sa.String(64), mode=sa.String(16),
               seen_at=Time))
"""Nova-api processes with the hook, for display: see ``rows.Presence``."""
syncs = sa.Table(
    'syncs', metadata,
    sa.Column('id', RowId, primary_key=True, autoincrement=True),
    *_required(command=Name, host=Name, started_at=Time, ended_at=Time,
               passes=Count, seconds=Time, added=Count, removed=Count,
               stale=Count, failed=Count, status=Count, compared=Flag,
               mode=sa.String(16), reason=Text, removals=LongText),
    sqlite_autoincrement=True)
"""The history of full syncs, newest last; see ``full_syncs.Entry``."""
VERSIONS = ('0001',)
"""Every migration, oldest first; nova-api does not load alembic for them."""
HEAD = VERSIONS[-1]
# Alembic's table: a database has one, for all programs that use it.
STAMP = 'alembic_version'
OWN = {STAMP, *metadata.tables}
ROWS = 'table ' + dirty.name
OPTION = '[aggregate_mirror_database] connection'
SYNC = 'run "%s"' % commands.DB_SYNC
# What only the ledger of another database knew is foreign from then on.
USE_ANOTHER = ('name %%s database in %s, %s, and restart nova-api and the '
               'agent' % (OPTION, SYNC))
USE_ANOTHER_FILE = 'name the journal\'s own file, or a new one, in ' + OPTION
INCOMPLETE = 'is not a complete journal of this release: the %s is missing'


def insert_new(connection: Any, table: sa.Table) -> Any:
    """Build an INSERT that ignores existing rows.

    A savepoint is no alternative: a server that rolls back a transaction for
    a deadlock drops the savepoint, which hides the deadlock from the caller.
    """
    if connection.dialect.name in ('mysql', 'mariadb'):
        return sa.insert(table).prefix_with('IGNORE')
    module = sqlite if connection.dialect.name == 'sqlite' else postgresql
    return module.insert(table).on_conflict_do_nothing()


@dataclasses.dataclass(frozen=True)
class Schema:
    """The tables of a database, and their version."""

    tables: frozenset[str] = frozenset()
    version: str | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether a migration is pending; a newer release's is not."""
        return self.version is None or self.version in VERSIONS[:-1]

    def __str__(self) -> str:
        if self.version is None:
            return 'incomplete tables' if self.tables else 'no tables'
        return 'tables of version %s' % self.version


def read_schema(connection: sa.engine.Connection) -> Schema:
    """Read the names of the tables, and their version.

    :raises WrongDatabase: when they are not those of a journal
    """
    inspector, version = sa.inspect(connection), None
    if inspector.has_table(STAMP):
        version = connection.scalar(sa.text(
            'SELECT version_num FROM ' + STAMP))
    # Read after the version, which a migration stores when it has all tables.
    tables = frozenset(name for name in inspector.get_table_names()
                       # SQLite's own, which older SQLAlchemy also lists.
                       if not name.startswith('sqlite_'))
    # Without a version, no migration has run, or one was interrupted.
    is_unfinished = not version and tables <= OWN
    if dirty.name not in tables and not is_unfinished:
        raise _wrong(connection, tables, ROWS)
    return Schema(tables, version)


def check_tables(connection: sa.engine.Connection) -> Schema:
    """Read the schema, and check that its tables have their columns.

    :raises WrongDatabase: names the first table or column that is missing
    """
    schema = read_schema(connection)
    tables = metadata.sorted_tables
    if schema.is_outdated:
        # Without a version, those that an interrupted migration has created;
        # none of an older version, whose columns differ.
        tables = [table for table in tables if schema.version is None
                  and table.name in schema.tables]
    for table in tables:
        try:
            connection.execute(sa.select(table).limit(0))
        except engines.LIBRARY_ERRORS as exc:
            if not is_about_tables(exc):
                raise
            part = driver_failures.missing(exc) or 'table ' + table.name
            raise _wrong(connection, schema.tables, part) from exc
    return schema


def is_about_tables(error: Exception) -> bool:
    """Check whether a table or a column may be missing."""
    kind = driver_failures.of_database(error).kind
    if kind in (causes.TABLE.kind, causes.COLUMN.kind):
        return True
    # SQLite has one code for both, and for statements that it cannot read.
    return any(getattr(link, 'sqlite_errorcode', 0) == sqlite3.SQLITE_ERROR
               for link in driver_failures.chain(error))


def upgrade(connection: sa.engine.Connection) -> None:
    """Run the pending migrations in the caller's transaction.

    Each statement allows that it has run before: MySQL and MariaDB commit each
    one, and a migration may be interrupted, or run on two controllers.
    """
    if check_tables(connection).is_outdated:
        from alembic import command
        from alembic import config

        settings = config.Config()
        settings.set_main_option('script_location', str(
            pathlib.Path(__file__).parent / 'migrations'))
        settings.attributes['connection'] = connection
        command.upgrade(settings, 'head')


def _wrong(connection: sa.engine.Connection, tables: abc.Set[str], part: str
           ) -> exceptions.WrongDatabase:
    """Return the error for a database that lacks a part of a journal."""
    url = connection.engine.url.set(query={})
    is_file = url.get_backend_name() == 'sqlite'
    # It has tables of a journal, with alembic's, and no others.
    is_own = {STAMP} < tables <= OWN
    problem, kind = INCOMPLETE % part, ''
    step = USE_ANOTHER_FILE if is_file else USE_ANOTHER % (
        'an empty' if is_own else 'the journal\'s own, or an empty')
    if is_own and is_file:
        kind = causes.FILE_DAMAGED.kind
        step = causes.MOVE % shlex.quote(url.database or '')
    if part == ROWS and not is_own:
        others = sorted(tables - OWN or tables)[:3]
        problem = 'is not a journal: it has tables such as %s, but no %s' % (
            ', '.join(others), part)
    return exceptions.WrongDatabase(
        problem, 'the database ' + url.render_as_string(hide_password=True),
        step=step, kind=kind)
