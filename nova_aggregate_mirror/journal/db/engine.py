# SPDX-License-Identifier: Apache-2.0
"""Opens the journal's database."""

from collections.abc import Iterator
import contextlib
import inspect
import pathlib
from typing import Any
import urllib.parse

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import migration
from nova_aggregate_mirror.journal.db import sqlite

SYNC_COMMAND = 'nova-aggregate-mirror-manage db sync'

# A database that ends with the process.
MEMORY = 'sqlite://'
# Seconds that a server may take to accept, or to answer a statement.
PATIENCE = 5
# What a driver calls them; without them one that hangs hangs its caller.
TIMEOUTS = {
    'pymysql': {'connect_timeout': 1, 'read_timeout': 1, 'write_timeout': 1},
    'mysqldb': {'connect_timeout': 1, 'read_timeout': 1, 'write_timeout': 1},
    # Of a server that accepts bytes and does not answer libpq knows nothing.
    'psycopg': {'connect_timeout': 1, 'tcp_user_timeout': 1000},
    'psycopg2': {'connect_timeout': 1, 'tcp_user_timeout': 1000}}


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn whatever a database or its files raise into JournalUnavailable."""
    try:
        yield
    except (db_exc.DBError, db_exc.CantStartEngineError,
            sa.exc.SQLAlchemyError, OSError, ImportError) as exc:
        lines = str(exc).strip().splitlines()
        raise exceptions.JournalUnavailable(
            'the journal could not be used: %s: %s'
            % (type(exc).__name__, lines[0] if lines else '')) from exc


def is_conflict(exc: db_exc.DBError) -> bool:
    """Whether the transaction met another one, and succeeds when repeated."""
    # The latter is MariaDB's from 11.6.2 on, which older oslo.db do not know.
    return (isinstance(exc, db_exc.DBDeadlock)
            or 'Record has changed since last read' in str(exc))


def sqlite_file(conf: cfg.ConfigOpts) -> pathlib.Path | None:
    """Where the journal is that is an SQLite file; None for a server.

    :raises InvalidConfiguration: when the connection is no database URL
    """
    url = _parse(conf.aggregate_mirror_database.connection)
    if url.get_backend_name() != 'sqlite' or not url.database:
        return None
    return pathlib.Path(url.database)


@translated()
def for_reading(conf: cfg.ConfigOpts) -> 'Database':
    """The journal's database, for who leaves everything as it is.

    An SQLite file that was never made is not made: it is empty.
    """
    file = sqlite_file(conf)
    database = Database(conf, MEMORY if file and not file.exists() else '')
    database.prepare()
    return database


class Database:
    """The journal's database.

    :param conf: with the options of ``[aggregate_mirror_database]``
    :param connection: in place of that option

    Every method but ``transaction`` raises ``JournalUnavailable`` when it
    cannot be used.

    :raises InvalidConfiguration: when the connection is no database URL
    """

    @translated()
    def __init__(self, conf: cfg.ConfigOpts, connection: str = '') -> None:
        settings = conf.aggregate_mirror_database
        url = _parse(connection or settings.connection)
        self._is_sqlite = url.get_backend_name() == 'sqlite'
        if self._is_sqlite:
            self._engine = self._patient = sqlite.engine(url)
        else:
            self._engine = _server_engine(_bounded(
                url, settings.connection_parameters), settings)
            # An ALTER waits for whoever uses the table.
            self._patient = _server_engine(url, settings)

    def transaction(self) -> contextlib.AbstractContextManager[Any]:
        """A connection in a new transaction, committed at the end."""
        return self._engine.begin()

    @translated()
    def version(self) -> str | None:
        """The version of the tables, or None when there are none."""
        with self.transaction() as connection:
            return migration.version(connection)

    @translated()
    def migrate(self) -> None:
        """Bring the tables up to date; those of a newer release are."""
        with self._patient.begin() as connection:
            if (migration.version(connection) or '') <= migration.HEAD:
                migration.upgrade(connection)

    def check(self) -> None:
        """Check that the tables are up to date, and write nothing.

        :raises JournalUnavailable: when they are not
        """
        found = self.version()
        if found is None or found < migration.HEAD:
            raise exceptions.JournalUnavailable(
                'the journal\'s database has %s: run "%s" once'
                % ('no tables' if found is None
                   else 'tables of version %s instead of %s'
                   % (found, migration.HEAD), SYNC_COMMAND))

    def prepare(self) -> None:
        """Check the tables; those of an SQLite file are brought up to date.

        :raises JournalUnavailable: when the tables of a server are not, which
            an operator does once for all controllers
        """
        if self._is_sqlite and (self.version() or '') < migration.HEAD:
            self.migrate()
        else:
            self.check()


def _parse(connection: str) -> sa.engine.URL:
    # What SQLAlchemy says of a URL may repeat it, password and all; and after
    # an @ in a password it takes the rest of that for the host.
    with contextlib.suppress(sa.exc.ArgumentError, ValueError):
        url = sa.engine.make_url(connection)
        if '@' not in (url.host or ''):
            return url
    raise exceptions.InvalidConfiguration(
        '[aggregate_mirror_database] connection is not the URL of a database, '
        'as in mysql+pymysql://user:password@host/name, with %40 for @ in a '
        'password, and so on')


def _server_engine(url: sa.engine.URL, settings: Any) -> sa.engine.Engine:
    known = inspect.signature(engines.create_engine).parameters
    given = {name: settings[name] for name in settings if name in known}
    # oslo.db would retry the first connection for 100 seconds, and the caller
    # is a user's request.
    given['max_retries'] = 0
    engine: sa.engine.Engine = engines.create_engine(url, **given)

    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, _record: Any, args: Any, kwargs: Any) -> Any:
        try:
            return dialect.connect(*args, **kwargs)
        except TypeError as exc:
            raise exceptions.JournalUnavailable(
                '[aggregate_mirror_database] connection has a parameter that '
                'the driver %s does not take: %s'
                % (dialect.driver, exc)) from exc

    return engine


def _bounded(url: sa.engine.URL, more: str) -> sa.engine.URL:
    """The URL with timeouts, but for those that the operator has set.

    :param more: parameters that oslo.db adds to those of the URL
    """
    units = TIMEOUTS.get(url.get_driver_name(), {})
    chosen = {*url.query, *urllib.parse.parse_qs(more)}
    return url.update_query_dict({
        name: str(PATIENCE * unit) for name, unit in units.items()
        if name not in chosen})
