# SPDX-License-Identifier: Apache-2.0
"""Transactions in the journal's database, which opens on first use."""

from collections import abc
import contextlib
import random
import threading
import time
from typing import Any
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import migration
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines

T = TypeVar('T')

# Attempts at a transaction that meets conflicts. The pauses between them are
# random and grow; they add up to about two seconds.
ATTEMPTS = 20
PAUSE = 0.02


class Transactions:
    """Transactions of one process in the journal's database."""

    def __init__(self, conf: cfg.ConfigOpts,
                 database: engine.Database | None = None,
                 limits: engines.Limits = engines.Limits()) -> None:
        self._conf = conf
        self._mutex = threading.Lock()
        self._database = database
        self._unchecked: engine.Database | None = None
        """What was opened with no time left to check its tables; the next
        attempt begins with that."""
        self._limits = limits
        self._silence = backoff.Backoff(limits.backoff, limits.backoff)

    def run(self, work: abc.Callable[[Any], T], insist: bool = False,
            lock_wait: float | None = None) -> T:
        """Run work in one transaction; retry on deadlock or write conflict.

        :param work: takes a connection; may be called several times
        :param insist: whether to make an attempt during a back-off, too
        :param lock_wait: seconds that a statement may wait for locks of other
            sessions; None for the limit of the process. An SQLite file has a
            limit of its own
        :raises JournalLocked: when a statement waited that long; nothing was
            written
        :raises JournalNotAsked: when this process has no time or connection
            left; nothing was written
        :raises JournalUnavailable: when the database is unavailable; nothing
            was written, unless only the response to the COMMIT was lost
        """
        try:
            with engine.translated():
                return self._run(work, insist, lock_wait)
        except exceptions.JournalUnavailable as exc:
            if migration.is_about_tables(exc):
                # Raises what names the missing part, with the step for it.
                self._open().check_tables()
            raise

    def _run(self, work: abc.Callable[[Any], T], insist: bool,
             lock_wait: float | None) -> T:
        for attempt in range(ATTEMPTS):
            try:
                with engines.attempt(
                        self._limits, self._silence, insist
                ), self._open().transaction(lock_wait) as connection:
                    return work(connection)
            except db_exc.DBError as exc:
                # Servers roll back one of two deadlocked transactions;
                # Galera detects conflicts at commit.
                if not (engine.is_conflict(exc) and deadline.remaining()):
                    raise
                error = exc
            time.sleep(random.random() * PAUSE * attempt)
        raise error

    def _open(self) -> engine.Database:
        """Return the database; each call tries to open it until one has."""
        if self._database is not None:
            return self._database
        with self._mutex:
            unchecked, self._unchecked = self._unchecked, None
        # Outside the mutex: while a server hangs, each caller would wait for
        # the attempts of all earlier callers.
        database = unchecked or engine.Database(
            self._conf, limits=self._limits)
        with contextlib.ExitStack() as cleanup:
            # After a failure, the next attempt opens it again; if another
            # thread has opened it meanwhile, that is used.
            cleanup.callback(database.close)
            try:
                database.prepare()
            except exceptions.JournalNotAsked:
                # The next attempt continues with its connection.
                with self._mutex:
                    if not (self._database or self._unchecked):
                        self._unchecked = database
                        cleanup.pop_all()
                raise
            with self._mutex:
                if self._database is None:
                    self._database = database
                    cleanup.pop_all()
                return self._database
