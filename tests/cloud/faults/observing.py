# SPDX-License-Identifier: Apache-2.0
"""A soak of a nova that mirrors by itself, while the agents observe it."""

import itertools
import random
import time
from typing import NamedTuple

from tests.cloud.faults import report
from tests.cloud.faults import soak
from tests.cloud.faults import wiring
from tests.cloud import processes
from tests import patience

SYNCED_WITHIN = patience.seconds(3 * wiring.SYNC_INTERVAL)
ATTEMPTS = 5


class Drift(NamedTuple):
    """Numbers of associations, of providers and owned aggregates."""

    missing: int
    stale: int


class Observing(soak.Soak):
    """At each pause the agent has to find what really differs."""

    # With the next sync, and what is started again: 20 in 15 minutes.
    round_seconds = 8
    _switched = False

    def run(self, seconds: float) -> list[report.Measured]:
        self._chance = random.Random(self._seed)
        self._drifts: list[Drift] = []
        self._extra: dict[str, report.Figure] = {}
        # Requests of an earlier run, whose agents were switched at its end.
        self._earlier = len(wiring.requests(self._cloud))
        return super().run(seconds)

    def _verdict(self) -> list[str]:
        """Nova's own answers and deaths are not judged."""
        return [] if self._drifts else ['nothing was compared']

    def _figures(self) -> dict[str, report.Figure]:
        return {'drift at the pauses': ' '.join(
            '%d+%d' % drift for drift in self._drifts), **self._extra}

    def _rest(self, since: float) -> None:
        if self._switched:
            return
        self._tell('Comparing what the agent finds')
        self._faults.supervise()
        self._leave_stale()
        for _attempt in range(ATTEMPTS):
            before, observed = self._real(), self._observed(time.time())
            real = self._real()
            # A request that a fault had delayed may arrive in between.
            if before == real:
                break
        self._drifts.append(real)
        self._tell('%s' % (real,))
        if observed != real:
            self._problems.append(
                '%s differs, and the agent found %s' % (real, observed))

    def _end(self) -> None:
        requests = wiring.requests(self._cloud)[self._earlier:]
        writes = [request for request in requests
                  if not request.startswith('GET ')]
        self._problems += writes[:soak.SHOWN]
        if not requests:
            self._problems.append('no agent has sent a request')
        self._tell('Switching to mirror')
        self._switched = True
        start = wiring.switch(self._cloud)
        while (seconds := time.monotonic() - start) < soak.HEALS_WITHIN:
            if self._real() == Drift(0, 0):
                break
            time.sleep(soak.POLL)
        if seconds > wiring.SYNC_INTERVAL:
            self._problems.append('repaired after %.1f s' % seconds)
        self._extra = {'requests of agents': len(requests),
                       'repaired after': seconds}

    def _leave_stale(self) -> None:
        """Add an association that nova does not have.

        Stock nova leaves one if placement does not answer the request that
        removes a host, which chance rarely hits.
        """
        aggregates = self._cloud.aggregates().values()
        stale = [(node, aggregate['uuid']) for node, aggregate
                 in itertools.product(self._cloud.nodes(), aggregates)
                 if node.host not in aggregate['hosts']]
        node, added = self._chance.choice(stale)
        self._cloud.change_aggregates(
            node.uuid, lambda before: before | {added})

    def _observed(self, since: float) -> Drift:
        """Wait for the next sync of an agent, and return what it found."""
        deadline = time.monotonic() + SYNCED_WITHIN
        while time.monotonic() < deadline:
            # 7: something differs; see placement sync_aggregates.
            for added, removed, stale in self._journal(
                    'SELECT added, removed, stale FROM syncs WHERE '
                    'ended_at - seconds > %f AND mode = \'observe\' AND '
                    'status IN (0, 7) ORDER BY id DESC LIMIT 1' % since):
                return Drift(added, removed + stale)
            time.sleep(soak.POLL)
        raise processes.CloudError('no agent has compared anything')

    def _real(self) -> Drift:
        """Compare nova with placement through their APIs.

        An aggregate that was created and deleted between two syncs is in
        neither nova nor the ledger: nobody can tell whose it is.
        """
        hosts = {aggregate['uuid']: aggregate['hosts']
                 for aggregate in self._cloud.aggregates().values()}
        owned = {*hosts, *(uuid for uuid, in self._journal(
            'SELECT aggregate_uuid FROM ledger'))}
        missing = stale = 0
        for node in self._cloud.nodes():
            has = self._cloud.associations(node.uuid) or frozenset()
            desired = {uuid for uuid in hosts if node.host in hosts[uuid]}
            missing += len(desired - has)
            stale += len(has & owned - desired)
        return Drift(missing, stale)

    def _remove_all(self) -> None:
        super()._remove_all()
        for node in self._cloud.nodes():
            self._cloud.change_aggregates(
                node.uuid, lambda before: before & {soak.FOREIGN})
