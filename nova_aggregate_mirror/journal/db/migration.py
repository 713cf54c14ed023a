# SPDX-License-Identifier: Apache-2.0
"""Whose tables a database has, and their migration to this release."""

import dataclasses
import pathlib
import shlex

import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror import plurals

VERSIONS = ('0001',)
"""Every migration, oldest first; nova-api does not load alembic for them."""
HEAD = VERSIONS[-1]

# Alembic's table: a database has one, for all programs that use it.
STAMP = 'alembic_version'
OPTION = '[aggregate_mirror_database] connection'
SYNC_COMMAND = 'nova-aggregate-mirror-manage db sync'
SYNC = 'run "%s"' % SYNC_COMMAND
# What only the ledger of another database knew is foreign from then on.
USE_ANOTHER = (
    'give the journal an empty database of its own in %s, %s, and restart '
    'nova-api and the agent' % (OPTION, SYNC))
USE_ANOTHER_FILE = 'name another file in ' + OPTION
# Names of tables in a message.
NAMES = 3
DIFFERENT = 'is not a journal of this release: the table %s %s'
MISSING = 'is missing'


@dataclasses.dataclass(frozen=True)
class Schema:
    """The names of a database's tables, and the version that they have."""

    tables: frozenset[str] = frozenset()
    version: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether the database belongs to another program.

        A journal has the table ``dirty`` before it has a version. Without a
        version it has no table but this release's: a migration of an empty
        database that was interrupted.
        """
        return (models.dirty.name not in self.tables
                and bool(self.version or self._unknown_tables)
                and not self.is_of_journal_only)

    @property
    def is_of_journal_only(self) -> bool:
        """Whether the database has a version, and nothing but a journal."""
        return bool(self.version and not self._unknown_tables
                    and self.tables - {STAMP})

    @property
    def is_outdated(self) -> bool:
        """Whether a migration is pending.

        An unknown version is that of a newer release, whose tables this
        release can use.
        """
        return self.version is None or self.version in VERSIONS[:-1]

    @property
    def _unknown_tables(self) -> frozenset[str]:
        return self.tables - {STAMP, *models.metadata.tables}

    def __str__(self) -> str:
        if self.is_foreign:
            return plurals.some(self._unknown_tables or self.tables, NAMES)
        if self.version is None:
            return 'incomplete tables' if self.tables else 'no tables'
        return 'tables of version %s' % self.version


def read(connection: sa.engine.Connection) -> Schema:
    """Read the names of the tables, and their version.

    :raises WrongDatabase: when they belong to another program, or are not all
    :raises JournalDamaged: when that is a file with nothing but a journal
    """
    inspector, version = sa.inspect(connection), None
    if inspector.has_table(STAMP):
        version = connection.scalar(sa.select(
            sa.column('version_num')).select_from(sa.table(STAMP)))
    # After the version, which is stored last: a migration that ends between
    # the two reads would look like another program's.
    schema = Schema(frozenset(
        name for name in inspector.get_table_names()
        # SQLite's own, which older SQLAlchemy also lists.
        if not name.startswith('sqlite_')), version)
    if schema.is_foreign:
        raise _wrong(connection, schema, 'is not a journal: it has the tables '
                     '%s, but no table %s' % (schema, models.dirty.name))
    if schema.version and models.dirty.name not in schema.tables:
        raise _wrong(connection, schema, DIFFERENT % (
            models.dirty.name, MISSING))
    return schema


def compare(connection: sa.engine.Connection) -> Schema:
    """Check that each table of this release is there, with its columns.

    :returns: what ``read`` returns; a migration may be pending
    :raises WrongDatabase: names the first that is not
    :raises JournalDamaged: like ``read``, and names the first that is not
    """
    schema = read(connection)
    inspector = sa.inspect(connection)
    # Without a version, those that an interrupted migration has created.
    tables = [table for table in models.metadata.sorted_tables
              if not schema.is_outdated or (
                  schema.version is None and table.name in schema.tables)]
    for table in tables:
        if table.name not in schema.tables:
            raise _wrong(connection, schema, DIFFERENT % (
                table.name, MISSING))
        names = {column['name']
                 for column in inspector.get_columns(table.name)}
        for name in table.c.keys():
            if name not in names:
                raise _wrong(connection, schema, DIFFERENT % (
                    table.name, 'lacks a column, ' + name))
    return schema


def upgrade(connection: sa.engine.Connection) -> None:
    """Run the pending migrations in the caller's transaction.

    Each statement allows for having been run: MySQL and MariaDB commit each,
    and a migration may be interrupted, or run on two controllers.
    """
    if compare(connection).is_outdated:
        from alembic import command
        from alembic import config

        settings = config.Config()
        settings.set_main_option('script_location', str(
            pathlib.Path(__file__).parent / 'migrations'))
        settings.attributes['connection'] = connection
        command.upgrade(settings, 'head')
        compare(connection)


def _wrong(connection: sa.engine.Connection, schema: Schema, problem: str
           ) -> exceptions.JournalUnavailable:
    url = connection.engine.url
    is_file = url.get_backend_name() == 'sqlite'
    party = 'the database %s' % url.set(query={}).render_as_string(
        hide_password=True)
    if schema.is_of_journal_only and is_file:
        return exceptions.JournalDamaged(
            problem, party, step=causes.MOVE % shlex.quote(url.database or ''))
    return exceptions.WrongDatabase(
        problem, party, step=USE_ANOTHER_FILE if is_file else USE_ANOTHER)
