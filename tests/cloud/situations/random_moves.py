# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud moves``: random requests, explained and then made.

Unlike the tests with nova-scheduler alone, nova-api and nova-conductor prepare
each request themselves.
"""

import argparse
import dataclasses
import random

from tests.cloud import cloud
from tests.cloud.situations import comparisons
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

HOSTS = ('compute-1', 'compute-2', 'compute-3')
SOURCE = HOSTS[0]
SSD = 'aggregate_instance_extra_specs:ssd'
OPERATIONS = ('create', *servers.ACTIONS, 'rebuild', 'resize')


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The hosts of an explanation beside what nova has done."""

    number: int
    operation: str
    acceptable: list[str]
    """Hosts with the largest weight of those that are acceptable."""
    chosen: list[str]
    message: str

    @property
    def equal(self) -> bool:
        if not self.chosen:
            return not self.acceptable and scene.NO_HOST in self.message
        return set(self.chosen) <= set(self.acceptable)

    def __str__(self) -> str:
        return '%3d  %-12s  explained %-30s nova %s%s' % (
            self.number, self.operation, ', '.join(self.acceptable) or '-',
            ', '.join(self.chosen) or self.message,
            '' if self.equal else '  DIFFERENT')


def main(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Compare the moves that are left; return 0 if all are equal."""
    return comparisons.repeat(
        running, chosen, Comparison, _compare, _scheduler)


def _scheduler(number: int) -> str:
    return (schedulers.STOCK, schedulers.OURS)[number // len(OPERATIONS) % 2]


def _compare(at: scene.Scene, number: int, choice: random.Random
             ) -> Comparison:
    operation = OPERATIONS[number % len(OPERATIONS)]
    zone = furnish.zone(at, SOURCE, *_some(choice))
    members = _some(choice, HOSTS)
    aggregate = furnish.aggregate(at, *members, ssd='true')
    fast = hosts.custom_trait(at)
    for host in (SOURCE, *_some(choice)):
        hosts.add_trait(at, host, fast)
    flavors = [furnish.flavor(at, vcpus=choice.choice((1, 2)), specs=specs)
               for specs in ({}, {SSD: 'true'}, {'trait:' + fast: 'required'})]
    # Nova-api refuses a resize to the same flavor.
    flavor, destination = choice.sample(flavors, 2)
    zone = choice.choice((zone, zone, ''))
    if operation == 'create':
        explained_as = [
            '--flavor', flavor, '--network', servers.NETWORK, '--project',
            at.nova.get_project_id(), *['--zone', zone] * bool(zone)]
        request: scene.Request = servers.Create(
            at, flavor, zone, explained=explained_as)
    else:
        # A server that is forced to a host passes no filter there.
        server = servers.boot(at, flavor, SOURCE, '%s:%s' % (
            zone or 'nova', SOURCE))
        request = _move(at, server, operation, destination)
    for host in members[:choice.randrange(2)]:
        furnish.remove_host(at, aggregate, host)
    hosts.disable(at, *_some(choice, HOSTS[1:]))
    for host in _some(choice):
        hosts.capacity(at, host, 'VCPU', 1)
    document = at.explain(request.arguments()).document
    weights = {row['host']: row['weight'] for row in document['hosts']
               if row['kind'] == 'acceptable'}
    largest = max(weights.values(), default=None)
    acceptable = sorted(
        host for host, weight in weights.items() if weight == largest)
    outcome = request.make()
    return Comparison(number, operation, acceptable, sorted(outcome.hosts),
                      outcome.message)


def _some(choice: random.Random, names: tuple[str, ...] = HOSTS[1:]
          ) -> list[str]:
    return [name for name in names if choice.random() < 0.5]


def _move(at: scene.Scene, server: str, operation: str, flavor: str
          ) -> servers.Move:
    """Prepare a move of a server."""
    if operation == 'resize':
        return servers.resize(at, server, flavor)
    if operation == 'rebuild':
        return servers.Move(at, server, operation, action={
            'rebuild': {'imageRef': furnish.image(at)}})
    if operation == 'unshelve':
        servers.shelve(at, server)
    if operation == 'evacuate':
        hosts.lose(at, SOURCE)
    return servers.Move(at, server, operation)
