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
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)
BATCH = 50
"""Rows per batch at most; a SIGTERM waits for the current batch."""
ROWS = 3 * BATCH + 1
"""Rows that may hang in one step: three batches, and a suspect alone."""
SUSPECTS_TIME = 1.0
"""Seconds from the start of a step in which another suspect is begun."""
RETRIABLE_BACKOFF, LONGEST_BACKOFF = 4.0, 30.0
"""Maximum seconds between attempts of a row that fails while others succeed;
the interval doubles each time. The first is for retriable errors."""
DELAY_FACTOR = 5.0
"""Back-off of a suspect, as a multiple of the seconds of its attempt."""
READ_INTERVAL, LONG_INTERVAL = 1.0, 10.0
"""Minimum seconds between two reads of the rows, and of a LONG_JOURNAL."""
LONG_JOURNAL = 10000  # Rows.
LEAST_TIMEOUT = 5.0
"""Minimum seconds for a request: it may include a token and the discovery of
placement, which would start again with each request that times out."""


def timeout(conf: cfg.ConfigOpts) -> float:
    """Return the seconds for a request, and for a row that hangs.

    It is kept this short because new rows wait behind a row that hangs.
    """
    return max(float(conf.aggregate_mirror.inline_timeout), LEAST_TIMEOUT)


@dataclasses.dataclass(slots=True)
class _Row:
    """What this agent knows of a row, and what the row waits for."""

    brief: store.Brief
    first_seen: float
    """When this agent first read the row, whose ages count from then."""
    due: float
    """When it may be tried; if it waits for cells: since when it does."""
    has_failed: bool = False
    """Whether an attempt failed by the row itself: others come first."""
    is_logged: bool = False
    """Whether the log has why the row is not mirrored."""
    is_suspect: bool = False
    """Whether it takes time, and is tried alone."""
    cells: frozenset[str] = frozenset()
    """The cells that it waits for."""
    lock: backoff.Backoff | None = None
    """The back-off of a row that is in sync, but locked by another session."""

    def wait(self, due: float, is_suspect: bool = False,
             cells: frozenset[str] = frozenset(),
             lock: backoff.Backoff | None = None) -> None:
        """Let the row wait for what is given, and for nothing else."""
        self.due, self.is_suspect = due, is_suspect
        self.cells, self.lock = cells, lock

    def is_ready(self, now: float) -> bool:
        """Check whether the row may be in a batch now."""
        return self.due <= now and not self.cells and not self.is_suspect


class Drain:
    def __init__(self, conf: cfg.ConfigOpts, rows: store.StoredRows,
                 reconciler: reconciler.Reconciler, figures: metrics.Metrics,
                 now: abc.Callable[[], float] = time.monotonic,
                 stopping: abc.Callable[[], bool] = lambda: False) -> None:
        options = conf.aggregate_mirror
        self._is_observer = nova_aggregate_mirror.conf.observes(conf)
        self._patience = timeout(conf)
        self._overdue = 2 * options.inline_timeout
        """Seconds until a running row is converged, and until it is again."""
        self._max_call_age = options.max_call_age
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
        """Both queues: rows that were due at the last ``_sort``."""
        self._has_more = False
        """Whether the last step left rows that are due."""
        self._read_at = -math.inf
        self._is_suspended = False
        self._unwritten: dict[str, exceptions.MirrorError] = {}
        """Rows of mirrored hosts, to why the journal could not be written."""
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
            # Rows are only counted, above: no success while one is pending.
            return False
        try:
            self._has_more = self._mirror_due()
        finally:
            if not self._has_more:
                # An idle connection for each worker would stay open.
                self._reconciler.placement.release()
        errors = [error for id, error in self._unwritten.items()
                  if id in self._known]
        if errors:
            # Each step raises, even one without rows, until a row is mirrored.
            raise errors[-1].with_traceback(None)
        return self._has_more

    def is_idle(self) -> bool:
        """Check whether none of the rows that were last read is left."""
        return not self._known

    def _refresh(self) -> None:
        """Read which rows there are, unless they were just read."""
        now = self._now()
        pause = READ_INTERVAL if self._has_more else 0.0
        if len(self._known) > LONG_JOURNAL:
            pause = LONG_INTERVAL
        if now < self._read_at + pause:
            # What was read is still used, without the rows closed since.
            return
        self._update(self._rows.briefs())
        self._read_at = now
        # A row that is only locked is in sync, and not pending.
        ages = [now - row.first_seen for row in self._known.values()
                if row.brief.pending and not row.lock]
        self._figures.set_backlog(
            len(ages), len(self._known) - len(ages), max(ages, default=0.0))

    def _update(self, briefs: abc.Iterable[store.Brief]) -> None:
        """Keep what is known of the rows in the journal; add the new rows."""
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
                row = _Row(brief, row.first_seen, now)
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
        locks, has_progress = reconciler.RowLocks(), False
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
        """Yield the IDs of a batch, and whether it is a suspect alone.

        New rows come first: none waits for an older one that is locked.
        Healthy ones, the latest first, come before those that have failed.
        """
        # Listed first: those that the batches add are for later steps.
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
        """Take a batch out of a queue, of rows that are still due."""
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
        due_cells = {cell for cell, pause in self._pauses.items()
                     if pause.until <= now}
        if not due_cells:
            return []
        probes: dict[str, tuple[float, str]] = {}
        for id, row in self._known.items():
            if row.cells and row.cells <= due_cells and not row.is_suspect:
                candidate = row.due, id
                for cell in row.cells:
                    probes[cell] = min(probes.get(cell, candidate), candidate)
        return list(dict.fromkeys(id for _due, id in probes.values()))

    def _mirror(self, ids: list[str], locks: reconciler.RowLocks,
                is_alone: bool) -> bool:
        """Mirror rows, and let those wait that stay in the journal.

        :returns: whether there is progress: a row is mirrored, or has an error
            of its own, or waits for a cell, for the first time
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
        awaited = {row: self._known[row.id].cells for row in rows}
        fresh = {row for row in rows if not (
            awaited[row] or self._known[row.id].has_failed)}
        for row in rows:
            # Suspects for now: after an unexpected error each is tried alone.
            known = self._known[row.id]
            known.is_suspect = True
            known.due = start + (LONGEST_BACKOFF if is_alone else 0.0)
        outcome = reconciler.drain(
            self._reconciler, rows, locks,
            patience=self._patience if is_alone else 0.0)
        unfinished = outcome.unfinished
        errors = {row: unfinished[row.dirty] for row in rows
                  if row.dirty in unfinished}
        for row in rows:
            if row not in errors:
                self._settle(row, locks)
        silent = frozenset().union(
            *(error.cells for error in outcome.failed.values()))
        self._update_cells(awaited, errors, silent, start)
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
                conflicts=outcome.conflicts)
        failed_alone = {
            row for row, error in errors.items() if not _is_shared(error)}
        return bool((set(rows) - errors.keys()) | (fresh & failed_alone))

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
        age = self._now() - row.first_seen
        return row.brief.running and age < self._max_call_age

    def _settle(self, row: journal.Row, locks: reconciler.RowLocks) -> None:
        """Forget a row that is in sync, or let it wait."""
        known, now = self._known[row.id], self._now()
        self._unwritten.clear()
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
            # After waits for other rows it was not written; it may be locked.
            known.has_failed = True
            known.wait(now)
        elif row.running:
            known.wait(now + self._overdue)
        else:
            del self._known[row.id]

    def _update_cells(self, awaited: abc.Mapping[journal.Row, frozenset[str]],
                      errors: abc.Mapping[journal.Row, exceptions.MirrorError],
                      silent: frozenset[str], start: float) -> None:
        """Let rows wait for the cells that are silent, and for no other.

        :param awaited: the cells that each row waited for before its attempt
        """
        now = self._now()
        # An error of all rows does not show whether their cells answered.
        shared = {row for row, error in errors.items() if _is_shared(error)}
        asked = (awaited[row] for row in awaited.keys() - shared)
        answered = frozenset().union(*asked) - silent
        if answered:
            for known in self._known.values():
                if known.cells & answered:
                    # The next attempt shows which cells it still waits for.
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
                       waiting: set[journal.Dirty], locks: reconciler.RowLocks,
                       start: float, is_alone: bool) -> None:
        """Record why rows are not in sync, and let them wait.

        :param errors: those that say nothing about their row are taken out
        :raises JournalUnavailable: rows of hosts in sync cannot be written
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
                self._unwritten[row.id] = unusable[0]
            raise unusable[0]
        for row, error in list(failed.items()):
            if isinstance(error, exceptions.NotTried):
                # There was no attempt at the row.
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
        # Ten doublings exceed each maximum; a float overflows after 1023.
        seconds = min(longest, 2.0 ** min(row.attempts, 10))
        if not _is_shared(error):
            known.has_failed = True
            # Each attempt at a locked row waits for its lock.
            known.wait(now + (LONGEST_BACKOFF if is_locked else seconds))
        elif is_alone:
            # The row aborts each batch that it is in, or there is an outage
            # that the probe does not detect: an attempt delays all other rows.
            seconds = max(seconds, DELAY_FACTOR * (now - start))
            known.wait(now + min(LONGEST_BACKOFF, seconds), is_suspect=True)
        else:
            # Each row of the batch is tried alone, to see which is at fault.
            known.wait(now, is_suspect=True)

    def _probe(self) -> bool:
        """Check that placement and nova answer; suspend mirroring if not."""
        failure = (exceptions.failure_of(self._reconciler.placement.probe)
                   or exceptions.failure_of(self._reconciler.nova.aggregates))
        self._is_suspended = bool(failure)
        self._suspension.log_failures(failure.failure if failure else None)
        return not self._is_suspended


def _is_shared(error: exceptions.MirrorError) -> bool:
    """Check whether an error may concern all rows, not only one of them."""
    is_of_row = error.is_of_provider or isinstance(
        error, exceptions.CellUnavailable)
    return error.is_outage or not is_of_row
