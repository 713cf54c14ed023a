# SPDX-License-Identifier: Apache-2.0
"""Mirroring of the journal rows that are due, one batch per step."""

from collections.abc import Callable
import dataclasses
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import agent
from nova_aggregate_mirror.agent import schedule
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)

# Rows per batch; a SIGTERM waits for one batch.
BATCH = 50
# Maximum seconds between attempts of a row that fails while others succeed;
# the interval doubles each time. SOON applies to retriable errors.
SOON = 4.0
LONGEST_BACKOFF = 30.0


class Drain:
    """Mirroring of due journal rows.

    :param conf: nova's configuration, with this package's options
    :param now: seconds of a monotonic clock
    """

    def __init__(self, conf: cfg.ConfigOpts, rows: rows.Rows,
                 reconciler: reconciler.Reconciler, figures: agent.Figures,
                 now: Callable[[], float] = time.monotonic,
                 stopping: Callable[[], bool] = lambda: False) -> None:
        options = conf.aggregate_mirror
        self._rows = rows
        self._reconciler = reconciler
        self._context = reconciler.context
        self._figures = figures
        self._now = now
        self._stopping = stopping
        self._schedule = schedule.Schedule(
            2 * options.inline_timeout, options.max_call_age, now)
        self._limit = BATCH
        self._outage = ''
        """Why mirroring is suspended; empty when it is not."""

    def step(self) -> bool:
        """Mirror one batch; return whether more rows may be due now.

        While placement or nova is unavailable, each step only sends a probe,
        and rows keep their number of attempts.

        :raises JournalUnavailable: when the journal cannot be used
        """
        again = False
        try:
            again = self._batch()
        finally:
            if not again:
                # Otherwise as many connections would stay open as workers
                # were ever busy at once.
                self._context.placement.release()
        return again

    def _batch(self) -> bool:
        self._schedule.see(self._rows.briefs())
        self._figures.backlog(self._schedule.backlog())
        due = self._schedule.due(self._limit)
        if not due or (self._outage and not self._answers()):
            return False
        # A row whose operation must have ended counts as handed over.
        rows = [dataclasses.replace(
            row, running=not self._schedule.may_close(row.id))
            for row in self._rows.some(due)]
        start, tried = self._now(), self._limit
        # If a row raises an unexpected error, the other rows come first.
        self._limit = 1
        for row in rows:
            self._schedule.again(row.id, LONGEST_BACKOFF)
        outcome = self._reconciler.drain(rows)
        left = self._keep(rows, outcome)
        # If nothing succeeds, there may be an outage that the probe does not
        # detect: retry with one row until it succeeds, not with all rows.
        self._limit = (1 if left and not outcome.done and not self._outage
                       else BATCH)
        self._figures.drained(
            'unavailable' if self._outage
            else 'failure' if left else 'success',
            self._now() - start, *outcome.counts(), outcome.conflicts)
        return not left and len(due) == tried

    def _keep(self, rows: list[journal.Row],
              outcome: outcome.Outcome) -> bool:
        """Reschedule the rows that stay open; return whether any failed."""
        failed = {row: outcome.unfinished[row.dirty] for row in rows
                  if row.dirty in outcome.unfinished}
        for row in rows:
            if row.running and row not in failed:
                self._schedule.again(row.id)
        if failed and (self._stopping() or not self._answers()):
            for row in failed:
                self._schedule.again(row.id, 0.0)
            return True
        for row, error in failed.items():
            # Log a row once, not at each attempt.
            if row.attempts < 2:
                LOG.warning('Host %s (request %s) is not mirrored yet: %s',
                            row.dirty.host, row.dirty.request_id or '-', error)
            self._schedule.again(row.id, _backoff(row, error))
        if failed:
            self._rows.failed({
                row.id: str(error) for row, error in failed.items()})
        return bool(failed)

    def _answers(self) -> bool:
        """Check whether placement and nova's API database answer."""
        outage = ''
        try:
            self._context.placement.probe()
            self._context.nova.place(0)
        except exceptions.MirrorError as exc:
            outage = str(exc)
        if outage and not self._outage:
            LOG.warning('Mirroring is suspended, operations stay in the '
                        'journal: %s', outage)
        elif self._outage and not outage:
            LOG.info('Mirroring is resumed: placement and nova answer')
        self._outage = outage
        return not outage


def _backoff(row: journal.Row, error: exceptions.MirrorError) -> float:
    """Return the seconds before a failed row is retried."""
    longest = (SOON if isinstance(error, exceptions.Retriable)
               else LONGEST_BACKOFF)
    # A float overflows after 1023 doublings, about nine hours.
    return min(longest, 2.0 ** min(row.attempts, 10))
