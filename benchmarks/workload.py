# SPDX-License-Identifier: Apache-2.0
"""Workload of compute hosts in aggregates."""

from collections import abc
import dataclasses
import uuid

from benchmarks import services
from tests.cloud import cloud
from tests.cloud import seed
from tests.cloud import sql

_STATE = (
    'SELECT p.uuid AS provider, p.generation, a.uuid AS aggregate'
    ' FROM resource_providers p'
    ' LEFT JOIN resource_provider_aggregates pa'
    ' ON pa.resource_provider_id = p.id'
    ' LEFT JOIN placement_aggregates a ON a.id = pa.aggregate_id')


@dataclasses.dataclass(frozen=True)
class Size:
    """Number of hosts, of memberships per host, and of aggregates."""

    hosts: int
    memberships: int
    aggregates: int

    def host_names(self) -> list[str]:
        return ['bench-%06d' % number for number in range(self.hosts)]

    def members(self) -> abc.Mapping[str, list[str]]:
        """Return new aggregate UUIDs with their evenly distributed hosts."""
        uuids = sorted(str(uuid.uuid4()) for _ in range(self.aggregates))
        members: dict[str, list[str]] = {each: [] for each in uuids}
        for number, host in enumerate(self.host_names()):
            for one in range(self.memberships):
                members[uuids[(number + one) % self.aggregates]].append(host)
        return members


State = abc.Mapping[str, tuple[int, set[str]]]
"""Provider to its generation and aggregates in placement."""


class Workload:
    """Hosts and aggregates in a cloud's nova, and providers in placement."""

    def __init__(self, running: cloud.Cloud, size: Size) -> None:
        self._nova = running.nova()
        self._nodes = running.seed_hosts(size.host_names())
        self.members = size.members()
        seed.aggregates(running.config, self.members)
        self._placement, self._nova_api = map(
            running.config.database_url, ('placement', 'nova_api'))

    def empty(self) -> None:
        """Remove all associations from placement."""
        sql.execute(
            self._placement, 'DELETE FROM resource_provider_aggregates')

    def disband(self) -> None:
        """Remove all hosts from all aggregates, in nova and in placement."""
        sql.execute(self._nova_api, 'DELETE FROM aggregate_hosts')
        self.empty()

    def associations(self) -> int:
        """Return the number of associations in placement."""
        [(count,)] = sql.execute(
            self._placement,
            'SELECT COUNT(*) FROM resource_provider_aggregates')
        return count

    def state(self) -> State:
        """Read placement's state from its database, without requests."""
        state: dict[str, tuple[int, set[str]]] = {}
        for row in sql.execute(self._placement, _STATE):
            _generation, aggregates = state.setdefault(
                row.provider, (row.generation, set()))
            aggregates |= {row.aggregate} - {None}
        return state

    def wanted(self) -> dict[str, list[str]]:
        """Return the aggregates that each provider shall have, by UUID."""
        providers = {node.host: node.uuid for node in self._nodes}
        wanted: dict[str, list[str]] = {}
        for aggregate, hosts in self.members.items():
            for host in hosts:
                wanted.setdefault(providers[host], []).append(aggregate)
        return wanted

    def check(self) -> State:
        """Compare placement with nova."""
        state = self.state()
        wanted: dict[str, set[str]] = {}
        for each in self._nova.get('/os-aggregates').json()['aggregates']:
            for host in each['hosts']:
                wanted.setdefault(host, set()).add(each['uuid'])
        wrong = [node for node in self._nodes
                 if state.get(node.uuid, (0, set()))[1]
                 != wanted.get(node.host, set())]
        if wrong:
            raise services.Void(
                'placement differs from nova for %d of %d hosts, the first '
                'is %s: provider %s' % (len(wrong), len(self._nodes),
                                        wrong[0].host, wrong[0].uuid))
        return state
