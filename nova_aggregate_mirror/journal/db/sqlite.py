# SPDX-License-Identifier: Apache-2.0
"""An SQLite file as the journal: many processes, one writer at a time."""

from collections.abc import Callable
import contextlib
import os
import pathlib
import random
import sqlite3
import time
from typing import Any

from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa

# Seconds that one writer waits for the others.
BUSY_TIMEOUT = 5.0


def engine(url: sa.engine.URL) -> sa.engine.Engine:
    """An engine with a write-ahead log, whose connections stay open.

    Opening the file anew for each transaction, as oslo.db does, takes longer
    than the transaction; and the last connection that closes would write the
    whole log back each time.
    """
    if url.database:
        _make_private(pathlib.Path(url.database))
    made = sa.create_engine(
        url, poolclass=sa.pool.QueuePool,
        connect_args={'check_same_thread': False, 'timeout': 0})
    exc_filters.register_engine(made)
    # SQLite forbids a child to use what its parent has opened.
    os.register_at_fork(after_in_child=lambda: made.dispose(close=False))

    @sa.event.listens_for(made, 'connect')
    def connect(connection: Any, _record: Any) -> None:
        # The driver is not to begin transactions of its own.
        connection.isolation_level = None
        _in_turn(lambda: connection.execute('PRAGMA journal_mode = WAL'))

    @sa.event.listens_for(made, 'begin')
    def begin(connection: sa.engine.Connection) -> None:
        # A transaction that reads first and writes then fails at once,
        # without waiting, when another one wrote in between.
        driver: Any = connection.connection.driver_connection
        try:
            _in_turn(lambda: driver.execute('BEGIN IMMEDIATE'))
        except sqlite3.Error:
            # Once more, for an error that SQLAlchemy and oslo.db know.
            connection.exec_driver_sql('BEGIN IMMEDIATE')

    return made


def _in_turn(statement: Callable[[], object]) -> None:
    """Run a statement that has to wait until other processes have written.

    SQLite waits longer and longer itself, so that somebody who has waited
    loses against everybody who comes; and it would keep the greenlets of a
    whole process waiting.
    """
    end = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            statement()
            return
        except sqlite3.OperationalError as exc:
            if 'locked' not in str(exc) or time.monotonic() > end:
                raise
        time.sleep(random.uniform(0.0005, 0.005))


def _make_private(path: pathlib.Path) -> None:
    """Make the file and its directory, for nova's user alone."""
    new = [one for one in (path.parent, path) if not one.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if new and os.geteuid() == 0:
        # A command that root runs must not shut nova-api's user out; and
        # what was there already is whose it is.
        above = new[0].parent.stat()
        for made in new:
            os.chown(made, above.st_uid, above.st_gid)
