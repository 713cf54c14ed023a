# SPDX-License-Identifier: Apache-2.0
"""Durations of the agent's full syncs, from its Prometheus metrics."""

import dataclasses
import time

from prometheus_client import parser

from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import loopback
from tests.cloud import processes
from tests import patience

INTERVAL: config.Options = {'aggregate_mirror': {'sync_interval': '1'}}
"""Options for nova.conf: a short interval between full syncs."""
PREFIX = 'nova_aggregate_mirror_'
DURATION = 'sync_duration_seconds_'
POLL = 0.1
TIMEOUT = patience.seconds(600)


@dataclasses.dataclass(frozen=True)
class Metrics:
    """An agent's metrics of its full syncs so far, and of its process."""

    count: float = 0
    seconds: float = 0
    failures: float = 0
    resident_mib: float = 0
    pending: float = 0
    """Pending rows of the journal."""
    by_journal: float = 0
    """Associations added for journal rows."""


class Agent:
    """An agent that has completed its first full sync.

    The first full sync gets the token, the endpoint and the connections that
    later syncs reuse, and adds missing associations.
    """

    def __init__(self, running: cloud.Cloud) -> None:
        self._running = running
        self._http = loopback.session()
        running.start('agent-1')
        self._last = self._next(Metrics())

    def stop(self) -> None:
        """Stop the agent as systemd does."""
        self._running.stop('agent-1')

    def passes(self, count: int) -> list[float]:
        """Return the duration of each of the next full syncs, in seconds."""
        found = []
        for _pass in range(count):
            now = self._next(self._last)
            found.append((now.seconds - self._last.seconds)
                         / (now.count - self._last.count))
            self._last = now
        return found

    def resident_mib(self) -> float:
        """Return the resident memory after the last pass."""
        return self._last.resident_mib

    def _next(self, last: Metrics) -> Metrics:
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            found = self.read()
            if found.failures:
                raise processes.CloudError('\n'.join([
                    'A full sync of the agent failed; the end of its log:',
                    *self._running.agent_lines()[-10:]]))
            if found.count > last.count:
                return found
            time.sleep(POLL)
        raise processes.CloudError(
            'The agent ran no full sync within %d s' % TIMEOUT)

    def read(self) -> Metrics:
        """Read the current metrics."""
        answer = self._http.get(
            '%s/metrics' % self._running.config.url('agent-1'))
        found = {(sample.name, *(value for label, value
                                 in sample.labels.items()
                                 if label != 'region')): sample.value
                 for family in parser.text_string_to_metric_families(
                     answer.text) for sample in family.samples}
        return Metrics(
            found.get((PREFIX + DURATION + 'count', 'success'), 0),
            found.get((PREFIX + DURATION + 'sum', 'success'), 0),
            found.get((PREFIX + DURATION + 'count', 'failure'), 0),
            found['process_resident_memory_bytes',] / 2 ** 20,
            found[PREFIX + 'journal_pending_rows',],
            found.get((PREFIX + 'associations_added_total', 'drain'), 0))
