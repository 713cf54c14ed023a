# SPDX-License-Identifier: Apache-2.0
"""Periodic full syncs, with their log lines and metrics."""

from collections import abc
import contextlib
import dataclasses
import itertools
import time

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import commands
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result

LOG = logging.getLogger(__name__)


class PeriodicSync:
    """Runner of full syncs when they are due.

    :param note: writes a sync, of some seconds and with a result, to the
        history, or raises JournalUnavailable
    :param zones: reads the zone of each aggregate that has one, by its UUID
    :param disagreements: finds nova-api processes with another mode
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 reconciler: reconciler.Reconciler, figures: metrics.Metrics,
                 now: abc.Callable[[], float] = time.monotonic,
                 note: abc.Callable[[float, result.Result], None] = (
                     lambda *_result: None),
                 zones: abc.Callable[[], abc.Mapping[str, str]] = dict,
                 disagreements: abc.Callable[
                     [], abc.Sequence[problems.Problem]] = tuple) -> None:
        self._conf = conf
        self._is_observer = nova_aggregate_mirror.conf.observes(conf)
        self._reconciler, self._figures = reconciler, figures
        self._now = now
        self._note, self._zones = note, zones
        self._zone_of: abc.Mapping[str, str] = {}
        self._due = now()
        self._failing: dict[str, exceptions.MirrorError] = {}
        """Providers that failed in the last full sync, to why."""
        self._find_disagreements = disagreements
        self._failures = metrics.Lasting(
            LOG.warning, 'Full sync: %s',
            'Full sync: the previous errors are resolved')
        self._disagreements = metrics.Lasting(
            LOG.warning, 'The modes do not agree: %s', 'The modes agree again')
        self._comparison = metrics.Lasting(
            LOG.info, 'Full sync, observed only. %s')
        self._history = metrics.Lasting(
            LOG.warning, 'This sync is missing in the history: %s')

    def step(self) -> result.Result | None:
        """Run a full sync when it is due, and report its result.

        :returns: None unless one was due, has compared, and was not stopped
        """
        start = self._now()
        if start < self._due:
            return None
        options = self._conf.aggregate_mirror
        self._due = start + options.sync_interval
        request = full_sync.Request(
            options.max_removed_share if options.prune else None,
            write=not self._is_observer, observes=self._is_observer,
            failed_before=self._failing,
            time_to_retry=lambda: max(0.0, self._due - self._now()))
        sync = self._run(request)
        # Idle connections would stay open until the next sync.
        self._reconciler.placement.release()
        seconds = self._now() - start
        if sync.interruption:
            if sync.outcome.changes and sync.request.write:
                self._figures.observe_sync(
                    'partial', seconds, *associations.counts(sync.outcome),
                    conflicts=sync.outcome.conflicts)
                self._remember(sync, seconds)
            return None
        self._report(sync, seconds)
        self._remember(sync, seconds)
        self._compare_modes()
        return None if sync.not_compared else sync

    def hasten(self) -> None:
        """Let a full sync be due at once, because the metrics are stale."""
        self._due = min(self._due, self._now())

    def _run(self, request: full_sync.Request) -> result.Result:
        """Run a full sync; mark it if a stop of this process interrupts it."""
        try:
            sync = full_sync.run(self._reconciler, request=request)
        except exceptions.MirrorError as exc:
            sync = full_sync.without_comparison(exc, request)
        failed = sync.outcome.failed
        errors = sync.not_compared, *failed.values()
        if any(isinstance(exc, exceptions.Stopped) for exc in errors):
            return dataclasses.replace(
                sync, interruption=exit_status.TERMINATED)
        if not sync.not_compared:
            # Frames in a traceback would live as long as the error.
            self._failing = {
                subject.name: exc.with_traceback(None)
                for subject, exc in failed.items()
                if subject.kind == outcome.PROVIDER and exc.is_of_provider
                and exc is not sync.outcome.outage}
        return sync

    def _remember(self, sync: result.Result, seconds: float) -> None:
        """Write the sync to the history."""
        failure = exceptions.failure_of(
            lambda: self._note(seconds, sync), exceptions.JournalUnavailable)
        # A failure of the whole journal is logged by the drain loop.
        if not isinstance(sync.not_compared, exceptions.JournalUnavailable):
            self._history.log_failures(failure.failure if failure else None)

    def _compare_modes(self) -> None:
        """Log with which nova-api processes this mode does not agree."""
        # A failure of the whole journal is logged by the drain loop.
        with contextlib.suppress(exceptions.JournalUnavailable):
            disagreements = self._find_disagreements()
            # Without the texts: each operation changes the time in them.
            self._disagreements.log_change(
                frozenset(problem.subject for problem in disagreements),
                '; '.join(map(str, disagreements)))

    def _report(self, sync: result.Result, seconds: float) -> None:
        """Log the result of a sync, and export it as metrics."""
        added, removed, refused = 0, 0, None
        if sync.request.observes:
            text = sync.summary().replace('\n', ' ')
            self._comparison.log_change(text, text)
        else:
            added, removed = associations.counts(sync.outcome)
            refused = sync.refused
        if added or removed:
            LOG.info('Full sync: %s in %.1f seconds',
                     associations.changes(added, removed), seconds)
        if refused:
            LOG.error('Full sync: removals refused: %s', refused)
        # The refusal has its own line, above.
        failures = [problem for problem in sync.failures if not refused
                    or problem.failure is not refused.failure]
        lines = problems.lines(failures, '"%s --dry-run"' % commands.SYNC)
        self._failures.log_change(
            frozenset((problem.subject, problem.key) for problem in failures),
            '; '.join(lines))
        drift = None if sync.not_compared else self._by_zone(sync.drift)
        self._figures.observe_sync(
            sync.judgement, seconds, added, removed, drift,
            refused=bool(refused), conflicts=sync.outcome.conflicts,
            uncompared=len(sync.nova.nodeless().union(sync.nova.hosts_down)))

    def _by_zone(self, drift: abc.Iterable[associations.Association]
                 ) -> abc.Mapping[tuple[str, str], int]:
        """Count associations by zone and direction; each zone has both."""
        # The zones that were read before are better than none for a metric.
        with contextlib.suppress(exceptions.NovaUnavailable):
            self._zone_of = self._zones()
        zones = '', *self._zone_of.values()
        counts = dict.fromkeys(itertools.product(zones, metrics.DIRECTIONS), 0)
        missing, stale = metrics.DIRECTIONS
        for association in drift:
            zone = self._zone_of.get(association.aggregate_uuid, '')
            counts[zone, missing if association.in_nova else stale] += 1
        return counts
