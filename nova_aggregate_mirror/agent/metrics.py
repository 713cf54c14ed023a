# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of the agent, stuck loops, and log lines of what lasts.

Long because each metric has its text, and its value while another agent leads.
"""

from collections import abc
import time

from oslo_log import log as logging
import prometheus_client

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import api_processes

LOG = logging.getLogger(__name__)

PREFIX = 'nova_aggregate_mirror_'
AUDIT = 'audit'
"""Name of the loop that only some agents have."""
DIRECTIONS = ('missing', 'stale')
"""Of a difference: nova has the association, or only placement has it."""
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
GAUGES = {
    'journal_pending_rows': 'Operations that placement may not show yet.',
    'journal_waiting_rows':
        'Mirrored operations that stay in the journal until the agent closes '
        'them.',
    'journal_oldest_pending_seconds':
        'Age of the oldest pending operation, from when this agent first saw '
        'it.',
    'uncompared_hosts':
        'Member hosts that the last full sync could not compare: their cell '
        'did not answer, or nova has no compute node for them.',
    'brake_tripped':
        '1 when the last full sync refused to remove stale associations.',
    'leader': '1 on the agent that drains the journal and runs syncs.',
    'observing':
        '1 on the agent that compares with mode = observe, and changes '
        'nothing in placement.',
}
"""Those without labels but of audits: 0 while another agent leads."""
COUNTERS = {
    'associations_added': 'Providers added to an aggregate.',
    'associations_removed': 'Providers removed from an aggregate.',
    'placement_conflicts':
        'Writes that placement refused because the provider had changed.',
}
"""By loop, in the order in which they are counted."""


class _Registry(prometheus_client.CollectorRegistry):
    """Registry whose samples all have the region.

    The time of creation, which the client adds to counters and histograms,
    is left out: it doubles the number of their series.
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

    :param region: of placement, which tells several novas apart
    """

    def __init__(self, region: str = '',
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self.registry = _Registry(region)
        self._now = now
        self._clock = clock
        self._beats: dict[str, float] = {}
        self._drift_labels: frozenset[tuple[str, str]] = frozenset()
        self._leads: bool | None = None  # None before the mode is set
        self._is_observer = False
        self.last_sync: str | None = None
        """The result of the last full sync; None before the first."""
        self._misplaced: prometheus_client.Gauge | None = None
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.Info(
            PREFIX + 'build', 'The release of the agent.',
            registry=self.registry).info({'version': api_processes.VERSION})
        self._create_families()

    def _create_families(self) -> None:
        self._gauges = {
            name: self._gauge(name, text) for name, text in GAUGES.items()}
        self._counters = [
            prometheus_client.Counter(
                PREFIX + name, text, ['loop'], registry=self.registry)
            for name, text in COUNTERS.items()]
        self._converge = self._histogram(
            'converge_duration_seconds',
            'Duration of one batch of the journal.')
        self._sync = self._histogram(
            'sync_duration_seconds', 'Duration of one full sync.')
        self._drift = self._gauge(
            'drift_associations',
            'Associations that the last full sync found missing or stale.',
            'zone', 'direction')
        self._success = self._gauge(
            'last_success_timestamp_seconds',
            "Unix time of the loop's last fully successful iteration.", 'loop')
        # Export 0 for each label, so that it differs from an absent one.
        for loop in ('drain', 'sync'):
            for family in (*self._counters, self._success):
                family.labels(loop)
        for result in ('success', 'partial', 'failure'):
            self._sync.labels(result)
        for result in ('success', 'failure', 'unavailable'):
            self._converge.labels(result)
        self._set_drift({})

    def expect_audits(self, rules: abc.Iterable[str]) -> None:
        """Add the metrics of audits, with 0 for each rule; none if no rule."""
        rules = list(rules)
        self._misplaced_by_rule = dict.fromkeys(rules, 0)
        self._audited_servers = 0
        if rules:
            self._beats.setdefault(AUDIT, self._clock())
        else:
            self._beats.pop(AUDIT, None)
        if self._misplaced:
            # A rule that is not enforced any more must not keep its value.
            self._misplaced.clear()
        elif rules:
            self._misplaced = self._gauge(
                'misplaced_servers', 'Servers that the last audit found on a '
                'host that contradicts their request.', 'rule')
            self._audited = self._gauge(
                'audited_servers', 'Servers that the last audit has compared.')
            self._audit = self._histogram(
                'audit_duration_seconds', 'Duration of one audit.')
            for result in ('success', 'failure'):
                self._audit.labels(result)
            self._success.labels(AUDIT)
        self._show_audit()

    def set_backlog(self, pending: int, waiting: int, oldest: float) -> None:
        """Record the backlog; with nothing pending, the drain succeeds.

        :param oldest: age of the oldest pending operation, in seconds
        """
        self._gauges['journal_pending_rows'].set(pending)
        self._gauges['journal_waiting_rows'].set(waiting)
        self._gauges['journal_oldest_pending_seconds'].set(oldest)
        if not pending:
            self._set_success('drain')

    def observe_drain(self, result: str, seconds: float, added: int,
                      removed: int, conflicts: int = 0) -> None:
        """Record that one batch of the journal was processed."""
        self._converge.labels(result).observe(seconds)
        self._count('drain', added, removed, conflicts)
        if result == 'success':
            self._set_success('drain')

    def observe_sync(self, result: str, seconds: float, added: int = 0,
                     removed: int = 0,
                     drift: abc.Mapping[tuple[str, str], int] | None = None,
                     refused: bool = False, conflicts: int = 0,
                     uncompared: int = 0) -> None:
        """Record that one full sync finished.

        :param drift: zone and direction to a number of associations; None
            when the comparison failed
        :param refused: whether the brake refused the removals
        """
        self.last_sync = result
        self._sync.labels(result).observe(seconds)
        self._count('sync', added, removed, conflicts)
        if drift is not None:
            self._set_drift(drift)
            self._gauges['brake_tripped'].set(refused)
            self._gauges['uncompared_hosts'].set(uncompared)
        if result == 'success':
            self._set_success('sync')

    def observe_audit(self, result: str, seconds: float, servers: int = 0,
                      by_rule: abc.Mapping[str, int] | None = None) -> None:
        """Record an audit; ``by_rule`` is None if it left servers out."""
        self._audit.labels(result).observe(seconds)
        if by_rule is not None:
            self._audited_servers = servers
            self._misplaced_by_rule = {**self._misplaced_by_rule, **by_rule}
            self._show_audit()
            self._set_success(AUDIT)

    def set_mode(self, observes: bool) -> None:
        """Record the mode of an agent that does not lead yet."""
        # First, so that the gauge of the mode before it becomes 0.
        self.set_leader(False)
        self._is_observer = observes

    def set_leader(self, leads: bool) -> None:
        """Record whether this agent leads; its other gauges are stale if not.

        If it leads again it shows its last audit until the next one.
        """
        if leads != self._leads:
            self._leads = leads
            role = 'observing' if self._is_observer else 'leader'
            self._gauges[role].set(leads)
            self._show_audit()
        if not leads:
            self.last_sync = None
            for gauge in self._gauges.values():
                gauge.set(0)
            self._set_drift({})

    def beat(self, loop: str) -> None:
        """Record that a loop is not stuck."""
        self._beats[loop] = self._clock()

    def state(self) -> dict[str, str]:
        """Describe when each loop last reported, for a report."""
        now = self._clock()
        return {'last report of the %s loop' % loop: '%d s ago' % (now - beat)
                for loop, beat in dict(self._beats).items()}

    def late(self, limits: abc.Mapping[str, float]) -> list[str]:
        """List the loops that have been silent for longer than allowed."""
        # A loop may start during this call.
        now, beats = self._clock(), dict(self._beats)
        late = []
        for loop, limit in sorted(limits.items()):
            if loop in beats and now - beats[loop] > limit:
                late.append('the %s loop last reported %d s ago'
                            % (loop, now - beats[loop]))
            # A reload has just begun the audit, or its imports of nova.
            if loop not in beats and loop != AUDIT:
                late.append('the %s loop has not started' % loop)
        return late

    def _set_drift(self, drift: abc.Mapping[tuple[str, str], int]) -> None:
        # '' is for aggregates without a zone; its series always exist.
        counts = {**{('', direction): 0 for direction in DIRECTIONS}, **drift}
        for labels, count in counts.items():
            self._drift.labels(*labels).set(count)
        # A zone that is gone must not keep its value.
        for labels in self._drift_labels - counts.keys():
            self._drift.remove(*labels)
        self._drift_labels = frozenset(counts)

    def _show_audit(self) -> None:
        if self._misplaced is None:
            return
        # Before the mode is set (None), nothing is stale.
        is_stale = self._leads is False
        for rule, count in self._misplaced_by_rule.items():
            self._misplaced.labels(rule).set(0 if is_stale else count)
        self._audited.set(0 if is_stale else self._audited_servers)

    def _count(self, loop: str, *counts: int) -> None:
        for counter, count in zip(self._counters, counts, strict=True):
            counter.labels(loop).inc(count)

    def _set_success(self, loop: str) -> None:
        self._success.labels(loop).set(self._now())

    def _gauge(self, name: str, text: str, *labels: str
               ) -> prometheus_client.Gauge:
        return prometheus_client.Gauge(
            PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(
            PREFIX + name, text, ['result'], buckets=BUCKETS,
            registry=self.registry)


class Lasting:
    """What lasts over several steps of a loop, as far as it was logged.

    :param log: logs the first line
    :param begin: this line, with ``%s`` for what is told
    :param end: the last line; empty for none
    """

    def __init__(self, log: abc.Callable[..., None], begin: str,
                 end: str = '') -> None:
        self._log = log
        self._begin = begin
        self._end = end
        self._state: abc.Hashable = None
        self._kinds = frozenset[tuple[str, str]]()
        """Of the failures that were followed since there was none."""

    def update(self, state: abc.Hashable, text: object) -> None:
        """Log what has changed.

        :param state: false if there is nothing; with the same one as last
            time nothing is logged, whatever the text
        """
        if state and state != self._state:
            self._log(self._begin, text)
        elif self._state and not state and self._end:
            LOG.info(self._end)
        self._state = state

    def follow(self, *failures: exceptions.Failure | None) -> None:
        """Log failures if a kind is new since there was none."""
        texts = {failure.key: str(failure) for failure in failures if failure}
        self._kinds = self._kinds.union(texts) if texts else frozenset()
        self.update(self._kinds, '; '.join(dict.fromkeys(texts.values())))
