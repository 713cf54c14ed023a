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
RESTART = 'restart nova-compute on the host'

Rounds = scene.Rounds
Situation = scene.Situation


def _full(at: scene.Scene, resource: str, amount: int, **flavor: int
          ) -> Rounds:
    """A server has all of a resource on the only host of the zone."""
    zone = furnish.zone(at, HOST)
    hosts.capacity(at, HOST, resource, amount)
    wanted = furnish.flavor(at, **flavor)
    other = servers.boot(at, wanted, HOST, zone)
    yield scene.Round(servers.Create(at, wanted, zone), HOST, 'resources',
                      'have fewer than %d %s free' % (amount, resource),
                      'delete or move servers', 'delete the other server')
    servers.delete(at, other)


def max_unit(at: scene.Scene) -> Rounds:
    """The host has as many, but not for one server."""
    large, smaller = (furnish.flavor(at, vcpus=number)
                      for number in (1001, 1000))
    yield scene.Round(servers.Create(at, large), HOST, 'max_unit',
                      'allow at most 1000 VCPU', 'use a smaller flavor',
                      'create the server with a smaller flavor',
                      servers.Create(at, smaller, 'nova:' + HOST))


def no_inventory(at: scene.Scene) -> Rounds:
    resource = _resource_class(at)
    zone = furnish.zone(at, HOST)
    yield scene.Round(
        servers.Create(at, furnish.consuming(at, resource), zone), HOST,
        'no_inventory', 'have no %s' % resource, 'use another flavor',
        'create the server with another flavor', furnish.creation(at, zone))


def of_child(at: scene.Scene) -> Rounds:
    """The resource is allocated on a provider below the host's."""
    resource = _resource_class(at)
    hosts.child(at, HOST, resource, 1)
    wanted = furnish.consuming(at, resource)
    other = servers.boot(at, wanted, HOST)
    yield scene.Round(
        servers.Create(at, wanted), HOST, 'resources',
        'have fewer than 1 %s free' % resource,
        'delete or move servers, or add hosts', 'delete the other server')
    servers.delete(at, other)


def trait(at: scene.Scene) -> Rounds:
    name = hosts.custom_trait(at)
    wanted = furnish.requiring(at, name)
    yield scene.Round(servers.Create(at, wanted), HOST, 'trait',
                      'without trait ' + name, TRAIT, 'set the trait')
    _set_trait(at, hosts.provider(at, HOST), name)
    at.later(hosts.drop_trait, at, HOST, name)


def forbidden_trait(at: scene.Scene) -> Rounds:
    name = hosts.custom_trait(at)
    zone = furnish.zone(at, HOST)
    hosts.add_trait(at, HOST, name)
    wanted = furnish.flavor(at, specs={'trait:' + name: 'forbidden'})
    yield scene.Round(servers.Create(at, wanted, zone), HOST, 'trait',
                      'with the forbidden trait ' + name,
                      'remove the trait if it is wrong', 'remove the trait')
    hosts.drop_trait(at, HOST, name)


def group_trait(at: scene.Scene) -> Rounds:
    """A numbered group: the child has the resource, but not the trait."""
    resource, name = _resource_class(at), hosts.custom_trait(at)
    child = hosts.child(at, HOST, resource, 1)
    wanted = furnish.flavor(at, specs={
        'resources1:' + resource: '1', 'trait1:' + name: 'required'})
    yield scene.Round(servers.Create(at, wanted), HOST, 'group',
                      'cannot meet request group 1', GROUP,
                      'set the trait on the provider below the host')
    _set_trait(at, child, name)


def isolated_groups(at: scene.Scene) -> Rounds:
    """Two groups from different providers, and the host has only one."""
    resource = _resource_class(at)
    hosts.child(at, HOST, resource, 2)
    wanted = furnish.flavor(at, specs={
        'resources1:' + resource: '1', 'resources2:' + resource: '1',
        'group_policy': 'isolate'})
    yield scene.Round(servers.Create(at, wanted), HOST, 'group',
                      'cannot meet request group 2', GROUP,
                      'add another provider below the host')
    hosts.child(at, HOST, resource, 2)


def several(at: scene.Scene) -> Rounds:
    """Three servers at once, and the zone has room for two."""
    zone, other = furnish.zone(at, HOST), 'compute-2'
    hosts.capacity(at, HOST, 'VCPU', 2)
    wanted = furnish.flavor(at)
    yield scene.Round(
        servers.Create(at, wanted, zone, count=3, explained=[
            '--flavor', wanted, '--zone', zone, '--count', '3']),
        other, 'aggregate', 'not in zone ' + zone, 'add host',
        summary='2 of 3 servers fit at once')


def _resource_class(at: scene.Scene) -> str:
    name = hosts.custom_trait(at)
    at.placement.put('/resource_classes/%s' % name)
    return name


def _set_trait(at: scene.Scene, provider: str, name: str) -> None:
    """Add a trait with the client, which replaces all traits."""
    url = '/resource_providers/%s/traits' % provider
    kept = at.placement.get(url).json()['traits']
    options = ['--trait=%s' % each for each in (*kept, name)]
    at.check([*TRAIT.split(), *options, provider])


def disabled(at: scene.Scene) -> Rounds:
    # Nova-api refuses a zone whose hosts are all disabled.
    name = hosts.custom_trait(at)
    hosts.add_trait(at, HOST, name)
    hosts.disable(at, HOST)
    yield scene.Round(
        servers.Create(at, furnish.requiring(at, name)), HOST, 'disabled',
        'disabled', 'openstack compute service set --enable')


def forced_down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    hosts.force_down(at, HOST)
    yield scene.Round(furnish.creation(at, zone), HOST, 'down', 'forced down',
                      'openstack compute service set --up')


def down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    hosts.kill(at, HOST)
    yield scene.Round(furnish.creation(at, zone), HOST, 'down', 'down',
                      'start nova-compute on the host', 'start nova-compute')
    hosts.start(at, HOST)


def left_over(at: scene.Scene) -> Rounds:
    """Placement has the trait of a disabled host that is enabled."""
    zone = furnish.zone(at, HOST)
    hosts.add_trait(at, HOST, DISABLED)
    yield scene.Round(furnish.creation(at, zone), HOST, 'trait',
                      'disabled in placement but not in nova', RESTART,
                      'restart nova-compute')
    hosts.restart(at, HOST)
    at.wait_until(lambda: DISABLED not in hosts.traits(at, HOST),
                  'nova-compute has removed the trait')


def no_provider(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    provider = hosts.provider(at, HOST)
    at.placement.delete('/resource_providers/%s' % provider)
    yield scene.Round(
        furnish.creation(at, zone), HOST, 'no_provider',
        'without a resource provider', 'otherwise restart it',
        'restart nova-compute; the agent adds the provider to its aggregates')
    hosts.restart(at, HOST)
    hosts.wait_member(at, provider, furnish.uuid(at, zone))


def cell_down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    database = hosts.cell_database(at)
    # Nova tries its first connection to a database for minutes.
    servers.boot(at, furnish.flavor(at), HOST, zone)
    database.fail('refuses')
    yield scene.Round(furnish.creation(at, zone), '', takes=HOST,
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
    Situation('max-unit', 'The flavor is larger than any host', max_unit),
    Situation('no-inventory', 'No host has the resource class',
              no_inventory),
    Situation('child', 'The resource of a child provider is allocated',
              of_child),
    Situation('trait', 'A required trait is missing', trait),
    Situation('forbidden-trait', 'The host has a forbidden trait',
              forbidden_trait),
    Situation('group-trait', 'No provider has resource and trait of a '
              'numbered group', group_trait),
    Situation('isolated-groups', 'Too few providers for group_policy=isolate',
              isolated_groups),
    Situation('several', 'Three servers at once, and two fit', several),
    Situation('disabled', 'Nova-compute is disabled', disabled),
    Situation('forced-down', 'Nova-compute is forced down', forced_down),
    Situation('down', 'Nova-compute does not run', down),
    Situation('left-over', 'Placement has a host disabled that nova has '
              'enabled', left_over),
    Situation('no-provider', 'The resource provider was deleted',
              no_provider),
    Situation('cell-down', 'The database of the cell does not answer',
              cell_down))
