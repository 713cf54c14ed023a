# SPDX-License-Identifier: Apache-2.0
"""Due times of journal rows, by one agent's monotonic clock: pure.

Rows wait by what they wait for. A row that waits for cells is in the queue of
each of these cells; while a cell does not answer, one row of its queue is
tried per back-off. A row that failed for itself has a due time of its own. A
row that may hold up others is tried alone.

It is long because a row is in one queue at most, whichever it comes from.
"""

import collections
from collections import abc
import dataclasses
import itertools

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
    has_failed: bool = False
    """Whether the row has failed for itself: rows that have not come first."""
    is_reported: bool = False
    """Whether the log has why the row is not mirrored."""
    cells: frozenset[str] = frozenset()
    lock: backoff.Backoff | None = None
    """The back-off of a row that is in sync and locked by another session."""


@dataclasses.dataclass(slots=True)
class _Queue:
    """Rows that wait for a cell, and when the next one is tried."""

    rows: dict[str, None] = dataclasses.field(default_factory=dict)
    pause: backoff.Backoff = dataclasses.field(
        default_factory=backoff.Backoff)


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
        self._queues: dict[str, _Queue] = {}
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
        """Rows that the last update made due at once, beside others."""

    def __len__(self) -> int:
        return len(self._timings)

    def update(self, rows: abc.Iterable[journal.Brief]) -> None:
        """Update the schedule with the rows that are in the journal now.

        A row that was handed over since is due immediately.
        """
        now, before = self._now(), self._timings
        has_others = bool(before)
        self._timings, self._new = {}, []
        for row in rows:
            timing = before.pop(row.id, None)
            is_new = timing is None
            if timing is None:
                timing = _Timing(
                    row, now, now + self._overdue if row.running else now,
                    has_failed=row.attempts > 1, is_reported=row.attempts > 1)
            elif timing.row.running and not row.running:
                self._dequeue(row.id, timing)
                timing.due = now
                timing.has_failed = timing.is_reported = False
                is_new = True
            timing.row = row
            self._timings[row.id] = timing
            if is_new and has_others and not timing.has_failed:
                self._new.append(row.id)
        for row_id, timing in before.items():
            self._dequeue(row_id, timing)
        self._ready.clear()
        self._retries.clear()

    def due_new(self, limit: int) -> list[str]:
        """Take rows that the last update made due at once, beside others.

        In a batch with others, one that is locked would delay them. Those
        above the limit are among the others from now on.
        """
        rows, self._new = self._new, []
        return [row for row in rows if row in self._timings
                and self._is_ready(row, self._timings[row])][:limit]

    def due(self, limit: int) -> list[str]:
        """Take the rows of the next batch from those that are due.

        A row for each cell whose back-off is over; then rows that have not
        failed, the latest first: what has just been recorded does not wait
        for a backlog; or else the others, the longest overdue first. They
        share no batch, in which one that fails again would delay the rest.
        """
        rows = dict.fromkeys(self._probes())
        if not (self._ready or self._retries):
            self._sort()
        # Rows that failed have their turn, however many others are recorded.
        ready = self._retries if self._retries and (
            self._owes_turn or not self._ready) else self._ready
        self._owes_turn = ready is self._ready and bool(self._retries)
        while ready and len(rows) < limit:
            row = ready.popleft()
            timing = self._timings.get(row)
            if timing and self._is_ready(row, timing):
                rows[row] = None
        return list(rows)

    def has_due(self) -> bool:
        """Check whether further rows are due, as last sorted."""
        return bool(self._ready or self._retries or self.due_alone())

    def due_alone(self) -> str | None:
        """Return the row to try alone, the longest overdue.

        Rows that failed for themselves come later: alone, others end an
        outage.
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

    def report(self, row: str) -> bool:
        """Note that the log has why a row failed; return if this is new."""
        timing = self._timings[row]
        is_new, timing.is_reported = not timing.is_reported, True
        return is_new

    def reschedule(self, row: str, seconds: float | None = None) -> None:
        """Reschedule a row that waits for nothing in particular.

        :param seconds: from now; by default the interval of running rows
        """
        timing = self._timings[row]
        self._dequeue(row, timing)
        if seconds is None:
            seconds = self._overdue
        if not seconds:
            (self._retries if timing.has_failed else self._ready).append(row)
        timing.due = self._now() + seconds

    def fail(self, row: str, seconds: float) -> None:
        """Reschedule a row that failed for itself, after some seconds."""
        self._timings[row].has_failed = True
        self.reschedule(row, seconds)

    def enqueue(self, row: str, cells: frozenset[str]) -> None:
        """Put a row at the end of the queues of cells."""
        timing = self._timings[row]
        for cell in cells:
            queue = self._queues.setdefault(cell, _Queue())
            queue.rows.pop(row, None)
            queue.rows[row] = None
        # After that: a queue without rows is forgotten with its back-off.
        timing.cells -= cells
        self._dequeue(row, timing)
        timing.cells = cells

    def back_off(self, cells: abc.Iterable[str], began: float) -> None:
        """Begin the next back-off of cells that did not answer.

        :param began: when they were asked; rows that join a queue during its
            back-off do not extend it
        """
        for cell in cells:
            queue = self._queues.get(cell)
            if queue and queue.pause.until <= began:
                queue.pause.extend(self._now())

    def release(self, cells: abc.Iterable[str]) -> None:
        """Make all rows due that wait for cells, as these answer."""
        for cell in cells:
            queue = self._queues.pop(cell, _Queue())
            for row in queue.rows:
                self.reschedule(row, 0.0)

    def isolate(self, row: str, seconds: float, stays: bool) -> None:
        """Try a row alone, after some seconds.

        :param stays: whether the successes of others do not end that
        """
        self._alone.pop(row, None)
        self._alone[row] = stays
        self._timings[row].due = self._now() + seconds

    def isolate_locked(self, row: str) -> bool:
        """Try a row alone that is in sync, but locked by another session.

        :returns: whether this is the first time
        """
        timing = self._timings[row]
        is_first, lock = timing.lock is None, timing.lock or backoff.Backoff()
        lock.extend(self._now())
        self._dequeue(row, timing)
        timing.lock = lock
        self.isolate(row, lock.until - self._now(), stays=True)
        return is_first

    def note_alone(self, succeeded: bool) -> None:
        """Note an attempt alone; after enough successes batches may follow.

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
        self._dequeue(row, self._timings.pop(row))

    def backlog(self) -> journal.Backlog:
        """Return the backlog, with ages as seen by this agent."""
        pending = [self._age(timing) for timing in self._timings.values()
                   if timing.row.pending and not timing.lock]
        return journal.Backlog(len(pending), len(self._timings) - len(pending),
                               max(pending, default=0.0))

    def _probes(self) -> abc.Iterable[str]:
        """Find the first row of each queue that may be tried now."""
        now = self._now()
        for queue in self._queues.values():
            if queue.pause.until > now:
                continue
            yield from itertools.islice((
                row for row in queue.rows if row not in self._alone and all(
                    self._queues[cell].pause.until <= now
                    for cell in self._timings[row].cells)), 1)

    def _sort(self) -> None:
        ready = [(row, timing) for row, timing in self._timings.items()
                 if self._is_ready(row, timing)]
        # The sort is stable: among rows seen together, the oldest is first.
        ready.sort(key=lambda pair: (
            pair[1].due if pair[1].has_failed else -pair[1].due))
        for row, timing in ready:
            (self._retries if timing.has_failed else self._ready).append(row)

    def _is_ready(self, row: str, timing: _Timing) -> bool:
        return (timing.due <= self._now() and not timing.cells
                and row not in self._alone)

    def _dequeue(self, row: str, timing: _Timing) -> None:
        """Let a row wait for nothing: no cell, no turn alone, no lock."""
        for cell in timing.cells & self._queues.keys():
            queue = self._queues[cell]
            queue.rows.pop(row, None)
            if not queue.rows:
                del self._queues[cell]
        self._alone.pop(row, None)
        timing.cells, timing.lock = frozenset(), None

    def _age(self, timing: _Timing) -> float:
        return self._now() - timing.since
