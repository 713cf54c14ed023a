# SPDX-License-Identifier: Apache-2.0
"""The journal's database: engine, timeouts and version of the tables."""

from collections import abc
import contextlib
import functools
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import migration
from nova_aggregate_mirror.journal.db import sqlite
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines

# Attempts while other controllers migrate: each table can make one fail.
ATTEMPTS = 20

# An ALTER waits for the locks of all sessions that use the table.
MIGRATION = engines.Limits(3600.0)

# MySQL's errors of a row, and of a table, that another session changes.
CHANGED = 1020, 1684

JOURNAL = 'the journal'
PARTY = causes.database(JOURNAL, migration.OPTION, migration.SYNC)


def _kind(exc: Exception) -> type[exceptions.JournalUnavailable]:
    if isinstance(exc, engines.LostLock):
        return exceptions.JournalLocked
    if isinstance(exc, engines.NotAsked):
        return exceptions.JournalNotAsked
    if isinstance(exc, sqlite.DamagedFile):
        return exceptions.JournalDamaged
    return exceptions.JournalUnavailable


translated = functools.partial(engines.translated, PARTY, _kind)
"""Translates errors of the database and its files to JournalUnavailable."""


def is_conflict(exc: Exception) -> bool:
    """Check whether the error is a conflict, which a retry resolves."""
    # MariaDB reports codes that oslo.db has no class for.
    return isinstance(exc, db_exc.DBDeadlock) or any(
        cause.args[0] in CHANGED
        for cause in driver_failures.chain(exc) if cause.args)


class Database:
    """The journal's database.

    Every method except ``transaction`` raises ``JournalUnavailable`` when the
    database is unavailable, or its URL cannot be used.
    """

    @translated()
    def __init__(self, conf: cfg.ConfigOpts, connection: str = '',
                 limits: engines.Limits = engines.Limits()) -> None:
        settings = conf.aggregate_mirror_database
        url = _parse(connection) if connection else configured(conf)
        self._limits = limits
        self._is_sqlite = url.get_backend_name() == 'sqlite'
        if self._is_sqlite:
            self._engine = self._migration_engine = sqlite.create(url)
        else:
            self._engine = engines.create(url, settings, limits)
            self._migration_engine = engines.create(url, settings, MIGRATION)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._engine.dispose()
        self._migration_engine.dispose()

    @contextlib.contextmanager
    def transaction(self, lock_wait: float | None = None) -> abc.Iterator[Any]:
        """Open a connection in a new transaction, committed on exit."""
        with self._engine.begin() as connection, engines.lock_wait(
                connection, self._limits, lock_wait):
            yield connection

    @translated()
    def schema(self, attempts: int = ATTEMPTS) -> migration.Schema:
        """Read which tables there are, and their version."""
        try:
            with self.transaction() as connection:
                return migration.read(connection)
        except db_exc.DBError as exc:
            if not attempts or not is_conflict(exc):
                raise
        return self.schema(attempts - 1)

    @translated()
    def check_tables(self) -> migration.Schema:
        """Read the schema, and check that its tables have their columns."""
        with self.transaction() as connection:
            return migration.check_tables(connection)

    @translated()
    def migrate(self) -> None:
        """Run pending migrations; tables of a newer release stay."""
        for _attempt in range(ATTEMPTS):
            before = self.schema()
            try:
                with self._migration_engine.begin() as connection:
                    migration.upgrade(connection)
                return
            except (db_exc.DBError, sa.exc.SQLAlchemyError) as exc:
                # Of concurrent migrations, one creates each table. No lock
                # keeps them apart: on Galera each node has its own.
                if not is_conflict(exc) and self.schema() == before:
                    raise
                error = exc
        raise error

    def check(self) -> None:
        """Check that the tables are up to date, without writing.

        :raises JournalUnavailable: when the tables are missing or outdated
        """
        if (schema := self.schema()).is_outdated:
            raise exceptions.JournalUnavailable(
                'has %s; this release needs version %s'
                % (schema, migration.HEAD), JOURNAL,
                step='run "%s" once' % commands.DB_SYNC)

    def prepare(self) -> None:
        """Check the tables; migrate those of an SQLite file.

        :raises JournalUnavailable: when the tables of a server are missing or
            outdated: an operator migrates them once for all controllers
        """
        if self._is_sqlite and self.schema().is_outdated:
            self.migrate()
        else:
            self.check()


def configured(conf: cfg.ConfigOpts) -> sa.engine.URL:
    """Return the URL of the journal, which another process can open, too."""
    url = _parse(conf.aggregate_mirror_database.connection)
    if url.get_backend_name() == 'sqlite' and (
            url.database in (None, '', ':memory:')):
        raise exceptions.JournalUnavailable(
            '[aggregate_mirror_database] connection is a database in memory, '
            'which no other process can read', step='name a file, such as '
            'sqlite:////var/lib/nova/aggregate_mirror/journal.sqlite, or a '
            'database server')
    return url


def _parse(connection: str) -> sa.engine.URL:
    # SQLAlchemy's error may quote the URL with its password; and it parses
    # what follows an @ in a password as the host.
    with contextlib.suppress(sa.exc.ArgumentError, ValueError):
        url = sa.engine.make_url(connection)
        if '@' not in (url.host or ''):
            return url
    raise exceptions.JournalUnavailable(
        '[aggregate_mirror_database] connection is not a database URL like '
        'mysql+pymysql://user:password@host/name', step='correct it, and '
        'percent-encode special characters in the password, such as %40 for @')
