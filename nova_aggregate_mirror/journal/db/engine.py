# SPDX-License-Identifier: Apache-2.0
"""The journal's database: transactions, timeouts and version of the tables."""

from collections import abc
import contextlib
import functools
import random
import threading
import time
from typing import Any
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sqlite
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines

T = TypeVar('T')
# Attempts at a transaction, and at a migration, in which each table can meet a
# conflict. The random pauses grow, and add up to about two seconds.
ATTEMPTS = 20
PAUSE = 0.02
# Of the agent and the commands, which go on with rows that are not locked.
LIMITS = engines.Limits(longest_lock_wait=1.0)
# MySQL's errors of a row, and of a table, that another session changes.
CHANGED = 1020, 1684
JOURNAL = 'the journal'
PARTY = causes.database(JOURNAL, models.OPTION, models.SYNC)
_KINDS: dict[type[Exception], type[exceptions.JournalUnavailable]] = {
    engines.LostLock: exceptions.JournalLocked,
    engines.NotAsked: exceptions.JournalNotAsked}
translated = functools.partial(
    engines.translated, PARTY,
    lambda exc: _KINDS.get(type(exc), exceptions.JournalUnavailable))
"""Translates errors of the database and its files to JournalUnavailable."""


def is_conflict(exc: Exception) -> bool:
    """Check whether the error is a conflict, which a retry resolves."""
    # MariaDB reports codes that oslo.db has no class for.
    codes = [error.args[0] for error in driver_failures.chain(exc)
             if error.args]
    return isinstance(exc, db_exc.DBDeadlock) or any(
        code in CHANGED for code in codes)


class Database:
    """The journal's database, which opens on first use.

    Every method but ``open`` raises ``JournalUnavailable`` if it fails.

    :param url: replaces the configured one
    """

    def __init__(self, conf: cfg.ConfigOpts, url: sa.engine.URL | None = None,
                 limits: engines.Limits = LIMITS) -> None:
        self._conf = conf
        self._url = url
        self.limits = limits
        self._silence = backoff.Backoff(limits.backoff, limits.backoff)
        self._mutex = threading.Lock()
        self._engine: sa.engine.Engine | None = None
        self._is_prepared = False

    def open(self) -> sa.engine.Engine:
        """Return the engine; with the first, an SQLite file is created."""
        with self._mutex:
            if self._engine is None:
                url = self._url or configured(self._conf)
                if url.get_backend_name() == 'sqlite':
                    self._engine = sqlite.create(url)
                else:
                    self._engine = engines.create(
                        url, self._conf.aggregate_mirror_database, self.limits)
            return self._engine

    def run(self, work: abc.Callable[[Any], T], insist: bool = False) -> T:
        """Run work in one transaction; retry on deadlock or write conflict.

        :param work: takes a connection; may be called several times
        :param insist: whether to make an attempt during a back-off, too
        :raises JournalLocked: when a statement waited in vain for a lock
        :raises JournalNotAsked: when no time or connection is left
        :raises JournalUnavailable: when it is unavailable; of all three,
            nothing was written, unless only the answer to the COMMIT was lost
        """
        def attempt() -> T:
            with engines.backing_off(self.limits, self._silence, insist):
                self.prepare()
                return self._transact(work)

        try:
            with translated():
                return _repeat(attempt)
        except exceptions.JournalUnavailable as exc:
            if models.is_about_tables(exc):
                # Raises what names the missing part, with the step for it.
                self.check_tables()
            raise

    def read(self, statement: Any, **values: Any) -> list[Any]:
        """Return the rows of a statement, in a transaction of its own."""
        return self.run(
            lambda connection: list(connection.execute(statement, values)))

    @translated()
    def schema(self) -> models.Schema:
        """Read which tables there are, and their version."""
        return _repeat(lambda: self._transact(models.read_schema))

    @translated()
    def check_tables(self) -> models.Schema:
        """Read the schema, and check that its tables have their columns."""
        return self._transact(models.check_tables)

    def prepare(self, migrates: bool = True) -> None:
        """Check the version of the tables once.

        :param migrates: whether to migrate those of an SQLite file; an
            operator migrates those of a server once for all controllers
        """
        if self._is_prepared:
            return
        # Not under the mutex: with a server that hangs, callers would queue.
        try:
            schema = self.schema()
            if schema.is_outdated:
                if not migrates or self.open().dialect.name != 'sqlite':
                    raise exceptions.JournalUnavailable(
                        'has %s; this release needs version %s'
                        % (schema, models.HEAD), JOURNAL,
                        step=models.SYNC + ' once')
                with translated():
                    self._transact(models.upgrade)
            self._is_prepared = True
        except exceptions.JournalUnavailable as exc:
            # A file that is replaced meanwhile must be opened again. A server
            # that was not asked is asked next through the same connection.
            if not isinstance(exc, exceptions.JournalNotAsked):
                self.close()
            raise

    def _transact(self, work: abc.Callable[[Any], T]) -> T:
        with self.open().begin() as connection:
            return work(connection)

    def close(self) -> None:
        """Close the connections; the next use opens the database again."""
        engine, self._engine = self._engine, None
        if engine:
            engine.dispose()


def _repeat(attempt: abc.Callable[[], T]) -> T:
    """Attempt a transaction until it meets no conflict."""
    for number in range(ATTEMPTS):
        try:
            return attempt()
        except db_exc.DBError as exc:
            # A deadlock, or a conflict that Galera detects at commit.
            if not (is_conflict(exc) and deadline.remaining()):
                raise
            error = exc
        time.sleep(random.random() * PAUSE * number)
    raise error


def write(connection: Any, statement: Any, some: abc.Iterable[str],
          **values: Any) -> int:
    """Execute a statement with ``engines.SOME``; return the number of rows."""
    count = 0
    for chunk in engines.chunks(some):
        parameters = {'some': chunk, **values}
        count += connection.execute(statement, parameters).rowcount
    return count


def configured(conf: cfg.ConfigOpts) -> sa.engine.URL:
    """Return the URL of the journal, which another process can open, too."""
    connection, url = conf.aggregate_mirror_database.connection, None
    # SQLAlchemy's error may quote the URL with its password; and it parses
    # what follows an @ in a password as the host.
    with contextlib.suppress(sa.exc.ArgumentError, ValueError):
        url = sa.engine.make_url(connection)
    if url is None or '@' in (url.host or ''):
        raise exceptions.JournalUnavailable(
            '[aggregate_mirror_database] connection is not a database URL '
            'like mysql+pymysql://user:password@host/name', step='correct it, '
            'and percent-encode special characters in the password, such as '
            '%40 for @')
    if url.get_backend_name() == 'sqlite' and (
            url.database in (None, '', ':memory:')):
        raise exceptions.JournalUnavailable(
            '[aggregate_mirror_database] connection is a database in memory, '
            'which no other process can read', step='name a file, such as '
            'sqlite:////var/lib/nova/aggregate_mirror/journal.sqlite, or, '
            'for several controllers, a database server')
    return url
