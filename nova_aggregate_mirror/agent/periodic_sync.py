# SPDX-License-Identifier: Apache-2.0
"""Periodic full syncs, with their log lines and metrics."""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)

Note = Callable[[full_sync.Request, float,
                 full_sync.Sync | exceptions.MirrorError], None]
"""Writes a sync to the history: request, duration in seconds, and result or
error; raises JournalUnavailable."""


class PeriodicSync:
    """Runner of full syncs when they are due.

    :param note: writes each sync to the history
    :param zones: returns aggregate UUID to availability zone
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 reconciler: reconciler.Reconciler, figures: agent.Figures,
                 now: Callable[[], float] = time.monotonic,
                 note: Note = lambda *_what: None,
                 zones: Callable[[], Mapping[str, str]] = dict) -> None:
        self._conf = conf
        self._reconciler = reconciler
        self._figures = figures
        self._now = now
        self._note = note
        self._zones = zones
        self._zone_of: Mapping[str, str] = {}
        self._due = now()
        self._trouble = self._unnoted = ''
        self._failed: frozenset[str] = frozenset()
        """Providers for which the last sync failed."""

    def step(self) -> full_sync.Sync | None:
        """Run a full sync when it is due, and report its result."""
        start = self._now()
        if start < self._due:
            return None
        options = self._conf.aggregate_mirror
        self._due = start + options.sync_interval
        request = full_sync.Request(
            options.max_removed_share if options.prune else None,
            last=self._failed)
        became = self._run(request)
        self._reconciler.context.placement.release()
        if became is None:
            return None
        seconds = self._now() - start
        if isinstance(became, full_sync.Sync):
            self._tell(became, seconds)
        else:
            self._say('nothing could be compared: %s' % became)
            self._figures.observe_sync('failure', seconds)
        self._remember(request, seconds, became)
        return became if isinstance(became, full_sync.Sync) else None

    def _run(self, request: full_sync.Request
             ) -> full_sync.Sync | exceptions.MirrorError | None:
        """Run a full sync; None when this process stops during it."""
        try:
            sync = full_sync.run(self._reconciler, request=request)
        except exceptions.Stopped:
            return None
        except exceptions.MirrorError as exc:
            # Logged by the caller: inside this handler, oslo.log would append
            # the exception to the line.
            return exc
        errors = [sync.not_compared] if sync.not_compared else [
            *sync.outcome.unfinished.values(), *sync.outcome.failed.values()]
        if any(isinstance(exc, exceptions.Stopped) for exc in errors):
            return None
        return sync.not_compared or sync

    def _remember(self, request: full_sync.Request, seconds: float,
                  became: full_sync.Sync | exceptions.MirrorError
                  ) -> None:
        """Write the sync to the history; log a lasting failure once."""
        unnoted = ''
        try:
            self._note(request, seconds, became)
        except exceptions.JournalUnavailable as exc:
            unnoted = str(exc)
        # A failure of the whole journal is logged by the drain loop.
        if unnoted and not self._unnoted and not isinstance(
                became, exceptions.JournalUnavailable):
            LOG.warning('This sync is missing in the history: %s', unnoted)
        self._unnoted = unnoted

    def _tell(self, result: full_sync.Sync, seconds: float) -> None:
        outcome = result.outcome
        self._failed = frozenset(
            subject.uuid for subject, error in outcome.failed.items()
            if isinstance(subject, full_sync.Provider)
            and not isinstance(error, exceptions.NotTried))
        added, removed = outcome.counts()
        if outcome.changes:
            LOG.info('Full sync: %s in %.1f seconds',
                     plurals.associations(added, removed), seconds)
        troubles = sorted('%s: %s' % failed
                          for failed in outcome.failed.items())
        if result.refused:
            LOG.error('Full sync: removals refused: %s. If they are correct, '
                      'temporarily raise [aggregate_mirror] '
                      'max_removed_share; if not, check nova\'s database',
                      result.refused)
        self._say('; '.join(troubles))
        self._figures.observe_sync(
            'failure' if troubles else 'success', seconds, added, removed,
            self._by_zone(result.drift), bool(result.refused),
            outcome.conflicts)

    def _by_zone(self, drift: comparison.Drift
                 ) -> Mapping[tuple[str, str], int]:
        """Count associations by zone and direction; each zone has both."""
        # What was read before is better than nothing for a metric.
        with contextlib.suppress(exceptions.NovaUnavailable):
            self._zone_of = self._zones()
        found = {(zone, direction): 0 for direction in agent.DIRECTIONS
                 for zone in ('', *self._zone_of.values())}
        for direction, counts in zip(
                agent.DIRECTIONS, (drift.missing, drift.stale)):
            for uuid, count in counts.items():
                found[self._zone_of.get(uuid, ''), direction] += count
        return found

    def _say(self, trouble: str) -> None:
        """Log a lasting problem once, not at each sync."""
        if trouble and trouble != self._trouble:
            LOG.warning('Full sync: %s', trouble)
        elif self._trouble and not trouble:
            LOG.info('Full sync: the previous errors are resolved')
        self._trouble = trouble
