# SPDX-License-Identifier: Apache-2.0
"""A random filling: hosts in two zones, and servers of two tenants on them."""

from collections import abc
from concurrent import futures
import random
from typing import Any

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers

HOSTS = tuple('compute-%d' % number for number in range(1, 9))
SOURCE, OTHERS = HOSTS[0], HOSTS[1:]
IRONIC = 'ironic-1'
AT_ONCE = 4
# Of a server: neutron would take most of the time.
NO_NETWORK = {'networks': 'none'}
# What happens to servers, and the status that follows; and how often.
ACTIONS = {'': 'ACTIVE', 'os-stop': 'SHUTOFF', 'pause': 'PAUSED',
           'suspend': 'SUSPENDED'}
_SHARES = 12, 5, 2, 1
_MULTIPLIERS = ('ram_weight_multiplier', 'cpu_weight_multiplier',
                'disk_weight_multiplier')
# What a policy allows on one host.
_ON_A_HOST = 2


class Filling:
    """Hosts with servers, which restricts nothing until ``confine``.

    ``flavors`` maps IDs to VCPUs, and ``zones`` are the names of both.
    """

    def __init__(self, at: scene.Scene, choice: random.Random) -> None:
        self._scene = at
        self._choice = choice
        self._used = dict.fromkeys(HOSTS, 0)
        self._members: dict[tuple[str, str], int] = {}
        self._servers: list[str] = []
        shuffled = choice.sample(OTHERS, len(OTHERS))
        near, far = (SOURCE, *shuffled[:3]), shuffled[3:]
        self.zones = [furnish.zone(at, *near), furnish.zone(at, *far)]
        self._zone_of = {**dict.fromkeys(near, self.zones[0]),
                         **dict.fromkeys(far, self.zones[1])}
        hosts.disable(at, IRONIC)
        self.flavors = dict(self._flavor({}) for _number in range(3))
        trait = hosts.custom_trait(at, SOURCE, *self._some(0.6))
        self._fast = self._flavor({'trait:' + trait: 'required'})
        self._groups = [
            furnish.group(at, 'anti-affinity', max_server_per_host=_ON_A_HOST),
            furnish.group(at, 'soft-anti-affinity')]
        self._affinity = furnish.group(at, 'affinity')
        self._tenant = furnish.user(at, 'admin')

    def fill(self) -> None:
        """Create servers on all hosts, and change the state of some."""
        at, choice = self._scene, self._choice
        self._boot([self._server(host, self._groups) for host in (
            choice.choices(OTHERS, k=choice.randint(3, 7)))])
        groups = [*self._groups, self._affinity]
        for _batch in range(2):
            batch = [self._server(SOURCE, groups)
                     for _number in range(choice.randint(2, 3))]
            for server in self._boot(batch):
                [action] = choice.choices(list(ACTIONS), _SHARES)
                if action:
                    servers.change(at, server, action, ACTIONS[action])
        # Before each of them is deleted, and waited for.
        at.later(self._delete)

    def confine(self) -> None:
        """Isolate the tenant, weigh and disable hosts, and leave little room.

        What is forced to a host of a zone passes no filter, but needs room.
        """
        at, choice = self._scene, self._choice
        furnish.aggregate(at, SOURCE, *self._some(0.3),
                          filter_tenant_id=self._tenant.get_project_id())
        furnish.aggregate(at, *self._some(0.4), **{
            choice.choice(_MULTIPLIERS): choice.choice(('-1.0', '3.0'))})
        hosts.disable(at, SOURCE, *self._some(0.1))
        for host in OTHERS:
            room = self._used[host] + choice.randint(1, 6)
            hosts.capacity(at, host, 'VCPU', room)

    def _flavor(self, specs: abc.Mapping[str, str]) -> tuple[str, int]:
        choice = self._choice
        vcpus, disk = choice.randint(1, 4), choice.randint(1, 2)
        ram = choice.choice((64, 128, 256, 512))
        return furnish.flavor(self._scene, vcpus, ram, disk, specs), vcpus

    def _some(self, share: float) -> list[str]:
        return [host for host in OTHERS if self._choice.random() < share]

    def _server(self, host: str, groups: abc.Sequence[str]
                ) -> abc.Callable[[], str]:
        """Choose a server of a host; return what creates it."""
        flavors = [*self.flavors.items(), *[self._fast] * (host == SOURCE)]
        flavor, vcpus = self._choice.choice(flavors)
        self._used[host] += vcpus
        values = self._values(host, groups)
        values['values'] = {**NO_NETWORK, **values.get('values', {})}
        return lambda: servers.boot(self._scene, flavor, host, **values)

    def _values(self, host: str, groups: abc.Sequence[str]) -> dict[str, Any]:
        """Choose the tenant, the hints and the zone of a server."""
        choice = self._choice
        forced = {'zone': '%s:%s' % (self._zone_of[host], host)}
        kind = choice.choice(('group', 'apart', 'tenant', '', '', ''))
        group, other = choice.choice(groups), choice.choice(
            self._servers or [''])
        if kind == 'apart' and other:
            return {**forced, 'hints': {'different_host': other}}
        if kind == 'tenant':
            return {**forced, 'nova': self._tenant}
        values = forced if choice.random() < 0.7 else {
            'values': {'host': host}}
        number = self._members.get((group, host), 0)
        if kind == 'group' and number < _ON_A_HOST:
            self._members[group, host] = number + 1
            return {**values, 'hints': {'group': group}}
        return values

    def _boot(self, creations: abc.Iterable[abc.Callable[[], str]]
              ) -> list[str]:
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            booted = list(pool.map(lambda create: create(), creations))
        self._servers += booted
        return booted

    def _delete(self) -> None:
        """Delete all servers at once."""
        for server in self._servers:
            self._scene.nova.delete('/servers/%s' % server, raise_exc=False)
