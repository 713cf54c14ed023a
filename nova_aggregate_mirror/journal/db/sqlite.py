# SPDX-License-Identifier: Apache-2.0
"""SQLite engine of the journal: many processes, one writer at a time."""

from collections import abc
import contextlib
import errno
import os
import pathlib
import random
import shlex
import sqlite3
import tempfile
import time
from typing import Any
import weakref

from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa

from nova_aggregate_mirror import accounts
from nova_aggregate_mirror import causes
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines

Observed = driver_failures.Observed
# Seconds that a writer waits for others; at most half of what a call has left.
BUSY_TIMEOUT = 5.0


def create(url: sa.engine.URL) -> sa.engine.Engine:
    """Create an engine with a write-ahead log and persistent connections.

    Oslo.db opens the file for each transaction, with a checkpoint each time.
    This takes longer than the transaction.
    """
    engine = engines.build(url, lambda: sa.create_engine(
        url, poolclass=sa.pool.QueuePool,
        connect_args={'check_same_thread': False, 'timeout': 0}))
    if url.database:
        file = pathlib.Path(url.database)
        _make_private(file)
        # Called before oslo.db's filters, which translate what is left.
        sa.event.listen(engine, 'handle_error', lambda context: _raise_cause(
            file, context.original_exception))
    exc_filters.register_engine(engine)
    _ENGINES.add(engine)

    @sa.event.listens_for(engine, 'connect')
    def connect(connection: Any, _record: Any) -> None:
        # Keep the driver from beginning transactions implicitly.
        connection.isolation_level = None
        _retry_while_locked(
            lambda: connection.execute('PRAGMA journal_mode = WAL'))

    @sa.event.listens_for(engine, 'begin')
    def begin(connection: sa.engine.Connection) -> None:
        # A deferred transaction that reads and then writes fails without
        # waiting if another transaction has written in between.
        driver: Any = connection.connection.driver_connection
        try:
            _retry_while_locked(lambda: driver.execute('BEGIN IMMEDIATE'))
        except sqlite3.Error:
            # Again, through SQLAlchemy, whose errors oslo.db translates.
            connection.exec_driver_sql('BEGIN IMMEDIATE')

    return engine


def nearest_existing(path: pathlib.Path) -> pathlib.Path:
    """Return the path, or the directory above that it will be created in."""
    return next(place for place in (path, *path.parents)
                if os.path.exists(place))


def try_write(directory: pathlib.Path) -> None:
    """Write a file without a name in an existing directory.

    :raises OSError: says what prevents it
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            # SQLite reserves space in steps of this size at most.
            file.write(bytes(2 ** 15))
    except OSError as exc:
        raise failure(exc, directory) from exc


def failure(error: OSError, path: pathlib.Path) -> OSError:
    """Return the error to raise instead, about a path that may not exist."""
    place = nearest_existing(path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Observed(causes.FILE_FULL.with_step(
            place if place.is_dir() else place.parent), place)
    owner = place.stat().st_uid
    # A file of root is no reason to run this as root.
    if error.errno == errno.EACCES and owner:
        cause = causes.FILE_DENIED.with_step(place)
        if owner != os.geteuid():
            cause = causes.FILE_OF_ANOTHER.with_step(accounts.user(owner))
        return Observed(cause.with_detail(place), place)
    return OSError(error.errno, error.strerror, str(path))


def _raise_cause(file: pathlib.Path, error: BaseException) -> None:
    """Raise the cause of an error of SQLite, if it lies in the file."""
    # The bits of SQLite's codes that all of a kind share.
    kind = getattr(error, 'sqlite_errorcode', 0) & 0xff
    quoted = shlex.quote(str(file))
    if kind == sqlite3.SQLITE_FULL:
        raise Observed(causes.FILE_FULL.with_step(file.parent), file)
    if kind == sqlite3.SQLITE_BUSY:
        raise Observed(causes.FILE_LOCKED.with_step(quoted), file)
    if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        raise Observed(causes.FILE_DAMAGED.with_step(quoted), file)
    if kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR,
                sqlite3.SQLITE_READONLY):
        # What SQLite could not do fails again, and the system says why.
        try:
            os.close(os.open(file, os.O_RDWR))
        except OSError as exc:
            raise failure(exc, file) from exc
        try_write(file.parent)
    if kind == sqlite3.SQLITE_IOERR:
        raise Observed(causes.IO_ERROR.with_detail(file.parent), file)


def _forget_connections() -> None:
    for engine in _ENGINES:
        engine.dispose(close=False)


# SQLite connections must not be used after a fork.
_ENGINES: 'weakref.WeakSet[sa.engine.Engine]' = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_connections)


def _retry_while_locked(statement: abc.Callable[[], object]) -> None:
    """Run a statement; wait while other processes write."""
    # SQLite's own wait is not used: its pauses grow, so that new writers
    # overtake a waiting writer, and it blocks all greenlets of the process.
    end = time.monotonic() + min(BUSY_TIMEOUT, deadline.remaining() / 2)
    while True:
        try:
            statement()
            return
        except sqlite3.OperationalError as exc:
            if 'locked' not in str(exc) or time.monotonic() > end:
                raise
        time.sleep(random.uniform(0.0005, 0.005))


def _make_private(path: pathlib.Path) -> None:
    """Create what is missing of a file and its directory, for its owner."""
    # What root creates gets the owner of the directory above. All is done by
    # descriptor, because that user can replace each name by a link.
    above = nearest_existing(path.parent)
    try:
        with contextlib.ExitStack() as stack:
            folder = os.open(above, os.O_PATH | os.O_DIRECTORY)
            stack.callback(os.close, folder)
            owner = os.fstat(folder)
            for name in path.parent.relative_to(above).parts:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
                folder = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW,
                                 dir_fd=folder)
                stack.callback(os.close, folder)
                _set_owner(folder, owner)
            try:
                file = os.open(path.name, os.O_RDWR | os.O_CREAT | os.O_EXCL,
                               0o600, dir_fd=folder)
            except FileExistsError:
                # Fails for a link without a target, which SQLite would create,
                # readable by everyone.
                os.stat(path.name, dir_fd=folder)
            else:
                stack.callback(os.close, file)
                _set_owner(file, owner)
    except OSError as exc:
        raise failure(exc, path) from exc


def _set_owner(descriptor: int, owner: os.stat_result) -> None:
    """Give what root has created to the owner of another directory."""
    # Another user's process may have created the directory meanwhile.
    if os.geteuid() == 0 and os.fstat(descriptor).st_uid == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
