# SPDX-License-Identifier: Apache-2.0
"""Mirrors what the journal holds every second, and everything now and then."""

from collections.abc import Callable
import dataclasses
import threading
import time
from typing import Protocol

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror import schedule
from nova_aggregate_mirror import source

LOG = logging.getLogger(__name__)

# Rows in one go: what a SIGTERM waits for.
BATCH = 50
DRAIN_INTERVAL = 1.0
# Seconds between two attempts of a row that alone fails: double each time, up
# to the first of these if the failure may end at any time, or to the second.
SOON = 4.0
LONGEST_BACKOFF = 30.0

Note = Callable[[full_sync.Request, float,
                 full_sync.Sync | exceptions.MirrorError], None]
"""Writes a sync into the history: what was asked for, how many seconds it
took, and what became of it; raises JournalUnavailable."""


class Figures(Protocol):
    """Where an agent leaves its figures; see ``metrics``."""

    def backlog(self, backlog: journal.Backlog) -> None:
        """How much is left in the journal."""

    def drained(self, result: str, seconds: float, added: int,
                removed: int) -> None:
        """One batch of the journal was worked on."""

    def synced(self, result: str, seconds: float, added: int = 0,
               removed: int = 0, drift: int | None = None,
               refused: bool = False) -> None:
        """One full sync ended."""

    def leading(self, leads: bool) -> None:
        """Whether this agent is the one that works."""

    def beat(self, loop: str) -> None:
        """This loop is alive."""


class Drain:
    """Mirrors what is due in the journal.

    :param conf: nova's configuration, with this package's options
    :param now: seconds of a clock that is never set
    """

    def __init__(self, conf: cfg.ConfigOpts, rows: rows.Rows,
                 reconciler: reconciler.Reconciler,
                 source: source.Source,
                 report: client.Client, figures: Figures,
                 now: Callable[[], float] = time.monotonic,
                 stopping: Callable[[], bool] = lambda: False) -> None:
        options = conf.aggregate_mirror
        self._rows = rows
        self._reconciler = reconciler
        self._source = source
        self._report = report
        self._figures = figures
        self._now = now
        self._stopping = stopping
        self._schedule = schedule.Schedule(
            2 * options.inline_timeout, options.max_call_age, now)
        self._limit = BATCH
        self._away = ''
        """Why nothing can be mirrored at all; empty when it can."""

    def step(self) -> bool:
        """Mirror one batch; returns whether there may be more to do at once.

        While placement or nova is away one request asks whether it is back.
        The rows are not touched meanwhile: it is not their fault.

        :raises JournalUnavailable: when the journal cannot be used
        """
        self._schedule.see(self._rows.briefs())
        self._figures.backlog(self._schedule.backlog())
        due = self._schedule.due(self._limit)
        if not due or (self._away and not self._answers()):
            return False
        # What is long over is closed as if it had been handed over.
        rows = [dataclasses.replace(
            row, running=not self._schedule.may_close(row.id))
            for row in self._rows.some(due)]
        start, tried = self._now(), self._limit
        # After an unexpected error of one of them the others are tried.
        self._limit = 1
        for row in rows:
            self._schedule.again(row.id, LONGEST_BACKOFF)
        outcome = self._reconciler.drain(rows)
        left = self._keep(rows, outcome)
        # When nothing succeeds it may be an outage that the probe does not
        # see: then one row shows when it is over, and not all of them.
        self._limit = (1 if left and not outcome.done and not self._away
                       else BATCH)
        self._figures.drained(
            'unavailable' if self._away else 'failure' if left else 'success',
            self._now() - start, *_counts(outcome))
        return not left and len(due) == tried

    def _keep(self, rows: list[journal.Row],
              outcome: outcome.Outcome) -> bool:
        """Leave what is not closed to a later step; returns if any failed."""
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
            # Once, and not at every attempt.
            if row.attempts < 2:
                LOG.warning('Host %s (request %s) is not mirrored yet: %s',
                            row.dirty.host, row.dirty.request_id or '-', error)
            self._schedule.again(row.id, _backoff(row, error))
        if failed:
            self._rows.failed({
                row.id: str(error) for row, error in failed.items()})
        return bool(failed)

    def _answers(self) -> bool:
        """Whether placement and nova's database answer at all."""
        away = ''
        try:
            self._report.probe()
            self._source.place(0)
        except exceptions.MirrorError as exc:
            away = str(exc)
        if away and not self._away:
            LOG.warning('Nothing can be mirrored; the journal keeps it: %s',
                        away)
        elif self._away and not away:
            LOG.info('Placement and nova answer again')
        self._away = away
        return not away


class Sync:
    """Compares everything when it is due.

    :param note: writes each sync into the history
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 reconciler: reconciler.Reconciler, figures: Figures,
                 now: Callable[[], float] = time.monotonic,
                 note: Note = lambda *_what: None) -> None:
        self._conf = conf
        self._reconciler = reconciler
        self._figures = figures
        self._now = now
        self._note = note
        self._due = now()
        self._trouble = self._unnoted = ''

    def step(self) -> full_sync.Sync | None:
        """Run a full sync when it is due, and say what it found."""
        start = self._now()
        if start < self._due:
            return None
        options = self._conf.aggregate_mirror
        self._due = start + options.sync_interval
        request = full_sync.Request(
            options.max_removed_share if options.prune else None)
        result, error = None, None
        try:
            result = full_sync.run(self._reconciler, request=request)
            if result.not_compared:
                raise result.not_compared
        except exceptions.Stopped:
            return None
        except exceptions.MirrorError as exc:
            # Told below: oslo.log would tell it twice while it is handled.
            result, error = None, exc
        if self._left(result):
            return None
        seconds = self._now() - start
        if error:
            self._say('nothing could be compared: %s' % error)
            self._figures.synced('failure', seconds)
        else:
            self._tell(result, seconds)
        self._remember(request, seconds, error or result)
        return result

    def _remember(self, request: full_sync.Request, seconds: float,
                  became: full_sync.Sync | exceptions.MirrorError
                  ) -> None:
        """Write it into the history; if that fails, it is said once."""
        unnoted = ''
        try:
            self._note(request, seconds, became)
        except exceptions.JournalUnavailable as exc:
            unnoted = str(exc)
        # What is wrong with the whole journal, the other loop says.
        if unnoted and not self._unnoted and not isinstance(
                became, exceptions.JournalUnavailable):
            LOG.warning('The history of syncs lacks this one: %s', unnoted)
        self._unnoted = unnoted

    @staticmethod
    def _left(result: full_sync.Sync | None) -> bool:
        """Whether this process was told to end in the midst of it."""
        return result is not None and any(
            isinstance(exc, exceptions.Stopped)
            for exc in (*result.outcome.unfinished.values(),
                        *result.outcome.failed.values()))

    def _tell(self, result: full_sync.Sync, seconds: float) -> None:
        outcome = result.outcome
        added, removed = _counts(outcome)
        if outcome.changes:
            LOG.info('Full sync: %d associations added, %d removed in %.1f '
                     'seconds', added, removed, seconds)
        troubles = sorted('%s: %s' % failed
                          for failed in outcome.failed.items())
        if result.refused:
            LOG.error('Full sync: nothing was removed: %s. If that is right, '
                      'raise [aggregate_mirror] max_removed_share for a '
                      'while; if not, look at nova\'s database',
                      result.refused)
        self._say('; '.join(troubles))
        self._figures.synced(
            'failure' if troubles else 'success', seconds, added, removed,
            result.drift, bool(result.refused))

    def _say(self, trouble: str) -> None:
        """Log what is wrong once, not at every sync."""
        if trouble and trouble != self._trouble:
            LOG.warning('Full sync: %s', trouble)
        elif self._trouble and not trouble:
            LOG.info('Full sync: everything could be mirrored again')
        self._trouble = trouble


class Agent:
    """The two loops, each in a thread of its own, and who may do what.

    :param drain: mirrors what the journal holds
    :param sync: compares everything
    :param lease: whose holder alone drains and syncs
    :param binding: keeps the agent of another nova from the lease
    :param stop: is set to end the loops, and seen within their steps
    """

    def __init__(self, drain: Drain, sync: Sync, lease: lease.Lease,
                 binding: binding.Binding, figures: Figures,
                 stop: threading.Event) -> None:
        self._drain = drain
        self._sync = sync
        self._lease = lease
        self._binding = binding
        self._figures = figures
        self._stop = stop
        self._leads = self._bound = False
        self._troubles = dict.fromkeys(('drain', 'lease'), '')
        """Why a loop can do nothing; empty when it can."""
        self._threads = [
            threading.Thread(target=self._loop, name=name, args=(name, step))
            for name, step in (('drain', self._drain_step),
                               ('lease', self._lease_step),
                               ('sync', self._sync_step))]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the step in hand, and let another agent lead."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._leads:
            try:
                self._lease.leave()
            except exceptions.JournalUnavailable as exc:
                LOG.info('The lease runs out by itself: %s', exc)

    def _loop(self, name: str, step: Callable[[], bool]) -> None:
        while not self._stop.is_set():
            again = False
            try:
                again = step()
            except Exception:
                # One surprise must not end the process that repairs.
                LOG.exception('The %s loop failed; it goes on', name)
            self._figures.beat(name)
            if not again:
                self._stop.wait(DRAIN_INTERVAL)

    def _drain_step(self) -> bool:
        again, trouble = False, ''
        try:
            again = self._leads and self._drain.step()
        except exceptions.JournalUnavailable as exc:
            trouble = str(exc)
        self._say('drain', trouble)
        return again

    def _lease_step(self) -> bool:
        leads, trouble = False, ''
        try:
            if not self._bound:
                self._binding.bind()
                self._bound = True
            leads = self._lease.step()
        except exceptions.MirrorError as exc:
            trouble = str(exc)
        self._say('lease', trouble)
        if leads != self._leads:
            LOG.info('This agent %s', 'leads: it drains the journal and does '
                     'the full syncs' if leads else 'does not lead any more')
        self._leads = leads
        self._figures.leading(leads)
        return False

    def _sync_step(self) -> bool:
        if self._leads and self._sync.step() is not None:
            # Cells come and go one by one: the journal is bound to them again.
            self._bound = False
        return False

    def _say(self, loop: str, trouble: str) -> None:
        """Log what is wrong once, whichever loop finds it first."""
        before = any(self._troubles.values())
        self._troubles[loop] = trouble
        if trouble and not before:
            LOG.error('Nothing in the journal can be mirrored: %s', trouble)
        elif before and not any(self._troubles.values()):
            LOG.info('The journal can be used again')


def _counts(outcome: outcome.Outcome) -> tuple[int, int]:
    return (sum(len(change.add) for change in outcome.changes),
            sum(len(change.remove) for change in outcome.changes))


def _backoff(row: journal.Row, error: exceptions.MirrorError) -> float:
    """Seconds that a row waits which failed although others may not."""
    longest = (SOON if isinstance(error, exceptions.Retriable)
               else LONGEST_BACKOFF)
    # A float has room for 1023 doublings: nine hours.
    return min(longest, 2.0 ** min(row.attempts, 10))
