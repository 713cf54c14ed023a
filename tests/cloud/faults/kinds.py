# SPDX-License-Identifier: Apache-2.0
"""How each party or part of a lane is made bad, and repaired."""

from collections import abc
import contextlib
import socket
import sqlite3
import threading

import sqlalchemy as sa

from tests.cloud.faults import lane as lanes
from tests.cloud.faults import part
from tests.cloud.faults import table
from tests.cloud.faults import wires
from tests.cloud import sql

# Tables that calls use.
JOURNAL = 'dirty', 'ledger'
TABLES = {'journal-mysql': JOURNAL, 'journal-postgresql': JOURNAL,
          'api-database': ('aggregates', 'aggregate_hosts'),
          'cell': ('services', 'compute_nodes'),
          'other-cell': ('services', 'compute_nodes')}
# Seconds; longer than anything that was begun before.
LOCK_TIMEOUT = 10
# Rows of a statement: with more, the server reads and locks the whole table.
CHUNK = 50
# Connections that fill the queue of a socket whose owner accepts none.
FILLING = 2
# The share of inline_timeout after which a party comes back: longer than a
# statement may take.
RETURNS_AFTER = 0.6


class Fault:
    """A fault: ``begin`` it once, and ``end`` it; rows are the bad part's."""

    def __init__(self, lane: lanes.Lane, row: table.Row,
                 rows: abc.Collection[str] = ()) -> None:
        self._lane = lane
        self._row = row
        self._rows = rows
        self._undo = contextlib.ExitStack()
        self._mutex = threading.Lock()

    def begin(self) -> None:
        """Make the party bad; it may come back by itself."""
        for effect in self._effects():
            self._undo.enter_context(effect)
        if self._row.kind == 'returns':
            timer = threading.Timer(
                RETURNS_AFTER * self._row.inline_timeout, self.end)
            timer.daemon = True
            timer.start()

    def end(self) -> None:
        """Make the party good again, unless it is."""
        with self._mutex:
            self._undo.close()

    def _effects(self) -> abc.Sequence[
            contextlib.AbstractContextManager[None]]:
        lane, party, kind = self._lane, self._row.party, self._row.kind
        if party == 'journal-sqlite':
            return [_moved(lane) if kind == 'refuses' else _written(lane)]
        if kind == 'locks':
            return [_locked(url, _table_locks(url, TABLES[party]))
                    for url in self._databases()]
        if kind in LOCKS:
            url = lane.journal_url()
            return [_locked(url, LOCKS[kind](url, sorted(self._rows)))]
        if kind == 'slow':
            return [_slow(url) for url in self._databases()]
        return [_cut(lane.wires[name], kind)
                for name in lane.wires_of(self._row)]

    def _databases(self) -> list[str]:
        """Return the URLs of the databases that are bad."""
        party = self._row.party
        if party.startswith('journal'):
            return [self._lane.journal_url()]
        if party == 'api-database':
            return [self._lane.config.database_url('nova_api')]
        return [self._lane.config.database_url(self._lane.cells[cell])
                for cell in self._lane.wires_of(self._row)]


@contextlib.contextmanager
def _cut(wire: wires.Wire, kind: str) -> abc.Iterator[None]:
    """Let a wire fail."""
    try:
        wire.fail('refuses' if kind == 'off' else kind)
        with _silent(wire.port) if kind == 'off' else contextlib.nullcontext():
            yield
    finally:
        wire.forward()


@contextlib.contextmanager
def _silent(port: int) -> abc.Iterator[None]:
    """Let nothing answer a request for a connection."""
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent.bind(('127.0.0.1', port))
        # Packets to a socket whose queue is full are dropped.
        silent.listen(0)
        for _number in range(FILLING):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(silent.getsockname())
        yield


@contextlib.contextmanager
def _slow(url: str) -> abc.Iterator[None]:
    """Let each statement about the compute nodes of a cell take long."""
    sql.execute(
        url, 'RENAME TABLE compute_nodes TO nodes',
        'CREATE VIEW compute_nodes AS SELECT nodes.* '
        'FROM nodes JOIN (SELECT SLEEP(%d)) AS slow' % table.SLOW)
    try:
        yield
    finally:
        sql.execute(url, 'DROP VIEW compute_nodes',
                    'RENAME TABLE nodes TO compute_nodes')


@contextlib.contextmanager
def _locked(url: str, locks: abc.Iterable[sa.TextClause]
            ) -> abc.Iterator[None]:
    """Hold locks, as a controller that lost power in its transaction."""
    with sql.engine(url).connect() as connection:
        connection.exec_driver_sql(
            "SET lock_timeout = '%ds'" % LOCK_TIMEOUT if _is_postgresql(url)
            else 'SET SESSION innodb_lock_wait_timeout = %d, '
            'lock_wait_timeout = %d' % (LOCK_TIMEOUT, LOCK_TIMEOUT))
        for lock in locks:
            connection.execute(lock)
        yield


def _is_postgresql(url: str) -> bool:
    return url.startswith('postgresql')


def _table_locks(url: str, names: abc.Iterable[str]) -> list[sa.TextClause]:
    if _is_postgresql(url):
        return [sa.text('LOCK TABLE %s' % ', '.join(names))]
    locks = ['%s WRITE' % name for name in names]
    return [sa.text('LOCK TABLES %s' % ', '.join(locks))]


def _row_locks(_url: str, rows: abc.Sequence[str]) -> list[sa.TextClause]:
    statement = sa.text('SELECT id FROM dirty WHERE id IN :rows FOR UPDATE')
    chunks = [rows[start:start + CHUNK]
              for start in range(0, len(rows), CHUNK)]
    return [statement.bindparams(sa.bindparam('rows', chunk, expanding=True))
            for chunk in chunks]


def _range_locks(_url: str, _rows: abc.Sequence[str]) -> list[sa.TextClause]:
    # Also what will be inserted there.
    return [sa.text('SELECT id FROM dirty WHERE id >= :first FOR UPDATE'
                    ).bindparams(first=part.BAD_ROW)]


def _lease_locks(_url: str, _rows: abc.Sequence[str]) -> list[sa.TextClause]:
    return [sa.text('SELECT name FROM lease FOR UPDATE')]


LOCKS: dict[str, abc.Callable[
    [str, abc.Sequence[str]], list[sa.TextClause]]] = {
        'row-locked': _row_locks, 'range-locked': _range_locks,
        'lease-locked': _lease_locks,
        'table-locked': lambda url, _rows: _table_locks(url, JOURNAL[:1])}


@contextlib.contextmanager
def _written(lane: lanes.Lane) -> abc.Iterator[None]:
    """Hold the lock for writing of the journal's file."""
    with contextlib.closing(sqlite3.connect(
            lane.journal_file, LOCK_TIMEOUT, isolation_level=None,
            check_same_thread=False)) as connection:
        connection.execute('BEGIN EXCLUSIVE')
        yield


@contextlib.contextmanager
def _moved(lane: lanes.Lane) -> abc.Iterator[None]:
    """Put a file in the place of the directory of the journal's file."""
    folder = lane.journal_file.parent
    moved = folder.with_name('moved')
    folder.rename(moved)
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        moved.rename(folder)
