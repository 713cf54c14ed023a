# SPDX-License-Identifier: Apache-2.0
"""Mirroring of the journal rows that are due, one batch per step.

It is long because what becomes of a row after a step is decided in one place.
"""

from collections import abc
import dataclasses
import math
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import row_schedule
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import lock_waits
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)

# Rows per batch; a SIGTERM waits for one.
BATCH = 50
# Rows of a step at most: new ones, others, and one that is tried alone.
ROWS = 2 * BATCH + 1
# Compute nodes of a host from which on its row is tried alone: two requests
# for each of them would delay the others of a batch.
MANY_NODES = 20
# Maximum seconds between attempts of a row that fails while others succeed;
# the interval doubles each time; RETRIABLE_BACKOFF is for retriable errors.
RETRIABLE_BACKOFF = 4.0
LONGEST_BACKOFF = 30.0
# Back-off of a row that delays others, as a multiple of its last attempt.
DELAY_FACTOR = 5.0
# Rows are read at most once in READ_INTERVAL seconds; of a LONG_JOURNAL, once
# in LONG_INTERVAL seconds.
READ_INTERVAL, LONG_INTERVAL = 1.0, 10.0
LONG_JOURNAL = 10000

# Minimum seconds for a request, however short users' requests are: it may
# include a token and the discovery of placement, which would start again with
# each request that times out.
LEAST_TIMEOUT = 5.0

Errors = abc.Mapping[journal.Row, exceptions.MirrorError]


def timeout(conf: cfg.ConfigOpts) -> float:
    """Return the seconds for a request, and for a row that hangs.

    New rows wait as long for it: more would delay the recovery.
    """
    return max(float(conf.aggregate_mirror.inline_timeout), LEAST_TIMEOUT)


class Drain:
    """Mirroring of due journal rows."""

    def __init__(self, conf: cfg.ConfigOpts, rows: rows.Rows,
                 reconciler: reconciler.Reconciler, figures: metrics.Metrics,
                 now: abc.Callable[[], float] = time.monotonic,
                 stopping: abc.Callable[[], bool] = lambda: False) -> None:
        options = conf.aggregate_mirror
        self._is_observer = nova_aggregate_mirror.conf.observes(conf)
        self._patience = timeout(conf)
        self._rows = rows
        self._reconciler = reconciler
        self._context = reconciler.context
        self._figures = figures
        self._now = now
        self._stopping = stopping
        self._schedule = row_schedule.Schedule(
            2 * options.inline_timeout, options.max_call_age, now)
        self._has_more = False
        """Whether the last step left rows that are due."""
        self._read_at = -math.inf
        self._outage = ''
        """Why mirroring is suspended; empty when it is not."""

    def step(self) -> bool:
        """Mirror one batch; return whether more rows may be due now.

        While placement or nova is unavailable, each step only sends a probe,
        and rows keep their number of attempts.

        :raises JournalUnavailable: when the journal cannot be used
        """
        continued, self._has_more = self._has_more, False
        self._refresh(continued)
        if self._is_observer:
            # Rows are counted: one that waits is a failure.
            return False
        try:
            self._has_more = self._mirror_due()
        finally:
            if not self._has_more:
                # Otherwise as many connections would stay open as workers
                # were ever busy at once.
                self._context.placement.release()
        return self._has_more

    def is_idle(self) -> bool:
        """Check whether no row is left of those that were last read."""
        return not self._schedule

    def _refresh(self, continued: bool) -> None:
        """Read what decides when rows are due.

        :param continued: whether the last step was just before
        """
        now, pause = self._now(), READ_INTERVAL if continued else 0.0
        if len(self._schedule) > LONG_JOURNAL:
            pause = LONG_INTERVAL
        if now < self._read_at + pause:
            # What this process has closed is no longer in the schedule.
            return
        self._schedule.update(self._rows.briefs())
        self._read_at = now
        self._figures.set_backlog(self._schedule.backlog())

    def _mirror_due(self) -> bool:
        """Mirror up to ``ROWS`` rows; return whether to go on at once."""
        locks, has_progress = lock_waits.RowLocks(), False
        for ids, alone in self._batches():
            if not ids:
                continue
            if self._outage and not self._probe():
                return False
            has_progress |= self._mirror(ids, locks, alone)
            if self._outage or locks.locked:
                break
        return has_progress and self._schedule.has_due()

    def _batches(self) -> abc.Iterator[tuple[list[str], bool]]:
        """Yield IDs, and whether to try them alone: new rows, others, one."""
        # Before a batch adds to the rows that are tried alone.
        isolated = self._schedule.due_alone()
        yield self._schedule.due_new(BATCH), False
        yield self._schedule.due(BATCH), False
        yield [isolated] if isolated else [], True

    def _mirror(self, ids: list[str], locks: lock_waits.RowLocks, alone: bool
                ) -> bool:
        """Mirror rows and reschedule them.

        :param alone: whether this is a row that may hold up others
        :returns: whether any is mirrored, or failed for itself, or waits for
            a cell, for the first time
        """
        rows = self._rows_of(ids)
        if not alone and len(rows) > 1:
            for row in rows:
                if len(row.dirty.nodes) >= MANY_NODES:
                    self._schedule.isolate(row.id, 0.0, stays=False)
            rows = [row for row in rows if len(row.dirty.nodes) < MANY_NODES]
        if not rows:
            return True
        start = self._now()
        cells = {row: self._schedule.cells(row.id) for row in rows}
        fresh = {row for row in rows if self._schedule.is_fresh(row.id)}
        # If one row raises an unexpected error, each is tried alone.
        for row in rows:
            self._schedule.isolate(
                row.id, LONGEST_BACKOFF if alone else 0.0, stays=alone)
        outcome = self._reconciler.drain(
            rows, locks, self._patience if alone else 0.0)
        errors = {row: outcome.unfinished[row.dirty] for row in rows
                  if row.dirty in outcome.unfinished}
        if alone:
            self._schedule.note_alone(not errors)
        for row in rows:
            if row not in errors:
                self._reschedule(row, locks)
        self._update_queues(
            cells, errors, _silent_cells(outcome.failed.values()), start)
        self._handle_errors(errors, outcome.waiting, locks, start, alone)
        self._figures.observe_drain(
            'unavailable' if self._outage
            else 'failure' if errors or locks.locked else 'success',
            self._now() - start, *outcome.counts(), outcome.conflicts)
        return any(row not in errors or row in fresh and not _is_shared(
            errors[row]) for row in rows)

    def _rows_of(self, ids: list[str]) -> list[journal.Row]:
        """Read the rows that still exist, in the given order."""
        rows = {row.id: row for row in self._rows.get(ids)}
        for row in ids:
            if row not in rows:
                self._schedule.close(row)
        # A row whose operation must have ended counts as handed over.
        return [dataclasses.replace(
            rows[row], running=not self._schedule.may_close(row))
            for row in ids if row in rows]

    def _reschedule(self, row: journal.Row, locks: lock_waits.RowLocks
                    ) -> None:
        """Reschedule a row that is in sync, or remove it."""
        if row.id in locks.waited:
            if self._schedule.isolate_locked(row.id):
                LOG.warning('Host %s (request %s) is mirrored, but its row '
                            'stays in the journal: %s', row.dirty.host,
                            row.dirty.request_id or '-', locks.locked[row.id])
        elif row.id in locks.locked:
            # It was not tried: this step has waited long enough for others.
            # Probably it is locked as well.
            self._schedule.fail(row.id, 0.0)
        elif row.running:
            self._schedule.reschedule(row.id)
        else:
            self._schedule.close(row.id)

    def _update_queues(self, cells: abc.Mapping[journal.Row, frozenset[str]],
                       errors: Errors, silent: frozenset[str], start: float
                       ) -> None:
        """Release the rows of cells that answered, queue those of the others.

        :param cells: the cells that rows waited for
        :param silent: the cells that did not answer for any node
        """
        answered = frozenset().union(*(
            cells[row] for row in cells
            if not _is_shared(errors.get(row))))
        self._schedule.release(answered - silent)
        for row, error in errors.items():
            if _silent_cells([error]):
                self._schedule.enqueue(row.id, _silent_cells([error]))
        self._schedule.back_off(silent, start)

    def _handle_errors(
            self, errors: dict[journal.Row, exceptions.MirrorError],
            waiting: set[journal.Dirty],
            locks: lock_waits.RowLocks, start: float, alone: bool) -> None:
        """Record why rows are not in sync, and reschedule them."""
        failed = {row: error for row, error in errors.items()
                  if not _silent_cells([error])}
        if failed and (self._stopping() or not self._probe()):
            for row in failed:
                self._schedule.reschedule(row.id, 0.0)
            return
        untried = {row for row, error in failed.items()
                   if isinstance(error, exceptions.NotTried)}
        for row in untried:
            del errors[row], failed[row]
            self._schedule.reschedule(row.id, 0.0)
        for row, error in errors.items():
            if row.dirty not in waiting and self._schedule.set_logged(row.id):
                LOG.warning('Host %s (request %s) is not mirrored yet: %s',
                            row.dirty.host, row.dirty.request_id or '-', error)
        if errors:
            texts = {row.id: str(error) for row, error in errors.items()}
            in_sync = [row.id for row in errors if row.dirty in waiting]
            locks.write(lambda ids, lock_wait: self._rows.set_failed(
                {row: texts[row] for row in ids}, lock_wait, in_sync), texts)
        for row, error in failed.items():
            if _is_shared(error):
                # An outage that the probe does not detect, or a row that ends
                # every batch that it is in: each attempt delays all others.
                seconds = max(_backoff(row, error),
                              DELAY_FACTOR * (self._now() - start))
                self._schedule.isolate(
                    row.id, min(LONGEST_BACKOFF, seconds) if alone else 0.0,
                    stays=alone)
            else:
                self._schedule.fail(
                    row.id, LONGEST_BACKOFF if row.id in locks.waited
                    else _backoff(row, error))

    def _probe(self) -> bool:
        """Check whether placement and nova's API database answer."""
        outage = ''
        try:
            self._context.placement.probe()
            self._context.nova.aggregates()
        except exceptions.MirrorError as exc:
            outage = str(exc)
        if outage and not self._outage:
            LOG.warning('Mirroring is suspended, operations stay in the '
                        'journal: %s', outage)
        elif self._outage and not outage:
            LOG.info('Mirroring is resumed: placement and nova answer')
        self._outage = outage
        return not outage


def _is_shared(error: exceptions.MirrorError | None) -> bool:
    """Check whether an error may concern all rows, not only one of them."""
    return error is not None and (error.is_outage or not (
        error.is_of_provider or isinstance(
            error, exceptions.CellUnavailable)))


def _silent_cells(errors: abc.Iterable[exceptions.MirrorError]
                  ) -> frozenset[str]:
    """Return the cells that did not answer, according to errors of rows."""
    return frozenset().union(*(
        error.cells for error in errors
        if isinstance(error, exceptions.CellUnavailable)))


def _backoff(row: journal.Row, error: exceptions.MirrorError) -> float:
    """Return the seconds before a failed row is retried."""
    longest = (RETRIABLE_BACKOFF if isinstance(error, exceptions.Retriable)
               else LONGEST_BACKOFF)
    # A float overflows after 1023 doublings, about nine hours.
    return min(longest, 2.0 ** min(row.attempts, 10))
