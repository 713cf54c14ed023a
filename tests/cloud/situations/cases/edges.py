# SPDX-License-Identifier: Apache-2.0
"""Operations that failed last, and what nova-scheduler is not asked for."""

from collections import abc
from typing import Any

from tests.cloud import access
from tests.cloud.situations.cases import moves
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

SOURCE, HOST = 'compute-1', 'compute-2'
OTHERS = 'compute-3', 'ironic-1'
FAILED = 'The newest operation of the server, %s, failed at'
FOUND = 'nova-scheduler finds 6 of 6'

Round, Rounds, Situation = scene.Round, scene.Rounds, scene.Situation


class Newest(servers.Move):
    """A move that is explained without saying which it was."""

    def arguments(self) -> abc.Sequence[str]:
        return super().arguments()[:2]


class Lost(servers.Move):
    """A move after which nova leaves the server in its task."""

    def make(self) -> scene.Outcome:
        at, server = self._scene, self._server
        at.nova.post('/servers/%s/action' % server, json=self._action)
        at.wait_until(lambda: servers.has_status(at, server, 'ERROR'),
                      'nova gives up %s' % server)
        return scene.Outcome(frozenset(), 'status ERROR')


class Waiting(servers.Create):
    """A creation that nobody schedules."""

    def make(self) -> scene.Outcome:
        self.request()
        return scene.Outcome(frozenset(), 'status BUILD')


def _described(at: scene.Scene, flavor: str, **values: Any
               ) -> servers.Create:
    """Return a creation that is explained by its flavor, not its server."""
    return servers.Create(at, flavor, explained=['--flavor', flavor], **values)


def quota(at: scene.Scene) -> Rounds:
    """The quota is exceeded"""
    def write(ram: int) -> None:
        at.nova.put(url, json={'quota_set': {'ram': ram, 'force': True}})

    url = '/os-quota-sets/%s' % at.nova.get_project_id()
    before = at.nova.get(url).json()['quota_set']['ram']
    write(0)
    at.later(write, before)
    yield Round(_described(at, furnish.flavor(at)), '',
                refusal='Quota exceeded', summary=FOUND, looked='quotas',
                action='raise the quota', anywhere=True)
    write(before)


def private_flavor(at: scene.Scene) -> Rounds:
    """The flavor is not that of the project"""
    user = furnish.user(at)
    wanted = furnish.flavor(at, **{'os-flavor-access:is_public': False})
    yield Round(_described(at, wanted, nova=user), '', refusal='Flavor',
                summary=FOUND, looked='rights to the flavor',
                action='openstack flavor set --project %s %s' % (
                    user.get_project_id(), wanted), anywhere=True)


def missing_image(at: scene.Scene) -> Rounds:
    """Unshelve: the image was deleted"""
    # Nova-conductor reads the image of a shelved server first.
    server = servers.boot(at, furnish.flavor(at))
    name = servers.read(at, server)['name']
    servers.shelve(at, server)
    images = at.cloud.rest('image')
    [image] = images.get('/v2/images?name=%s-shelved' % name).json()['images']
    images.delete('/v2/images/%s' % image['id'])
    yield Round(Lost(at, server, 'unshelve'), '', refusal='status ERROR',
                summary=FOUND, looked='image',
                action='none: the image is lost', is_final=True)


def full_network(at: scene.Scene) -> Rounds:
    """The network has no free address"""
    neutron = at.cloud.rest('network')
    network = access.create(neutron, '/v2.0/networks', network={
        'name': at.name('network')})['id']
    at.later(neutron.delete, '/v2.0/networks/%s' % network)
    pool = {'start': '192.0.2.9', 'end': '192.0.2.9'}
    subnet = access.create(neutron, '/v2.0/subnets', subnet={
        'network_id': network, 'ip_version': 4, 'cidr': '192.0.2.0/24',
        'enable_dhcp': False, 'allocation_pools': [pool]})['id']
    port = access.create(neutron, '/v2.0/ports', port={
        'network_id': network})['id']
    at.later(neutron.delete, '/v2.0/ports/%s' % port, raise_exc=False)
    wanted = furnish.flavor(at)
    create = servers.Create(
        at, wanted, values={'networks': [{'uuid': network}]},
        explained=['--flavor', wanted, '--network', network])
    yield Round(create, '', refusal='.', summary=FOUND, looked='addresses',
                action='add an address to the subnet', anywhere=True)
    pool['end'] = '192.0.2.99'
    neutron.put('/v2.0/subnets/%s' % subnet,
                json={'subnet': {'allocation_pools': [pool]}})


def no_scheduler(at: scene.Scene) -> Rounds:
    """Nova-scheduler does not run"""
    def is_down() -> bool:
        answer = at.nova.get('/os-services?binary=nova-scheduler')
        return all(service['state'] == 'down'
                   for service in answer.json()['services'])

    at.later(at.schedulers.restart)
    at.cloud.process('scheduler').kill()
    at.wait_until(is_down, 'nova considers nova-scheduler to be down')
    wanted = furnish.flavor(at)
    yield Round(Waiting(at, wanted), '', refusal='status BUILD', summary=FOUND,
                note='No nova-scheduler is up', action='start nova-scheduler',
                again=servers.Create(at, wanted), anywhere=True)
    at.schedulers.restart()


def name_conflict(at: scene.Scene) -> Rounds:
    """Another provider has the name of the host"""
    zone, own = furnish.zone(at, SOURCE), hosts.provider(at, SOURCE)
    name = at.placement.get('/resource_providers/%s' % own).json()['name']
    at.placement.delete('/resource_providers/%s' % own)
    other = at.placement.post('/resource_providers', json={
        'name': name}).json()['uuid']
    at.later(at.placement.delete, '/resource_providers/%s' % other,
             raise_exc=False)
    yield Round(furnish.creation(at, zone), SOURCE, 'no_provider',
                'without a resource provider',
                'openstack resource provider set --name')
    hosts.restart(at, SOURCE)
    hosts.wait_member(at, own, furnish.uuid(at, zone))


def pinned(at: scene.Scene) -> Rounds:
    """Migration: the other host is in another zone"""
    # Nova does not add it to this one.
    zone = furnish.zone(at, SOURCE)
    furnish.zone(at, HOST)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    yield Round(servers.Move(at, server, 'migrate'), HOST, 'aggregate',
                'not in zone ' + zone, 'unpin the server from its zone',
                'unpin the server', anywhere=True)
    servers.shelve(at, server)
    at.nova.post('/servers/%s/action' % server, json={
        'unshelve': {'availability_zone': None}})
    at.wait_until(lambda: servers.has_status(at, server, 'ACTIVE'),
                  'the server is unpinned')


def affinity_move(at: scene.Scene) -> Rounds:
    """Migration of a server of an affinity group"""
    # No server changes its group.
    wanted, group = furnish.flavor(at), furnish.group(at, 'affinity')
    server, _other = (servers.boot(
        at, wanted, SOURCE, 'nova:' + SOURCE, hints={'group': group})
        for _number in range(2))
    yield Round(servers.Move(at, server, 'migrate'), HOST, 'filter',
                'not the host of the server group', action='none',
                is_final=True)


def different_host_move(at: scene.Scene) -> Rounds:
    """Migration with the hint different_host"""
    zone, wanted = furnish.zone(at, SOURCE, HOST), furnish.flavor(at)
    first = servers.boot(at, wanted, HOST, '%s:%s' % (zone, HOST))
    server = servers.boot(at, wanted, SOURCE, zone,
                          hints={'different_host': first})
    yield Round(servers.Move(at, server, 'migrate'), HOST, 'filter',
                'with a server to keep apart from',
                'move the other server away first', 'delete the other server')
    servers.delete(at, first)


def _typo(at: scene.Scene, specs: abc.Mapping[str, str], reason: str,
          step: str) -> Rounds:
    zone = furnish.zone(at, HOST)
    yield Round(furnish.creation(at, zone, specs=specs), HOST, 'refused',
                'the request is refused', step, 'correct the flavor',
                furnish.creation(at, zone), summary=reason)


def pci_alias(at: scene.Scene) -> Rounds:
    """The file that is read lacks the PCI alias"""
    wanted = furnish.flavor(at, specs={'pci_passthrough:alias': 'typo:1'})
    yield Round(_described(at, wanted), '', refusal='PCI alias',
                summary='[pci] alias', error=True,
                action='correct the flavor', anywhere=True,
                again=furnish.creation(at))


def default_pinned(at: scene.Scene) -> Rounds:
    """A server pinned to the default zone is on a host of another"""
    furnish.zone(at, HOST)
    hosts.capacity(at, SOURCE, 'VCPU', 1)
    hosts.disable(at, *OTHERS)
    created = furnish.creation(
        at, 'nova', vcpus=2, explained=['--for', 'create'])
    yield Round(created, HOST, 'acceptable', 'acceptable', action='none',
                wrong=HOST, is_final=True,
                summary='nova-scheduler finds 1 of 6',
                note='Nothing enforces zone nova: no aggregate has it')


def server_cell_down(at: scene.Scene) -> Rounds:
    """The database of the server's cell does not answer"""
    # Only the request of the server can be read.
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.disable(at, HOST)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    database = hosts.cell_database(at)
    database.fail('refuses')
    yield Round(Newest(at, server, 'migrate'), '', takes=HOST,
                summary='nova-scheduler finds 0 of ',
                note='the server is in that cell: this is about its creation',
                action='start the database of the cell')
    database.forward()
    hosts.enable(at, HOST)


SITUATIONS = (
    Situation('failed-move', 'A live migration that failed, explained by the '
              'server\'s name alone', lambda at: moves.live_migrate(
                  at, Newest, FAILED % 'live-migrate')),
    Situation('failed-resize', 'A resize that failed, explained by the '
              'server\'s name alone', lambda at: moves.resize(
                  at, Newest, 'add larger hosts', FAILED % 'resize')),
    *scene.situations(
        quota, private_flavor, missing_image, full_network, no_scheduler,
        name_conflict, pinned, affinity_move),
    *scene.situations(different_host_move, scheduler=schedulers.STOCK),
    Situation('unknown-class', 'The flavor has a resource class that '
              'placement lacks', lambda at: _typo(
                  at, {'resources:CUSTOM_TYPO': '1'}, 'placement has no '
                  'resource class CUSTOM_TYPO',
                  'openstack resource class create CUSTOM_TYPO')),
    Situation('unknown-trait', 'The flavor has a trait that placement lacks',
              lambda at: _typo(at, {'trait:CUSTOM_TYPO': 'required'},
                               'placement has no trait CUSTOM_TYPO',
                               'openstack trait create CUSTOM_TYPO')),
    Situation('no-policy', 'The flavor has numbered groups and no policy',
              lambda at: _typo(
                  at, {'resources1:VCPU': '1', 'resources2:MEMORY_MB': '1'},
                  'no group_policy',
                  'openstack flavor set --property group_policy=none')),
    *scene.situations(pci_alias, default_pinned, server_cell_down))
