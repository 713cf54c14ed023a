# SPDX-License-Identifier: Apache-2.0
"""A soak of a nova that mirrors by itself, while the agents observe it."""

import dataclasses
import math
import random
import time

from tests.cloud.chaos import soak
from tests.cloud.chaos import wiring
from tests.cloud import processes
from tests import patience

SYNCED_WITHIN = patience.seconds(3 * wiring.SYNC_INTERVAL)
ATTEMPTS = 5


@dataclasses.dataclass(frozen=True)
class Drift:
    """Numbers of associations, of providers and owned aggregates."""

    missing: int
    stale: int


class Observed(soak.Soak):
    """At each pause the agent has to find what really differs."""

    # With the next sync, and what is started again: 20 in 15 minutes.
    round_seconds = 8

    pauses: list[tuple[Drift, Drift]]
    """At each pause: what differed, and what the agent found."""
    requests: list[str]
    """Method and path of each request of an observing agent."""
    repaired = math.inf
    """Seconds from the reload of the agents until placement equalled nova."""
    switched = False

    def run(self, seconds: float) -> None:
        self.pauses, self.requests = [], []
        self._chance = random.Random(self.result.seed)
        # Those of an earlier run, whose agents were switched at its end.
        self._earlier = len(wiring.requests(self._cloud))
        super().run(seconds)

    @property
    def good(self) -> bool:
        """Check whether each pause, the requests and the switch were right."""
        return bool(self.pauses and self.requests) and (
            self.repaired <= wiring.SYNC_INTERVAL) and all(
                real == found for real, found in self.pauses) and (
                    not self.writes())

    def writes(self) -> list[str]:
        """Return the requests that are no GET."""
        return [request for request in self.requests
                if not request.startswith('GET ')]

    def render(self) -> str:
        lines = ['DIFFERS: %s, and the agent found %s' % pause
                 for pause in self.pauses if pause[0] != pause[1]]
        return '\n'.join([
            *lines, *self.writes()[:10],
            'seed                    %s' % self.result.seed,
            'operations              %s' % len(self.result.given),
            'faults                  %s' % len(self.result.windows),
            'pauses                  %s' % len(self.pauses),
            'drift at the pauses     %s' % ', '.join(
                '%d+%d' % (real.missing, real.stale)
                for real, _found in self.pauses),
            'found differently       %s' % len(lines),
            'requests of agents      %s' % len(self.requests),
            'requests but GET        %s' % len(self.writes()),
            'repaired after, s       %.1f' % self.repaired])

    def _rest(self, since: float) -> None:
        if self.switched:
            return
        self._tell('Comparing what the agent finds')
        self._faults.supervise()
        self._leave_stale()
        for _attempt in range(ATTEMPTS):
            before, found = self._real(), self._found(time.time())
            real = self._real()
            # A request that a fault had delayed may arrive in between.
            if before == real:
                break
        self.pauses.append((real, found))
        self._tell('Differs: %s; found: %s' % (real, found))

    def _end(self) -> None:
        self.requests = wiring.requests(self._cloud)[self._earlier:]
        self._tell('Switching to mirror')
        self.switched = True
        start = wiring.switch(self._cloud)
        while self._real() != Drift(0, 0):
            if time.monotonic() - start > soak.HEALS_WITHIN:
                return
            time.sleep(soak.POLL)
        self.repaired = time.monotonic() - start

    def _leave_stale(self) -> None:
        """Add an association that nova does not have.

        Stock nova leaves one if placement does not answer the request that
        removes a host, which chance rarely hits.
        """
        aggregates = self._cloud.aggregates().values()
        node, stale = self._chance.choice([
            (node, aggregate['uuid']) for node in self._cloud.nodes()
            for aggregate in aggregates
            if node.host not in aggregate['hosts']])
        self._cloud.change_aggregates(
            node.uuid, lambda before: before | {stale})

    def _found(self, since: float) -> Drift:
        """Wait for the next sync of an agent, and return what it found."""
        deadline = time.monotonic() + SYNCED_WITHIN
        while time.monotonic() < deadline:
            # 7: something differs; see placement sync_aggregates.
            for added, removed, stale in self._journal(
                    'SELECT added, removed, stale FROM %%sjournal.syncs WHERE '
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
            'SELECT aggregate_uuid FROM %sjournal.ledger'))}
        missing = stale = 0
        for node in self._cloud.nodes():
            found = self._cloud.associations(node.uuid) or frozenset()
            wanted = {uuid for uuid in hosts if node.host in hosts[uuid]}
            missing += len(wanted - found)
            stale += len(found & owned - wanted)
        return Drift(missing, stale)

    def _remove_all(self) -> None:
        super()._remove_all()
        for node in self._cloud.nodes():
            self._cloud.change_aggregates(
                node.uuid, lambda before: before & {soak.FOREIGN})
