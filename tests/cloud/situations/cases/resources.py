# SPDX-License-Identifier: Apache-2.0
"""What no provider has, and nova-compute that is disabled or down."""

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers

HOST = 'compute-1'
TRAIT = 'openstack resource provider trait set'
GROUP = 'inventory list'
DISABLED = 'COMPUTE_STATUS_DISABLED'

Round, Rounds, Situation = scene.Round, scene.Rounds, scene.Situation


def _full(at: scene.Scene, resource: str, amount: int, **flavor: int
          ) -> Rounds:
    """A server has all of a resource on the only host of the zone."""
    zone = furnish.zone(at, HOST)
    hosts.capacity(at, HOST, resource, amount)
    wanted = furnish.flavor(at, **flavor)
    other = servers.boot(at, wanted, HOST, zone)
    yield Round(servers.Create(at, wanted, zone), HOST, 'resources',
                'have fewer than %d %s free' % (amount, resource),
                'delete or move servers', 'delete the other server')
    servers.delete(at, other)


def max_unit(at: scene.Scene) -> Rounds:
    """The flavor is larger than any host"""
    yield Round(furnish.creation(at, vcpus=1001), HOST, 'max_unit',
                'allow at most 1000 VCPU', 'use a smaller flavor',
                'create the server with a smaller flavor',
                furnish.creation(at, 'nova:' + HOST, vcpus=1000))


def no_inventory(at: scene.Scene) -> Rounds:
    """No host has the resource class"""
    zone, resource = furnish.zone(at, HOST), hosts.custom_name()
    at.placement.put('/resource_classes/%s' % resource)
    wanted = furnish.consuming(at, resource)
    yield Round(servers.Create(at, wanted, zone), HOST, 'no_inventory',
                'have no ' + resource, 'use another flavor',
                'create the server with another flavor',
                furnish.creation(at, zone))


def child(at: scene.Scene) -> Rounds:
    """The resource of a child provider is allocated"""
    resource = hosts.custom_name()
    hosts.child(at, HOST, resource, 1)
    wanted = furnish.consuming(at, resource)
    other = servers.boot(at, wanted, HOST)
    yield Round(servers.Create(at, wanted), HOST, 'resources',
                'have fewer than 1 %s free' % resource,
                'delete or move servers, or add hosts',
                'delete the other server')
    servers.delete(at, other)


def trait(at: scene.Scene) -> Rounds:
    """A required trait is missing"""
    name = hosts.custom_trait(at)
    yield Round(furnish.requiring(at, name), HOST, 'trait',
                'without trait ' + name, TRAIT, 'set the trait')
    provider = hosts.provider(at, HOST)
    _set_trait(at, provider, name)
    at.later(hosts.change_traits, at, provider, set(), {name})


def forbidden_trait(at: scene.Scene) -> Rounds:
    """The host has a forbidden trait"""
    name, zone = hosts.custom_trait(at, HOST), furnish.zone(at, HOST)
    wanted = furnish.creation(at, zone, specs={'trait:' + name: 'forbidden'})
    yield Round(wanted, HOST, 'trait', 'with the forbidden trait ' + name,
                'remove the trait if it is wrong', 'remove the trait')
    hosts.change_traits(at, hosts.provider(at, HOST), set(), {name})


def group_trait(at: scene.Scene) -> Rounds:
    """No provider has resource and trait of a numbered group"""
    resource, name = hosts.custom_name(), hosts.custom_trait(at)
    provider = hosts.child(at, HOST, resource, 1)
    wanted = furnish.creation(at, specs={
        'resources1:' + resource: '1', 'trait1:' + name: 'required'})
    yield Round(wanted, HOST, 'group', 'cannot meet request group 1', GROUP,
                'set the trait on the provider below the host')
    _set_trait(at, provider, name)


def isolated_groups(at: scene.Scene) -> Rounds:
    """Too few providers for group_policy=isolate"""
    resource = hosts.custom_name()
    hosts.child(at, HOST, resource, 2)
    wanted = furnish.creation(at, specs={
        'resources1:' + resource: '1', 'resources2:' + resource: '1',
        'group_policy': 'isolate'})
    yield Round(wanted, HOST, 'group', 'cannot meet request group 2', GROUP,
                'add another provider below the host')
    hosts.child(at, HOST, resource, 2)


def several(at: scene.Scene) -> Rounds:
    """Three servers at once, and two fit"""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    hosts.capacity(at, HOST, 'VCPU', 2)
    request = servers.Create(at, wanted, zone, count=3, explained=[
        '--flavor', wanted, '--zone', zone, '--count', '3'])
    yield Round(request, 'compute-2', 'aggregate', 'not in zone ' + zone,
                'add host', summary='2 of 3 servers fit at once')


def _set_trait(at: scene.Scene, provider: str, name: str) -> None:
    """Add a trait with the client, which replaces all traits."""
    kept = hosts.traits(at, provider)
    options = ['--trait=%s' % each for each in (*kept, name)]
    at.check([*TRAIT.split(), *options, provider])


def disabled(at: scene.Scene) -> Rounds:
    """Nova-compute is disabled"""
    # Nova-api refuses a zone whose hosts are all disabled.
    name = hosts.custom_trait(at, HOST)
    hosts.disable(at, HOST)
    yield Round(furnish.requiring(at, name), HOST, 'disabled', 'disabled',
                'openstack compute service set --enable')


def forced_down(at: scene.Scene) -> Rounds:
    """Nova-compute is forced down"""
    zone = furnish.zone(at, HOST)
    hosts.force_down(at, HOST)
    yield Round(furnish.creation(at, zone), HOST, 'down', 'forced down',
                'openstack compute service set --up')


def down(at: scene.Scene) -> Rounds:
    """Nova-compute does not run"""
    zone = furnish.zone(at, HOST)
    hosts.kill(at, HOST)
    yield Round(furnish.creation(at, zone), HOST, 'down', 'down',
                'start nova-compute on the host', 'start nova-compute')
    hosts.start(at, HOST)


def left_over(at: scene.Scene) -> Rounds:
    """Placement has a host disabled that nova has enabled"""
    zone, provider = furnish.zone(at, HOST), hosts.provider(at, HOST)
    hosts.add_trait(at, HOST, DISABLED)
    yield Round(furnish.creation(at, zone), HOST, 'trait',
                'disabled in placement but not in nova',
                'restart nova-compute on the host', 'restart nova-compute')
    hosts.restart(at, HOST)
    at.wait_until(lambda: DISABLED not in hosts.traits(at, provider),
                  'nova-compute has removed the trait')


def no_provider(at: scene.Scene) -> Rounds:
    """The resource provider was deleted"""
    zone, provider = furnish.zone(at, HOST), hosts.provider(at, HOST)
    at.placement.delete('/resource_providers/%s' % provider)
    yield Round(
        furnish.creation(at, zone), HOST, 'no_provider',
        'without a resource provider', 'otherwise restart it',
        'restart nova-compute; the agent adds the provider to its aggregates')
    hosts.restart(at, HOST)
    hosts.wait_member(at, provider, furnish.uuid(at, zone))


def cell_down(at: scene.Scene) -> Rounds:
    """The database of the cell does not answer"""
    zone = furnish.zone(at, HOST)
    database = hosts.cell_database(at)
    # Nova tries its first connection to a database for minutes.
    servers.boot(at, furnish.flavor(at), HOST, zone)
    database.fail('refuses')
    yield Round(furnish.creation(at, zone), '', takes=HOST,
                summary='finds 0 of 0 hosts: nova shows no compute node',
                note='; its hosts are not explained',
                action='start the database of the cell')
    database.forward()


SITUATIONS = (
    Situation('no-vcpu', 'All VCPUs are allocated',
              lambda at: _full(at, 'VCPU', 2, vcpus=2)),
    Situation('no-memory', 'All memory is allocated',
              lambda at: _full(at, 'MEMORY_MB', 512, ram=512)),
    Situation('no-disk', 'All disk space is allocated',
              lambda at: _full(at, 'DISK_GB', 20, disk=20)),
    *scene.situations(
        max_unit, no_inventory, child, trait, forbidden_trait, group_trait,
        isolated_groups, several, disabled, forced_down, down, left_over,
        no_provider, cell_down))
