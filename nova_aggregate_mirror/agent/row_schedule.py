# SPDX-License-Identifier: Apache-2.0
"""Due times of journal rows, by one agent's monotonic clock: pure.

Rows wait by what they wait for. Of the rows that wait for a cell that does not
answer, one is tried per back-off of the cell. A row that failed for itself has
a due time of its own. A row that may hold up others is tried alone.

It is long because a row waits in one way at most, whatever it did before.
"""

import collections
from collections import abc
import dataclasses

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import backoff

NEEDED_SUCCESSES = 50
"""Rows that have to succeed alone before others are tried together again:
those of a batch in which one row may have delayed the others."""
FAILED_DELAY = 30.0
"""Seconds for which a row that failed for itself lets others go first."""


@dataclasses.dataclass(slots=True)
class _Timing:
    """When a row may be tried, and what it waits for."""

    row: journal.Brief
    since: float
    """When this agent first saw the row."""
    due: float
    """When it may be tried; of a row that waits for cells, since when."""
    has_failed: bool = False
    """Whether the row has failed for itself: rows that have not come first."""
    is_logged: bool = False
    """Whether the log has why the row is not mirrored."""
    cells: frozenset[str] = frozenset()
    lock: backoff.Backoff | None = None
    """The back-off of a row that is in sync and locked by another session."""


class Schedule:
    """Due times of the rows that an agent has seen, and which it may close.

    The age of a row counts from when this agent first saw it.

    :param overdue: seconds after which a running row is converged, and then
        the interval at which this is repeated
    :param longest: seconds after which no operation can still run
    """

    def __init__(self, overdue: float, longest: float,
                 now: abc.Callable[[], float]) -> None:
        self._overdue = overdue
        self._longest = longest
        self._now = now
        self._timings: dict[str, _Timing] = {}
        self._pauses: dict[str, backoff.Backoff] = {}
        """The back-offs of the cells that rows wait for."""
        self._alone: dict[str, bool] = {}
        """Rows that are tried alone, to whether they stay so when others that
        were tried alone have succeeded."""
        self._successes = 0
        """Rows tried alone in sequence that succeeded while others waited."""
        self._ready: collections.deque[str] = collections.deque()
        """Rows that were due when they were last sorted, next first."""
        self._retries: collections.deque[str] = collections.deque()
        """Likewise, those that have failed."""
        self._owes_turn = False
        """Whether the next batch is of rows that have failed."""
        self._new: list[str] = []
        """Rows that the last update added, or found handed over, to others."""

    def __len__(self) -> int:
        return len(self._timings)

    def update(self, rows: abc.Iterable[journal.Brief]) -> None:
        """Update the schedule with the rows that are in the journal now.

        A row that was handed over since is due immediately.
        """
        now, before = self._now(), self._timings
        self._timings, self._new = {}, []
        for row in rows:
            timing = previous = before.get(row.id)
            if timing is None:
                # The hand-over counted the first attempt.
                has_failed = row.attempts > 1
                timing = _Timing(
                    row, now, now + self._overdue if row.running else now,
                    has_failed, is_logged=has_failed)
            elif timing.row.running and not row.running:
                timing = _Timing(row, timing.since, now)
                self._alone.pop(row.id, None)
            timing.row = row
            self._timings[row.id] = timing
            if before and timing is not previous and not timing.has_failed:
                self._new.append(row.id)
        awaited = {cell for timing in self._timings.values()
                   for cell in timing.cells}
        self._pauses = {cell: pause for cell, pause in self._pauses.items()
                        if cell in awaited}
        self._alone = {row: stays for row, stays in self._alone.items()
                       if row in self._timings}
        self._ready.clear()
        self._retries.clear()

    def due_new(self, limit: int) -> list[str]:
        """Take due rows that the last update added, or found handed over.

        In a batch with others, one that is locked would delay them. Those
        above the limit, and those of the first update, are among the others.
        """
        rows, self._new = self._new, []
        return [row for row in rows if self._is_ready(row)][:limit]

    def due(self, limit: int) -> list[str]:
        """Take the rows of the next batch from those that are due.

        A row for each cell whose back-off is over; then rows that have not
        failed, the latest first: what has just been recorded does not wait
        for a backlog; or else the others, the longest overdue first. They
        share no batch, in which one that fails again would delay the rest.
        """
        rows = self._probes()
        if not (self._ready or self._retries):
            self._sort()
        # Rows that failed have their turn, however many others are recorded.
        ready = self._retries if self._retries and (
            self._owes_turn or not self._ready) else self._ready
        self._owes_turn = ready is self._ready and bool(self._retries)
        while ready and len(rows) < limit:
            row = ready.popleft()
            if self._is_ready(row):
                rows.append(row)
        return rows

    def has_due(self) -> bool:
        """Check whether further rows are due, as last sorted."""
        return bool(self._ready or self._retries or self.due_alone())

    def due_alone(self) -> str | None:
        """Return the row to try alone, the longest overdue; None if none is.

        Rows that failed for themselves come later: they would probably fail
        again, and only successes let others return to the batches.
        """
        now = self._now()
        timings = {row: self._timings[row] for row in self._alone}
        return min(
            (row for row, timing in timings.items() if timing.due <= now),
            key=lambda row: timings[row].due + (
                FAILED_DELAY if timings[row].has_failed else 0.0),
            default=None)

    def may_close(self, row: str) -> bool:
        """Check whether the operation of a row can no longer run."""
        timing = self._timings[row]
        return not timing.row.running or self._age(timing) >= self._longest

    def cells(self, row: str) -> frozenset[str]:
        """Return the cells that a row waits for."""
        return self._timings[row].cells

    def is_fresh(self, row: str) -> bool:
        """Check whether a row neither waits for cells nor has failed."""
        timing = self._timings[row]
        return not (timing.cells or timing.has_failed)

    def set_logged(self, row: str) -> bool:
        """Note that the log has why a row failed; return whether it is new."""
        timing = self._timings[row]
        is_new, timing.is_logged = not timing.is_logged, True
        return is_new

    def reschedule(self, row: str, seconds: float | None = None) -> None:
        """Reschedule a row that waits for nothing in particular.

        :param seconds: from now; by default the interval of running rows
        """
        timing = self._timings[row]
        timing.due = self._now() + (
            self._overdue if seconds is None else seconds)
        timing.cells, timing.lock = frozenset(), None
        self._alone.pop(row, None)

    def fail(self, row: str, seconds: float) -> None:
        """Reschedule a row that failed for itself, after some seconds."""
        self._timings[row].has_failed = True
        self.reschedule(row, seconds)

    def enqueue(self, row: str, cells: frozenset[str]) -> None:
        """Let a row wait for cells, behind those that wait for them."""
        self.reschedule(row, 0.0)
        self._timings[row].cells = cells
        for cell in cells:
            self._pauses.setdefault(cell, backoff.Backoff())

    def back_off(self, cells: abc.Iterable[str], began: float) -> None:
        """Begin the next back-off of cells that did not answer.

        :param began: when they were asked; rows that begin to wait for a cell
            during its back-off do not extend it
        """
        for cell in cells:
            pause = self._pauses.get(cell)
            if pause and pause.until <= began:
                pause.extend(self._now())

    def release(self, cells: frozenset[str]) -> None:
        """Make all rows due that wait for cells, as these answer."""
        for cell in cells & self._pauses.keys():
            del self._pauses[cell]
            for row, timing in self._timings.items():
                if cell in timing.cells:
                    self.reschedule(row, 0.0)

    def isolate(self, row: str, seconds: float, stays: bool) -> None:
        """Try a row alone, after some seconds.

        :param stays: whether the successes of others do not end that
        """
        self._timings[row].due = self._now() + seconds
        self._alone[row] = stays

    def isolate_locked(self, row: str) -> bool:
        """Try a row alone that is in sync, but locked by another session.

        :returns: whether this is the first time
        """
        timing = self._timings[row]
        is_first, lock = timing.lock is None, timing.lock or backoff.Backoff()
        lock.extend(self._now())
        timing.cells, timing.lock = frozenset(), lock
        self.isolate(row, lock.seconds, stays=True)
        return is_first

    def note_alone(self, succeeded: bool) -> None:
        """Note an attempt alone; enough successes let others join batches.

        A single row that hangs would delay each batch that it is in. Rows that
        stay alone do so until they succeed.
        """
        waiting = [row for row, stays in self._alone.items() if not stays]
        self._successes = self._successes + 1 if succeeded and waiting else 0
        if self._successes >= NEEDED_SUCCESSES:
            self._successes = 0
            for row in waiting:
                self.reschedule(row, 0.0)

    def close(self, row: str) -> None:
        """Remove a row that is not in the journal any more."""
        del self._timings[row]
        self._alone.pop(row, None)

    def backlog(self) -> journal.Backlog:
        """Return the backlog, with ages as seen by this agent."""
        pending = [self._age(timing) for timing in self._timings.values()
                   if timing.row.pending and not timing.lock]
        return journal.Backlog(len(pending), len(self._timings) - len(pending),
                               max(pending, default=0.0))

    def _probes(self) -> list[str]:
        """List the longest waiting row of each cell whose back-off is over."""
        now = self._now()
        cells = {cell for cell, pause in self._pauses.items()
                 if pause.until <= now}
        if not cells:
            return []
        waiting = [(row, timing) for row, timing in self._timings.items()
                   if timing.cells and timing.cells <= cells
                   and row not in self._alone]
        # The longest waiting row comes last, and replaces the others.
        probes = {cell: row for row, timing in sorted(
            waiting, key=lambda pair: -pair[1].due) for cell in timing.cells}
        return list(dict.fromkeys(probes.values()))

    def _sort(self) -> None:
        """Queue the rows that are due now, for the next batches."""
        ready = [(row, timing) for row, timing in self._timings.items()
                 if self._is_ready(row)]
        # The sort is stable: among rows seen together, the oldest is first.
        ready.sort(key=lambda pair: (
            pair[1].due if pair[1].has_failed else -pair[1].due))
        for row, timing in ready:
            (self._retries if timing.has_failed else self._ready).append(row)

    def _is_ready(self, row: str) -> bool:
        timing = self._timings.get(row)
        return bool(timing and timing.due <= self._now() and not timing.cells
                    and row not in self._alone)

    def _age(self, timing: _Timing) -> float:
        return self._now() - timing.since
