# SPDX-License-Identifier: Apache-2.0
"""Mirroring of the journal rows that are due, some batches per step.

Rule 14: a row is healthy, or has failed quickly and waits for a back-off of
its own, or is a suspect, which takes time and is tried alone; of those that
wait for a cell one is tried. It is long because what a row waits for, and what
becomes of it after an attempt, depend on each other.
"""

import collections
from collections import abc
import dataclasses
import heapq
import itertools
import math
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror.agent import metrics
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import lock_waits
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)

BATCH = 50
"""Rows per batch at most; a SIGTERM waits for one."""
ROWS = 3 * BATCH + 1
"""Rows of a step that may hang: new, healthy and failed ones, a suspect."""
SUSPECTS_TIME = 1.0
"""Seconds of a step in which further suspects are begun."""
RETRIABLE_BACKOFF, LONGEST_BACKOFF = 4.0, 30.0
"""Maximum seconds between attempts of a row that fails while others succeed;
the interval doubles each time. The first is for retriable errors."""
DELAY_FACTOR = 5.0
"""Back-off of a suspect, as a multiple of the seconds that it took."""
READ_INTERVAL, LONG_INTERVAL = 1.0, 10.0
"""Minimum seconds between two reads of the rows, and of a LONG_JOURNAL."""
LONG_JOURNAL = 10000
LEAST_TIMEOUT = 5.0
"""Minimum seconds for a request: it may include a token and the discovery of
placement, which would start again with each request that times out."""


def timeout(conf: cfg.ConfigOpts) -> float:
    """Return the seconds for a request, and for a row that hangs.

    New rows wait that long behind a row that hangs: it is no longer than this.
    """
    return max(float(conf.aggregate_mirror.inline_timeout), LEAST_TIMEOUT)


@dataclasses.dataclass(slots=True)
class _Row:
    """What this agent knows of a row, and what the row waits for."""

    brief: store.Brief
    since: float
    """When this agent first saw the row; its ages count from then."""
    due: float
    """When it may be tried; of a row that waits for cells, since when."""
    has_failed: bool = False
    """Whether the row has failed for itself: rows that have not come first."""
    is_logged: bool = False
    """Whether the log has why the row is not mirrored."""
    is_suspect: bool = False
    cells: frozenset[str] = frozenset()
    lock: backoff.Backoff | None = None
    """The back-off of a row that is in sync and locked by another session."""

    def wait(self, due: float, is_suspect: bool = False,
             cells: frozenset[str] = frozenset(),
             lock: backoff.Backoff | None = None) -> None:
        """Let the row wait for this, and for nothing else."""
        self.due, self.is_suspect = due, is_suspect
        self.cells, self.lock = cells, lock

    def is_ready(self, now: float) -> bool:
        """Check whether it may be in a batch."""
        return self.due <= now and not self.cells and not self.is_suspect


class Drain:
    """Mirroring of due journal rows."""

    def __init__(self, conf: cfg.ConfigOpts, rows: store.StoredRows,
                 reconciler: reconciler.Reconciler, figures: metrics.Metrics,
                 now: abc.Callable[[], float] = time.monotonic,
                 stopping: abc.Callable[[], bool] = lambda: False) -> None:
        options = conf.aggregate_mirror
        self._is_observer = nova_aggregate_mirror.conf.observes(conf)
        self._patience = timeout(conf)
        self._overdue = 2 * options.inline_timeout
        """Seconds until a running row is converged, and until it is again."""
        self._longest = options.max_call_age
        """Seconds after which an operation counts as ended."""
        self._rows, self._reconciler = rows, reconciler
        self._figures = figures
        self._now, self._stopping = now, stopping
        self._known: dict[str, _Row] = {}
        self._pauses: dict[str, backoff.Backoff] = {}
        """The back-offs of the cells that rows wait for."""
        self._new: collections.deque[str] = collections.deque()
        """Rows that were added, or handed over, when rows were last read."""
        self._healthy: collections.deque[str] = collections.deque()
        self._failed: collections.deque[str] = collections.deque()
        """Both: rows that were due when they were last sorted, next first."""
        self._has_more = False
        """Whether the last step left rows that are due."""
        self._read_at = -math.inf
        self._is_suspended = False
        self._unclosed: set[str] = set()
        """Rows that could not be written after a row was mirrored."""
        self._unusable: exceptions.MirrorError | None = None
        """Why not, if there are any."""
        self._suspension = metrics.Lasting(
            LOG.warning, 'Mirroring is suspended, operations stay in the '
            'journal: %s', 'Mirroring is resumed: placement and nova answer')

    def step(self) -> bool:
        """Mirror some batches; return whether more rows may be due now.

        While placement or nova is unavailable, each step only sends a probe,
        and rows keep their number of attempts.

        :raises JournalUnavailable: when the journal cannot be used
        """
        self._refresh()
        self._has_more = False  # Also if what follows raises.
        if self._is_observer:
            # Its rows are only counted, above: one that waits is a failure.
            return False
        try:
            self._has_more = self._mirror_due()
        finally:
            if not self._has_more:
                # Otherwise each worker's connection would stay open.
                self._reconciler.placement.release()
        if self._unusable and self._unclosed & self._known.keys():
            # Also while rows wait, until one is mirrored.
            raise self._unusable.with_traceback(None)
        return self._has_more

    def is_idle(self) -> bool:
        """Check whether no row is left of those that were last read."""
        return not self._known

    def _refresh(self) -> None:
        """Read what decides when rows are due, unless it was just read."""
        now = self._now()
        pause = READ_INTERVAL if self._has_more else 0.0
        if len(self._known) > LONG_JOURNAL:
            pause = LONG_INTERVAL
        if now < self._read_at + pause:
            # The last read still serves: without what was closed since.
            return
        self._update(self._rows.briefs())
        self._read_at = now
        # A locked row is in sync.
        ages = [now - row.since for row in self._known.values()
                if row.brief.pending and not row.lock]
        self._figures.set_backlog(
            len(ages), len(self._known) - len(ages), max(ages, default=0.0))

    def _update(self, briefs: abc.Iterable[store.Brief]) -> None:
        """Update what is known with the rows that are in the journal now."""
        now, before = self._now(), self._known
        self._known = {}
        for queue in self._new, self._healthy, self._failed:
            queue.clear()
        for brief in briefs:
            row = before.get(brief.id)
            if row is None:
                # The hand-over counted the first attempt.
                has_failed = brief.attempts > 1
                due = now + self._overdue if brief.running else now
                row = _Row(brief, now, due, has_failed, is_logged=has_failed)
            elif row.brief.running and not brief.running:
                # It was handed over, and is due immediately.
                row = _Row(brief, row.since, now)
            row.brief = brief
            self._known[brief.id] = row
            # Without rows to compare with, none is newer than the others.
            is_new = bool(before) and row is not before.get(brief.id)
            if is_new and not row.has_failed and row.is_ready(now):
                self._new.append(brief.id)
        awaited = frozenset(itertools.chain.from_iterable(
            row.cells for row in self._known.values()))
        self._pauses = {cell: pause for cell, pause in self._pauses.items()
                        if cell in awaited}

    def _mirror_due(self) -> bool:
        """Mirror what is due; return whether to go on at once."""
        if self._is_suspended and not self._probe():
            return False
        locks, has_progress = lock_waits.RowLocks(), False
        for ids, is_alone in self._batches():
            if not ids:
                continue
            has_progress |= self._mirror(ids, locks, is_alone)
            if self._is_suspended or locks.locked or self._stopping():
                # Further rows would wait in vain, or for locks once more.
                break
        return has_progress and bool(
            self._healthy or self._failed or self._due_suspects())

    def _batches(self) -> abc.Iterator[tuple[list[str], bool]]:
        """Yield IDs, and whether they are of a suspect.

        New rows come first: none waits for an older one that is locked.
        Healthy ones, the latest first, come before those that have failed.
        """
        # Before a batch adds to them.
        suspects, end = self._due_suspects(), self._now() + SUSPECTS_TIME
        yield self._take(self._new), False
        if not (self._healthy or self._failed):
            # All that was due when they were last sorted has been tried.
            self._sort()
        probes = self._probes()[:BATCH]
        yield probes + self._take(self._healthy, BATCH - len(probes)), False
        yield self._take(self._failed), False
        for suspect in suspects:
            yield [suspect], True
            row = self._known.get(suspect)
            if (row and row.is_suspect) or self._now() >= end:
                # The next one may hang as well.
                return

    def _take(self, queue: collections.deque[str], most: int = BATCH
              ) -> list[str]:
        """Take a batch of those that are still due."""
        now, batch = self._now(), list[str]()
        while queue and len(batch) < most:
            id = queue.popleft()
            row = self._known.get(id)
            if row and row.is_ready(now):
                batch.append(id)
        return batch

    def _sort(self) -> None:
        """Queue the rows that are due now, the latest healthy one first."""
        now, known = self._now(), self._known
        ready = [id for id, row in known.items() if row.is_ready(now)]
        for id in sorted(ready, key=lambda id: known[id].due):
            if known[id].has_failed:
                self._failed.append(id)
            else:
                self._healthy.appendleft(id)

    def _due_suspects(self) -> list[str]:
        """List due suspects, the longest overdue first."""
        now = self._now()
        due = [(row.due, id) for id, row in self._known.items()
               if row.is_suspect and row.due <= now]
        return [id for _due, id in heapq.nsmallest(BATCH, due)]

    def _probes(self) -> list[str]:
        """List the longest waiting row of each cell whose back-off is over."""
        now = self._now()
        over = {cell for cell, pause in self._pauses.items()
                if pause.until <= now}
        if not over:
            return []
        probes: dict[str, tuple[float, str]] = {}
        for id, row in self._known.items():
            if row.cells and row.cells <= over and not row.is_suspect:
                first = row.due, id
                for cell in row.cells:
                    probes[cell] = min(probes.get(cell, first), first)
        return list(dict.fromkeys(id for _due, id in probes.values()))

    def _mirror(self, ids: list[str], locks: lock_waits.RowLocks,
                is_alone: bool) -> bool:
        """Mirror rows, and let those wait that stay in the journal.

        :returns: whether there is progress: a row is mirrored, or fails for
            itself or waits for a cell for the first time
        """
        rows = self._read(ids)
        if not is_alone and len(rows) > 1:
            large = [row for row in rows
                     if len(row.dirty.nodes) >= full_sync.MANY_NODES]
            for row in large:
                self._known[row.id].wait(self._now(), is_suspect=True)
            rows = [row for row in rows if row not in large]
        if not rows:
            return True
        start = self._now()
        cells = {row: self._known[row.id].cells for row in rows}
        fresh = {row for row in rows if not (
            cells[row] or self._known[row.id].has_failed)}
        for row in rows:
            # If one raises an unexpected error, each is tried alone.
            known = self._known[row.id]
            known.is_suspect = True
            known.due = start + (LONGEST_BACKOFF if is_alone else 0.0)
        outcome = reconciler.drain(
            self._reconciler, rows, locks, self._patience if is_alone else 0.0)
        unfinished = outcome.unfinished
        errors = {row: unfinished[row.dirty] for row in rows
                  if row.dirty in unfinished}
        for row in rows:
            if row not in errors:
                self._settle(row, locks)
        silent = frozenset().union(
            *(error.cells for error in outcome.failed.values()))
        self._update_cells(cells, errors, silent, start)
        result = 'failure'
        try:
            self._handle_errors(
                errors, reconciler.waiting(outcome), locks, start, is_alone)
            if not locks.locked and all(
                    isinstance(error, exceptions.Stopped)
                    for error in errors.values()):
                result = 'success'
        finally:
            if self._is_suspended:
                result = 'unavailable'
            self._figures.observe_drain(
                result, self._now() - start, *associations.counts(outcome),
                outcome.conflicts)
        own = {row for row, error in errors.items() if not _is_shared(error)}
        return bool((set(rows) - errors.keys()) | (fresh & own))

    def _read(self, ids: list[str]) -> list[journal.Row]:
        """Read rows, in the given order; forget those that are gone."""
        rows = {row.id: row for row in self._rows.get(ids)}
        for id in set(ids) - rows.keys():
            del self._known[id]
        return [dataclasses.replace(rows[id], running=self._may_run(id))
                for id in ids if id in rows]

    def _may_run(self, id: str) -> bool:
        """Check whether the operation of a row may still run."""
        row = self._known[id]
        return row.brief.running and self._now() - row.since < self._longest

    def _settle(self, row: journal.Row, locks: lock_waits.RowLocks) -> None:
        """Forget a row that is in sync, or let it wait."""
        known, now = self._known[row.id], self._now()
        self._unusable = None
        self._unclosed.clear()
        if row.id in locks.waited:
            lock = known.lock
            if lock is None:
                lock = backoff.Backoff(longest=LONGEST_BACKOFF)
                LOG.warning('Host %s (request %s) is mirrored, but its row '
                            'stays in the journal: %s', row.dirty.host,
                            row.dirty.request_id or '-', locks.locked[row.id])
            lock.extend(now)
            known.wait(lock.until, is_suspect=True, lock=lock)
        elif row.id in locks.locked:
            # It was not tried, after waits for others; probably it is locked.
            known.has_failed = True
            known.wait(now)
        elif row.running:
            known.wait(now + self._overdue)
        else:
            del self._known[row.id]

    def _update_cells(self, cells: abc.Mapping[journal.Row, frozenset[str]],
                      errors: abc.Mapping[journal.Row, exceptions.MirrorError],
                      silent: frozenset[str], start: float) -> None:
        """Let rows wait for the cells that are silent, and for no other.

        :param cells: what each row waited for before this attempt
        """
        now = self._now()
        # An error of all rows shows nothing of their cells.
        shared = {row for row, error in errors.items() if _is_shared(error)}
        heard = (cells[row] for row in cells.keys() - shared)
        answered = frozenset().union(*heard) - silent
        if answered:
            for known in self._known.values():
                if known.cells & answered:
                    # Its next attempt shows for which it still waits.
                    known.wait(now)
        for cell in answered:
            self._pauses.pop(cell, None)
        for row, error in errors.items():
            if error.cells:
                self._known[row.id].wait(now, cells=error.cells)
            for cell in error.cells:
                self._pauses.setdefault(cell, backoff.Backoff())
        for cell in silent & self._pauses.keys():
            # Rows that begin to wait during a back-off do not extend it.
            if self._pauses[cell].until <= start:
                self._pauses[cell].extend(now)

    def _handle_errors(self, errors: dict[journal.Row, exceptions.MirrorError],
                       waiting: set[journal.Dirty], locks: lock_waits.RowLocks,
                       start: float, is_alone: bool) -> None:
        """Record why rows are not in sync, and let them wait.

        :param errors: loses those that say nothing about their row
        :raises JournalUnavailable: hosts are in sync, but not their rows
        """
        failed = {row: exc for row, exc in errors.items() if not exc.cells}
        if failed and (self._stopping() or not self._probe()):
            for row in failed:
                self._known[row.id].wait(self._now())
            return
        unusable = [error for error in failed.values()
                    if isinstance(error, exceptions.JournalUnavailable)]
        if unusable:
            for row in failed:
                self._known[row.id].wait(self._now() + RETRIABLE_BACKOFF)
            self._unusable = unusable[0]
            self._unclosed |= {row.id for row in failed}
            raise self._unusable
        for row, error in list(failed.items()):
            if isinstance(error, exceptions.NotTried):
                # It says nothing about the row, and is no attempt.
                self._known[row.id].wait(self._now())
                del errors[row], failed[row]
        for row, error in errors.items():
            known = self._known[row.id]
            if row.dirty not in waiting and not known.is_logged:
                known.is_logged = True
                LOG.warning('Host %s (request %s) is not mirrored yet: %s',
                            row.dirty.host, row.dirty.request_id or '-', error)
        texts = {row.id: str(error) for row, error in errors.items()}
        in_sync = [row.id for row in errors if row.dirty in waiting]

        def record(ids: list[str]) -> None:
            self._rows.set_failed({id: texts[id] for id in ids}, in_sync)

        locks.write(record, texts)
        for row, error in failed.items():
            self._postpone(row, error, row.id in locks.waited, start, is_alone)

    def _postpone(self, row: journal.Row, error: exceptions.MirrorError,
                  is_locked: bool, start: float, is_alone: bool) -> None:
        """Let a row wait after the attempt that began at ``start``."""
        known, now = self._known[row.id], self._now()
        longest = (RETRIABLE_BACKOFF if isinstance(error, exceptions.Retriable)
                   else LONGEST_BACKOFF)
        # Ten doublings exceed both; a float overflows after 1023.
        seconds = min(longest, 2.0 ** min(row.attempts, 10))
        if not _is_shared(error):
            known.has_failed = True
            # Each attempt at a locked row waits for its lock.
            known.wait(now + (LONGEST_BACKOFF if is_locked else seconds))
        elif is_alone:
            # It aborts every batch that it is in, or there is an outage that
            # the probe does not detect: each attempt delays all others.
            seconds = max(seconds, DELAY_FACTOR * (now - start))
            known.wait(now + min(LONGEST_BACKOFF, seconds), is_suspect=True)
        else:
            # Each of them is tried alone, which shows the one at fault.
            known.wait(now, is_suspect=True)

    def _probe(self) -> bool:
        """Check that placement and nova answer; suspend mirroring if not."""
        failure = (exceptions.failure_of(self._reconciler.placement.probe)
                   or exceptions.failure_of(self._reconciler.nova.aggregates))
        self._is_suspended = bool(failure)
        self._suspension.follow(failure.failure if failure else None)
        return not self._is_suspended


def _is_shared(error: exceptions.MirrorError) -> bool:
    """Check whether an error may concern all rows, not only one of them."""
    is_of_row = error.is_of_provider or isinstance(
        error, exceptions.CellUnavailable)
    return error.is_outage or not is_of_row
