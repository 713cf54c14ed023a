# SPDX-License-Identifier: Apache-2.0
"""How each party of a lane fails, and how it comes back."""

from collections import abc
import contextlib
import sqlite3
import threading

from tests.cloud.outages import cases
from tests.cloud.outages import lane as lanes
from tests.cloud import sql

# Tables that calls use.
JOURNAL = ('dirty', 'ledger')
LOCKED = {
    'journal-mysql': JOURNAL, 'journal-postgresql': JOURNAL,
    'api-database': ('aggregates', 'aggregate_hosts'),
    'cell': ('services', 'compute_nodes'),
    'other-cell': ('services', 'compute_nodes')}
# Seconds; longer than anything that was begun before.
LOCK_TIMEOUT = 10
# The share of inline_timeout after which a party comes back: longer than a
# statement may take.
RETURNS_AFTER = 0.6


class Fault:
    """The fault of a case on a lane: ``begin`` it once, and ``end`` it."""

    def __init__(self, lane: lanes.Lane, case: cases.Case) -> None:
        self._lane = lane
        self._case = case
        self._undo = contextlib.ExitStack()
        self._mutex = threading.Lock()

    def begin(self) -> None:
        """Make the party fail; it may come back by itself."""
        party, fault = self._case.party, self._case.fault
        if party == 'journal-sqlite':
            self._undo.enter_context(
                _moved(self._lane) if fault == 'refuses'
                else _written(self._lane))
        elif fault == 'locks':
            self._undo.enter_context(_locked(self._lane, party))
        else:
            wire = self._lane.wires[party]
            self._undo.callback(wire.forward)
            {'refuses': wire.refuse, 'silent': wire.hold,
             'middle': wire.truncate, 'returns': wire.hold}[fault]()
        if fault == 'returns':
            timer = threading.Timer(
                RETURNS_AFTER * self._lane.inline_timeout, self.end)
            timer.daemon = True
            timer.start()

    def end(self) -> None:
        """Make the party answer again, unless it does."""
        with self._mutex:
            self._undo.close()


@contextlib.contextmanager
def _locked(lane: lanes.Lane, party: str) -> abc.Iterator[None]:
    """Lock the tables of a database on a server."""
    if party.startswith('journal'):
        url = lane.journal_url()
    else:
        url = lane.database(lane.cells.get(party, 'nova_api'))
    with sql.engine(url).connect() as connection:
        if connection.dialect.name == 'postgresql':
            statements = (
                "SET LOCAL lock_timeout = '%ds'" % LOCK_TIMEOUT,
                'LOCK TABLE %s' % ', '.join(LOCKED[party]))
        else:
            statements = (
                'SET SESSION lock_wait_timeout = %d' % LOCK_TIMEOUT,
                'LOCK TABLES %s' % ', '.join(
                    '%s WRITE' % table for table in LOCKED[party]))
        for each in statements:
            connection.exec_driver_sql(each)
        yield


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
