# SPDX-License-Identifier: Apache-2.0
"""Other events in a cloud: outages, ironic nodes, changes by other tools."""

from collections import abc
import contextlib
import random

from nova_aggregate_mirror import exceptions
from tests.simulation import databases
from tests.simulation import nova as simulated_nova
from tests.simulation import processes
from tests.simulation import world as simulated

OUTAGES = ('placement', 'nova', databases.REFUSES, databases.SILENT, 'journal')
SHARED = 'shared'
"""A provider that is not a compute node."""

Event = abc.Callable[[processes.Cloud], None]


def outage(what: str, steps: int) -> Event:
    """Make a service unavailable for a number of steps."""
    def run(cloud: processes.Cloud) -> None:
        cloud.world.give_way('%s does not answer', what)
        cells = {simulated_nova.BAD_CELL: what} if (
            what in databases.SECONDS) else {}
        before = dict(cloud.nova.bad_cells)
        cloud.nova.bad_cells.update(cells)
        cloud.world.down = what
        for _ in range(steps):
            cloud.world.give_way('%s is still away', what)
        cloud.world.down = ''
        cloud.nova.bad_cells = before

    return run


def node_moves(cloud: processes.Cloud) -> None:
    """Move an ironic node to another host."""
    cloud.world.give_way('n1 moves to h2')
    cloud.world.disturbed.add('n1')
    cloud.nova.boot('n1', 'h2')


def node_comes(cloud: processes.Cloud) -> None:
    """Add an ironic node to a host, then create its provider."""
    cloud.world.give_way('n4 comes up on h1')
    cloud.world.disturbed.add('n4')
    cloud.nova.boot('n4', 'h1')
    cloud.world.give_way('provider n4 is made')
    cloud.placement.create('n4')


def node_goes(cloud: processes.Cloud) -> None:
    """Delete a compute node, and then its provider."""
    cloud.world.give_way('n2 is deleted')
    del cloud.nova.nodes['n2']
    cloud.world.give_way('provider n2 is deleted')
    cloud.placement.delete('n2')


def provider_recreated(cloud: processes.Cloud) -> None:
    """Delete a provider; nova-compute recreates it, unless it is down."""
    cloud.world.give_way('provider n1 is deleted')
    cloud.world.disturbed.add('n1')
    cloud.placement.delete('n1')
    cloud.world.give_way('nova-compute wakes up')
    if cloud.world.choices.likely():
        cloud.world.say('provider n1 is made anew')
        cloud.placement.create('n1')


def _write(cloud: processes.Cloud, provider: str,
           change: abc.Callable[[frozenset[str]], frozenset[str]]) -> None:
    """Change a provider's aggregates as another tool, with a generation."""
    while True:
        cloud.world.give_way('tool: GET %s', provider)
        state = cloud.placement.state(provider)
        wanted = change(state.aggregates)
        cloud.world.give_way('tool: PUT %s of %s', wanted, provider)
        with contextlib.suppress(exceptions.GenerationConflict):
            cloud.placement.replace(state, wanted)
            return


def tool_writes(cloud: processes.Cloud) -> None:
    """Write another tool's aggregates, to compute nodes and elsewhere."""
    _write(cloud, 'n1', lambda has: has.difference('x').union('y'))
    _write(cloud, SHARED, lambda has: has | {'y'})


def tool_meddles(cloud: processes.Cloud) -> None:
    """Change associations of nova aggregates, as another tool."""
    _write(cloud, 'n2', lambda has: has | {'a'})
    _write(cloud, SHARED, lambda has: has | {'b'})
    _write(cloud, 'n1', lambda has: has - {'a'})


def neutron_writes(cloud: processes.Cloud) -> None:
    """Write as neutron-lib does: without a generation, losing other writes."""
    for provider, change in (('n1', {'segment'}), ('n1', {'other'})):
        cloud.world.give_way('neutron: GET %s', provider)
        has = cloud.placement.state(provider).aggregates
        cloud.world.give_way('neutron: PUT %s of %s', has | change, provider)
        cloud.placement.overwrite(provider, has | change)


def without_hook(cloud: processes.Cloud) -> None:
    """Run operations in a nova-api without this package.

    A full sync may mirror the added host before the next operation.
    """
    def mirrored() -> bool:
        return 'b' in cloud.placement.state('n1').aggregates

    for method, number, host in (
            ('add', 2, 'h1'), ('remove', 2, 'h1'), ('delete', 2, '')):
        cloud.world.give_way('without us: %s of %s, host %s', method, number,
                             host or '-')
        with contextlib.suppress(simulated.NovaError):
            cloud.nova.commit(method, number, host)
            cloud.nova.unexpected(number, host)
        if method == 'add' and cloud.world.choices.likely():
            cloud.world.wait(mirrored)


def restored(cloud: processes.Cloud) -> None:
    """Restore nova's database to an older state, and back again later."""
    nova = cloud.nova
    old = {'b': set(), 'c': {'h9'}}
    cloud.world.give_way('nova is restored')
    newest, synced = nova.hosts_of, cloud.syncs
    nova.restored = True
    nova.hosts_of = {uuid: set(hosts) for uuid, hosts in old.items()}
    # Operations made in between are lost with the restored state.
    cloud.world.disturbed |= nova.nodes_ever
    cloud.world.wait(lambda: cloud.syncs > synced)
    cloud.world.give_way('nova is as it was before')
    nova.hosts_of = newest
    cloud.world.disturbed |= nova.nodes_ever


DISTURBANCES: tuple[Event, ...] = (
    node_moves, node_comes, node_goes, provider_recreated, tool_writes,
    tool_writes, tool_meddles, neutron_writes, neutron_writes, restored)


def some(chance: random.Random) -> list[tuple[str, Event]]:
    """Choose the named events of a schedule; often none."""
    found: list[tuple[str, Event]] = []
    if chance.random() < 0.3:
        what, duration = chance.choice(OUTAGES), chance.choice((3, 10, 40))
        found.append(('outage', outage(what, duration)))
    if chance.random() < 0.35:
        event = chance.choice(DISTURBANCES)
        found.append(('event', event))
    return found
