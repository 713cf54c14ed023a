# SPDX-License-Identifier: Apache-2.0
"""Nova's cells: the cell mappings, and bounded reads across cells.

It is long because the wait for one cell depends on the reads of all.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import queue
import threading
import time
from typing import Any

from nova.conf import CONF
import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import nova_tables
from nova_aggregate_mirror.source import url_templates
from nova_aggregate_mirror import uuids

CELL0 = '00000000-0000-0000-0000-000000000000'

AT_ONCE = 1.0
"""Seconds to wait for a silent cell, and at least for any other while hosts of
other cells wait as well."""
SOON = 5.0
"""Seconds after which a query of some hosts ends."""
SLOWER = 4.0
"""How many times as long as its last answer a cell may take."""
LATEST = 2.0
"""Seconds after which a cell is late while hosts of other cells wait as well:
they may have to wait for two reads."""

Nodes = abc.Collection[tuple[str | None, str]]
"""Compute nodes as nova has them, each with its host."""
Query = abc.Callable[[Any], Nodes]
Reads = abc.Mapping[str, abc.Callable[[], Nodes]]
Answers = abc.Mapping[str, Nodes | exceptions.CellUnavailable]

COLUMNS = (*nova_tables.cell_mappings.c,)
"""Columns that ``cell_of`` requires in a row."""
EVERY = sa.select(*COLUMNS).order_by(nova_tables.cell_mappings.c.id)
"""Every cell, and cell0, oldest first."""


def _read_in_order(reads: Reads, full: bool) -> Answers:
    """Read the cells in this thread, in order.

    This is for nova-api, where no threads may be started.
    """
    return {name: _attempt(read) for name, read in reads.items()}


class Threads:
    """Reads cells in parallel, with at most one query of a kind per cell.

    A cell that did not answer in time is silent until it has answered again:
    it is queried, but waited for only one second, and that not during its
    back-off. An error after a wait is no answer: the driver gave up.

    :param timeout: seconds to wait for the nodes of a whole cell
    :param wait_for_some: seconds to wait for the nodes of some hosts
    """

    def __init__(self, timeout: float, wait_for_some: float) -> None:
        self._timeout = timeout
        self._wait_for_some = wait_for_some
        self._running: set[tuple[str, bool]] = set()
        self._silent: dict[str, backoff.Backoff] = {}
        self._took: dict[str, float] = {}
        """Seconds that the last answer about some hosts took, per cell."""

    def read(self, reads: Reads, full: bool) -> Answers:
        """Read cells; the answer of one that fails is ``CellUnavailable``.

        :param reads: name of the cell to a function that reads it
        :param full: whether whole cells are read, and waited for as long, and
            not the nodes of some hosts; the two do not wait for each other
        """
        answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        began, answered = time.monotonic(), dict[str, Any]()
        waits: dict[str, float] = {}
        for name, read in reads.items():
            if self._start(name, read, answers, full):
                waits[name] = self._time_limit(name, full)
        with contextlib.suppress(queue.Empty):
            while pending := waits.keys() - answered.keys():
                end = began + max(waits[name] for name in pending)
                name, answer = answers.get(
                    timeout=max(0.0, end - time.monotonic()))
                answered[name] = answer
                if isinstance(answer, exceptions.CellUnavailable) and (
                        time.monotonic() - began >= AT_ONCE):
                    self._back_off(name)
        for name, seconds in waits.items():
            # What was not waited for shows nothing new.
            if seconds and name not in answered:
                self._back_off(name)
        return {name: answered[name] if name in answered
                else _no_answer(name, waits.get(name, 0.0)) for name in reads}

    def _back_off(self, name: str) -> None:
        self._silent.setdefault(name, backoff.Backoff()).extend(
            time.monotonic())

    def _time_limit(self, name: str, full: bool) -> float:
        """Return the seconds for which a cell is waited for; 0 for none.

        :param full: see ``read``; no back-off then leaves a cell out
        """
        silence = self._silent.get(name)
        if silence and not full and time.monotonic() < silence.until:
            return 0.0
        if silence:
            # Its last query still runs, or this is one to see whether it
            # answers again.
            return AT_ONCE
        if full:
            return self._timeout
        slower = min(LATEST, SLOWER * self._took.get(name, 0.0))
        return min(self._timeout, max(self._wait_for_some, slower))

    def _start(self, name: str, read: abc.Callable[[], Nodes],
               answers: 'queue.SimpleQueue[tuple[str, Any]]',
               full: bool) -> bool:
        """Start a query; return False if one of its kind still runs."""
        if (name, full) in self._running:
            return False

        def work() -> None:
            began = time.monotonic()
            # For an error that ``_attempt`` does not return.
            answer: Nodes | exceptions.CellUnavailable = (
                exceptions.CellUnavailable.of(causes.UNASKED.with_detail(
                    'an unexpected error, whose traceback is on the standard '
                    'error'), causes.cell(name)))
            try:
                answer = _attempt(read)
            finally:
                took = time.monotonic() - began
                if not isinstance(answer, exceptions.CellUnavailable):
                    if not full:
                        self._took[name] = took
                    if took < self._timeout:
                        self._silent.pop(name, None)
                # Before the answer: the next query may follow at once.
                self._running.discard((name, full))
                answers.put((name, answer))

        # A daemon thread: a thread blocked on a socket cannot be stopped and
        # must not keep the process from exiting.
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._running.add((name, full))
        try:
            thread.start()
        except RuntimeError:
            self._running.discard((name, full))
            raise
        return True


def _no_answer(name: str, waited: float) -> exceptions.CellUnavailable:
    return exceptions.CellUnavailable.of(
        causes.silent(waited) if waited
        else causes.not_again(causes.silent(0)), causes.cell(name))


def _attempt(read: abc.Callable[[], Nodes]
             ) -> Nodes | exceptions.CellUnavailable:
    """Read a cell; return a failure as a value, for the other cells."""
    try:
        return read()
    except exceptions.CellUnavailable as exc:
        return exc


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell that can have compute nodes."""

    id: int
    uuid: str
    name: str
    """Unique; the name to display."""
    connection: str = dataclasses.field(repr=False)
    party: causes.Party = dataclasses.field(repr=False, compare=False)


class Cells:
    """Cells of this deployment, each with a separate connection pool.

    Nova caches the list of cells, and targets request contexts at them.
    Reading the mappings each time finds added cells.

    :param threads: whether to start threads, which nova-api must not
    :param skip_late: whether a late cell is left out, because hosts of other
        cells wait as well
    """

    def __init__(self, limits: engines.Limits, threads: bool,
                 skip_late: bool) -> None:
        # For whole cells, and for the nodes of some hosts.
        self._limits = self._limits_some = limits
        if skip_late:
            self._limits_some = dataclasses.replace(
                limits, answer=min(limits.answer, SOON))
        self._read_cells = Threads(
            limits.answer, AT_ONCE if skip_late else limits.answer
        ).read if threads else _read_in_order
        self._pools: dict[tuple[str, bool], connections.Pool] = {}
        """Connection URL, and whether whole cells are read, to the pool."""

    def all(self, connection: Any) -> list[Cell]:
        """Read every cell except cell0, oldest first."""
        return [cell_of(row) for row in connection.execute(EVERY)
                if row.uuid != CELL0]

    def rows(self, queries: abc.Mapping[Cell, Query], full: bool = False
             ) -> tuple[list[source.NodeRow], source.Down]:
        """Run a query in each of the given cells.

        :param full: see ``Threads.read``
        :returns: the nodes of the cells that answered, and the cells that did
            not
        """
        answers = self._read_cells({
            cell.name: functools.partial(self._read, cell, query, full)
            for cell, query in queries.items()}, full)
        rows: list[source.NodeRow] = []
        down: dict[str, exceptions.Failure] = {}
        for name, answer in sorted(answers.items()):
            if isinstance(answer, exceptions.CellUnavailable):
                down[name] = answer.failure
            else:
                # Nova's column is nullable.
                rows += [source.NodeRow(
                    name, uuids.canonical(node or ''), host)
                    for node, host in answer]
        return rows, down

    def ask(self, cell: Cell, query: abc.Callable[[Any], Any], default: Any,
            down: dict[str, exceptions.Failure]) -> Any:
        """Run a query in one cell; return the default without an answer.

        :param down: receives a cell that does not answer in time
        """
        answer = self._read_cells({cell.name: functools.partial(
            self._read, cell, query, full=True)}, full=True)[cell.name]
        if isinstance(answer, exceptions.CellUnavailable):
            down[cell.name] = answer.failure
            return default
        return answer

    def _read(self, cell: Cell, query: abc.Callable[[Any], Any],
              full: bool) -> Any:
        """Run a query in a cell, and translate its errors."""
        with engines.translated(
                cell.party, lambda _error: exceptions.CellUnavailable,
                connections.ERRORS):
            return self._query(cell, query, full)

    def _query(self, cell: Cell, query: abc.Callable[[Any], Any],
               full: bool) -> Any:
        if not cell.connection.strip():
            raise exceptions.CellUnavailable.of(
                causes.UNASKED.with_detail('it has no URL'), cell.party)
        pool = self._pools.setdefault(
            (cell.connection, full), connections.Pool(
                lambda: cell.connection, CONF.database,
                self._limits if full else self._limits_some))
        with pool.reading() as connection:
            return query(connection)


def cell_of(row: Any) -> Cell:
    """Build the cell from a row that has ``COLUMNS``."""
    # Nova's column is nullable; such a cell is not read.
    template, name = row.database_connection or '', full_name(row)
    return Cell(id=row.id, uuid=row.uuid, name=name,
                connection=url_templates.fill_in(template, CONF),
                party=causes.cell(name, template))


def full_name(mapping: Any) -> str:
    """Return the name and UUID of a cell mapping: what messages call it."""
    return '%s (%s)' % (mapping.name or 'unnamed', mapping.uuid)
