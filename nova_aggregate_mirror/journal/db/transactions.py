# SPDX-License-Identifier: Apache-2.0
"""Transactions in the journal's database, opened at the first one."""

from collections.abc import Callable
import random
import threading
import time
from typing import Any
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc

from nova_aggregate_mirror.journal.db import engine

T = TypeVar('T')

# A transaction that met others is repeated after a pause, each a little longer
# than the one before: for two seconds in all.
CONFLICTS = 20
PAUSE = 0.02


class Transactions:
    """The database of one process's journal.

    :param conf: nova's configuration, with this package's options
    :param database: a database that is open and up to date already
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 database: engine.Database | None = None) -> None:
        self._conf = conf
        self._mutex = threading.Lock()
        self._database = database

    def run(self, work: Callable[[Any], T]) -> T:
        """Run work in one transaction; retry on deadlock or write conflict.

        :param work: takes a connection; may be called several times
        :raises JournalUnavailable: when the database cannot be used; nothing
            was written then, unless only the answer to the COMMIT was lost
        """
        with engine.translated():
            database = self._opened()
            for attempt in range(CONFLICTS):
                try:
                    with database.transaction() as connection:
                        return work(connection)
                except db_exc.DBError as exc:
                    # Servers undo one of two transactions that wait for each
                    # other, and Galera does at commit.
                    if not engine.is_conflict(exc):
                        raise
                    error = exc
                time.sleep(random.random() * PAUSE * attempt)
            raise error

    def _opened(self) -> engine.Database:
        """Return the database; until it was usable once, open it each time."""
        if self._database is None:
            # Without the mutex: of callers that meet a server that hangs, each
            # would wait for all that came before.
            database = engine.Database(self._conf)
            database.prepare()
            with self._mutex:
                self._database = self._database or database
        return self._database
