# SPDX-License-Identifier: Apache-2.0
"""Metrics of the agent, stuck loops, and log lines about what lasts.

Long because each metric has its text, and its value while another agent leads.
"""

from collections import abc
import time
from typing import Any

from oslo_log import log as logging
import prometheus_client
from prometheus_client import core

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import rows

LOG = logging.getLogger(__name__)
PREFIX = 'nova_aggregate_mirror_'
AUDIT = 'audit'  # Name of the loop that only some agents have.
DIRECTIONS = ('missing', 'stale')
"""Of drift: only nova has the association, or only placement has it."""
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
GAUGES = {
    'journal_pending_rows': 'Operations that placement may not show yet.',
    'journal_waiting_rows': 'Mirrored operations that stay in the journal '
                            'until the agent closes them.',
    'journal_oldest_pending_seconds': 'Age of the oldest pending operation, '
                                      'from when this agent first saw it.',
    'uncompared_hosts': 'Member hosts that the last full sync could not '
                        'compare: their cell did not answer, or nova has no '
                        'compute node for them.',
    'brake_tripped':
        '1 when the last full sync refused to remove stale associations.',
    'leader': '1 on the agent that drains the journal and runs syncs.',
    'observing': '1 on the agent that compares with mode = observe, and '
                 'changes nothing in placement.',
}
"""Gauges without labels, but those of audits; 0 while another agent leads."""
# '' is the zone of aggregates without one; its series always exist.
NO_DRIFT = {('', direction): 0 for direction in DIRECTIONS}
COUNTERS = {
    'associations_added': 'Providers added to an aggregate.',
    'associations_removed': 'Providers removed from an aggregate.',
    'placement_conflicts':
        'Writes that placement refused because the provider had changed.',
}
"""Counters by loop, in the order of the arguments of ``_count``."""


class _Registry(prometheus_client.CollectorRegistry):
    """Registry whose samples all have the region as a label.

    It omits the times of creation, which would double the number of series.
    """

    def __init__(self, region: str) -> None:
        super().__init__()
        self._labels = {'region': region}

    def collect(self) -> abc.Iterator[prometheus_client.Metric]:
        for family in super().collect():
            family.samples = [
                sample._replace(labels=sample.labels | self._labels)
                for sample in family.samples
                if not sample.name.endswith('_created')]
            yield family


class Metrics:
    """Metrics of one agent; methods may be called from any thread.

    :param region: of placement; it distinguishes the agents of several novas
    """

    def __init__(self, region: str = '',
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self.registry = _Registry(region)
        self._now, self._clock = now, clock
        self._beats: dict[str, float] = {}
        self.observes = False
        """Whether the agent only compares; set before it may lead."""
        self.last_sync: str | None = None
        """The result of the last full sync; None before the first."""
        self._gauges: dict[str, float] = dict.fromkeys(GAUGES, 0)
        self._drift: abc.Mapping[tuple[str, str], int] = NO_DRIFT
        # Export 0 for each label, so that it differs from an absent one.
        self._successes = {'drain': 0.0, 'sync': 0.0}
        self._misplaced: dict[str, int] = {}
        self._audited = 0
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.Info(
            PREFIX + 'build', 'The release of the agent.',
            registry=self.registry).info({'version': rows.VERSION})
        self.registry.register(self)
        self._counters = [
            prometheus_client.Counter(
                PREFIX + name, text, ['loop'], registry=self.registry)
            for name, text in COUNTERS.items()]
        for loop in ('drain', 'sync'):
            self._count(loop, 0, 0, 0)
        self._durations = {
            'drain': self._histogram(
                'converge_duration_seconds',
                'Duration of one batch of the journal.',
                'success', 'failure', 'unavailable'),
            'sync': self._histogram(
                'sync_duration_seconds', 'Duration of one full sync.',
                'success', 'partial', 'failure')}

    def collect(self) -> abc.Iterator[core.Metric]:
        """Yield the gauges as they are now; the registry calls it."""
        for name, text in GAUGES.items():
            yield _gauge(name, text, {(): self._gauges[name]})
        yield _gauge(
            'drift_associations',
            'Associations that the last full sync found missing or stale.',
            self._drift, 'zone', 'direction')
        yield _gauge(
            'last_success_timestamp_seconds',
            "Unix time of the loop's last fully successful iteration.",
            self._successes, 'loop')
        if AUDIT in self._durations:
            misplaced, audited = self._misplaced, self._audited
            if not (self._gauges['leader'] or self._gauges['observing']):
                misplaced, audited = dict.fromkeys(misplaced, 0), 0
            yield _gauge(
                'misplaced_servers', 'Servers that the last audit found on a '
                'host that contradicts their request.', misplaced, 'rule')
            yield _gauge(
                'audited_servers', 'Servers that the last audit has compared.',
                {(): audited})

    def expect_audits(self, rules: abc.Iterable[str]) -> None:
        """Add the metrics of audits, with 0 for each of the rules, if any."""
        # A rule that is not enforced any more does not keep its value.
        self._misplaced = dict.fromkeys(rules, 0)
        self._audited = 0
        if not self._misplaced:
            self._beats.pop(AUDIT, None)
            return
        self._beats.setdefault(AUDIT, self._clock())
        if AUDIT not in self._durations:
            self._successes[AUDIT] = 0.0
            self._durations[AUDIT] = self._histogram(
                'audit_duration_seconds', 'Duration of one audit.',
                'success', 'failure')

    def set_backlog(self, pending: int, waiting: int, oldest: float) -> None:
        """Record the backlog; with nothing pending, the drain succeeds.

        :param waiting: open rows besides the pending ones: mirrored already
        :param oldest: age of the oldest pending operation, in seconds
        """
        self._gauges.update(
            journal_pending_rows=pending, journal_waiting_rows=waiting,
            journal_oldest_pending_seconds=oldest)
        if not pending:
            self._successes['drain'] = self._now()

    def observe_drain(self, result: str, seconds: float, added: int,
                      removed: int, conflicts: int = 0) -> None:
        """Record that one batch of the journal was processed."""
        self._finish('drain', result, seconds)
        self._count('drain', added, removed, conflicts)

    def observe_sync(self, result: str, seconds: float, added: int = 0,
                     removed: int = 0,
                     drift: abc.Mapping[tuple[str, str], int] | None = None,
                     refused: bool = False, conflicts: int = 0,
                     uncompared: int = 0) -> None:
        """Record that one full sync finished.

        :param drift: number by zone and direction; None if not compared
        :param refused: whether the brake refused the removals
        :param uncompared: number of hosts that were not compared
        """
        self.last_sync = result
        self._finish('sync', result, seconds)
        self._count('sync', added, removed, conflicts)
        if drift is not None:
            self._drift = {**NO_DRIFT, **drift}
            self._gauges.update(
                brake_tripped=refused, uncompared_hosts=uncompared)

    def observe_audit(self, result: str, seconds: float, servers: int = 0,
                      by_rule: abc.Mapping[str, int] | None = None) -> None:
        """Record an audit; ``by_rule`` is None if it was not complete."""
        self._finish(AUDIT, result, seconds)
        if by_rule is not None:
            self._audited = servers
            self._misplaced.update(by_rule)

    def set_leader(self, leads: bool) -> None:
        """Record whether this agent leads; its other gauges are stale if not.

        If it leads again it shows its last audit until the next one.
        """
        if leads:
            self._gauges['observing' if self.observes else 'leader'] = 1
        else:
            self.last_sync = None
            self._gauges.update(dict.fromkeys(GAUGES, 0))
            self._drift = NO_DRIFT

    def beat(self, loop: str) -> None:
        """Record that a loop is not stuck."""
        self._beats[loop] = self._clock()

    def late(self, limits: abc.Mapping[str, float]) -> list[str]:
        """List the loops that have been silent for longer than allowed."""
        # Copied, because a loop may start during this call.
        now, beats = self._clock(), dict(self._beats)
        late = []
        for loop, limit in sorted(limits.items()):
            if loop in beats and now - beats[loop] > limit:
                late.append('the %s loop last reported %d s ago'
                            % (loop, now - beats[loop]))
            # After a reload, nova may still be imported for the audit.
            if loop not in beats and loop != AUDIT:
                late.append('the %s loop has not started' % loop)
        return late

    def _finish(self, loop: str, result: str, seconds: float) -> None:
        """Record the result and the duration of an iteration of a loop."""
        self._durations[loop].labels(result).observe(seconds)
        if result == 'success':
            self._successes[loop] = self._now()

    def _count(self, loop: str, *counts: int) -> None:
        for counter, count in zip(self._counters, counts, strict=True):
            counter.labels(loop).inc(count)

    def _histogram(self, name: str, text: str, *results: str
                   ) -> prometheus_client.Histogram:
        histogram = prometheus_client.Histogram(
            PREFIX + name, text, ['result'], buckets=BUCKETS,
            registry=self.registry)
        for result in results:
            histogram.labels(result)
        return histogram


def _gauge(name: str, text: str, values: abc.Mapping[Any, float],
           *labels: str) -> core.Metric:
    """Return a gauge; a key is the value of its only label, or a tuple."""
    family = core.GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for key, value in dict(values).items():
        family.add_metric([key] if isinstance(key, str) else key, value)
    return family


class Lasting:
    """A state that lasts for several steps of a loop, and is logged once.

    :param log: logs a line when a state begins
    :param begin: this line, with ``%s`` for the text of the state
    :param end: the line when no such state is left; empty for none
    """

    def __init__(self, log: abc.Callable[..., None], begin: str,
                 end: str = '') -> None:
        self._log = log
        self._begin, self._end = begin, end
        self._state: abc.Hashable = None
        self._kinds = frozenset[tuple[str, str]]()
        """Of all failures since there was none."""

    def log_change(self, state: abc.Hashable, text: object) -> None:
        """Log a state, unless it is the same as last time.

        :param state: false if there is nothing to log, or no more
        """
        if state and state != self._state:
            self._log(self._begin, text)
        elif self._state and not state and self._end:
            LOG.info(self._end)
        self._state = state

    def log_failures(self, *failures: exceptions.Failure | None) -> None:
        """Log failures if a kind of them is new since there was none."""
        texts = {failure.key: str(failure) for failure in failures if failure}
        self._kinds = self._kinds.union(texts) if texts else frozenset()
        self.log_change(self._kinds, '; '.join(dict.fromkeys(texts.values())))
