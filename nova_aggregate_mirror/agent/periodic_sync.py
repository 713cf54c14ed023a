# SPDX-License-Identifier: Apache-2.0
"""Runs a full sync when it is due, and reports what it found."""

from collections.abc import Callable
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler

LOG = logging.getLogger(__name__)

Note = Callable[[full_sync.Request, float,
                 full_sync.Sync | exceptions.MirrorError], None]
"""Writes a sync into the history: what was asked for, how many seconds it
took, and what became of it; raises JournalUnavailable."""


class PeriodicSync:
    """Compares everything when it is due.

    :param note: writes each sync into the history
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 reconciler: reconciler.Reconciler, figures: agent.Figures,
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
        became = self._run(request)
        if became is None:
            return None
        seconds = self._now() - start
        if isinstance(became, full_sync.Sync):
            self._tell(became, seconds)
        else:
            self._say('nothing could be compared: %s' % became)
            self._figures.synced('failure', seconds)
        self._remember(request, seconds, became)
        return became if isinstance(became, full_sync.Sync) else None

    def _run(self, request: full_sync.Request
             ) -> full_sync.Sync | exceptions.MirrorError | None:
        """Run one; None when this process was told to end in the midst."""
        try:
            sync = full_sync.run(self._reconciler, request=request)
        except exceptions.Stopped:
            return None
        except exceptions.MirrorError as exc:
            # Logged by the caller: oslo.log would add it while it is handled.
            return exc
        errors = [sync.not_compared] if sync.not_compared else [
            *sync.outcome.unfinished.values(), *sync.outcome.failed.values()]
        if any(isinstance(exc, exceptions.Stopped) for exc in errors):
            return None
        return sync.not_compared or sync

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

    def _tell(self, result: full_sync.Sync, seconds: float) -> None:
        outcome = result.outcome
        added, removed = outcome.counts()
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
