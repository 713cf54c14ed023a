# SPDX-License-Identifier: Apache-2.0
"""The agent's figures for Prometheus, and which of its loops are late."""

from collections.abc import Callable
from collections.abc import Mapping
import importlib.metadata
import time

import prometheus_client

from nova_aggregate_mirror import journal

PREFIX = 'nova_aggregate_mirror_'
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """What an agent tells of itself; its loops may call from any thread.

    :param now: seconds since the epoch
    :param beating: seconds since the start, for which no clock is set back
    """

    def __init__(self, now: Callable[[], float] = time.time,
                 beating: Callable[[], float] = time.monotonic) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._now = now
        self._beating = beating
        self._beats: dict[str, float] = {}
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.Info(
            PREFIX + 'build', 'The release of the agent.',
            registry=self.registry).info({
                'version': importlib.metadata.version(
                    'nova-aggregate-mirror')})
        self._pending = self._gauge(
            'journal_pending_rows',
            'Operations that placement may not show yet.')
        self._waiting = self._gauge(
            'journal_waiting_rows',
            'Operations that are mirrored, and stay in the journal until they '
            'are old enough to have ended.')
        self._oldest = self._gauge(
            'journal_oldest_pending_seconds',
            'For how long this agent has seen the oldest pending operation.')
        self._converge = self._histogram(
            'converge_duration_seconds',
            'How long a batch of the journal took.')
        self._sync = self._histogram(
            'sync_duration_seconds', 'How long a full sync took.')
        self._added = self._counter(
            'associations_added', 'Providers put into an aggregate.')
        self._removed = self._counter(
            'associations_removed', 'Providers taken out of an aggregate.')
        self._drift = self._gauge(
            'drift_associations',
            'Associations that the last full sync found missing or stale.')
        self._brake = self._gauge(
            'brake_tripped',
            '1 when so much was stale at the last full sync that it removed '
            'nothing.')
        self._success = prometheus_client.Gauge(
            PREFIX + 'last_success_timestamp_seconds',
            'When a loop last did all that it wanted to.', ['loop'],
            registry=self.registry)
        self._leader = self._gauge(
            'leader', '1 on the agent that drains the journal and syncs.')

    def backlog(self, backlog: journal.Backlog) -> None:
        """How much is left in the journal."""
        self._pending.set(backlog.pending)
        self._waiting.set(backlog.waiting)
        self._oldest.set(backlog.oldest)
        if not backlog.pending:
            self._succeeded('drain')

    def drained(self, result: str, seconds: float, added: int,
                removed: int) -> None:
        """One batch of the journal was worked on.

        :param result: ``success``, ``failure`` or ``unavailable``
        """
        self._converge.labels(result).observe(seconds)
        self._changed('drain', added, removed)
        if result == 'success':
            self._succeeded('drain')

    def synced(self, result: str, seconds: float, added: int = 0,
               removed: int = 0, drift: int | None = None,
               refused: bool = False) -> None:
        """One full sync ended.

        :param result: ``success`` or ``failure``
        :param drift: None when it could not be compared
        """
        self._sync.labels(result).observe(seconds)
        self._changed('sync', added, removed)
        if drift is not None:
            self._drift.set(drift)
            self._brake.set(refused)
        if result == 'success' and not refused:
            self._succeeded('sync')

    def leading(self, leads: bool) -> None:
        """Whether this agent is the one that works.

        What it found before is out of date when another one leads.
        """
        self._leader.set(leads)
        if not leads:
            for gauge in (self._drift, self._brake, self._pending,
                          self._waiting, self._oldest):
                gauge.set(0)

    def beat(self, loop: str) -> None:
        """This loop is alive."""
        self._beats[loop] = self._beating()

    def late(self, limits: Mapping[str, float]) -> list[str]:
        """Which loops have not beaten for longer than they may.

        :param limits: loop to seconds
        """
        # A loop may begin while it is looked at.
        now, beats = self._beating(), dict(self._beats)
        return ['the %s loop was last heard of %d seconds ago'
                % (loop, now - beats[loop]) if loop in beats
                else 'the %s loop has not begun' % loop
                for loop, limit in sorted(limits.items())
                if loop not in beats or now - beats[loop] > limit]

    def _changed(self, loop: str, added: int, removed: int) -> None:
        self._added.labels(loop).inc(added)
        self._removed.labels(loop).inc(removed)

    def _succeeded(self, loop: str) -> None:
        self._success.labels(loop).set(self._now())

    def _gauge(self, name: str, text: str) -> prometheus_client.Gauge:
        return prometheus_client.Gauge(
            PREFIX + name, text, registry=self.registry)

    def _counter(self, name: str, text: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(
            PREFIX + name, text, ['loop'], registry=self.registry)

    def _histogram(self, name: str, text: str) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(
            PREFIX + name, text, ['result'], buckets=BUCKETS,
            registry=self.registry)
