# SPDX-License-Identifier: Apache-2.0
"""Segments without free addresses, with and without the request filter."""

from concurrent import futures
import json
import os
import uuid

import fixtures

from tests.cloud.integration import base
from tests.cloud.integration import narrowed
from tests.cloud.integration import routed_case

SERVERS = int(os.environ.get('AGGREGATE_MIRROR_SERVERS', 5))
AT_ONCE = 4
RATE = 'NET_PACKET_RATE_KILOPACKET_PER_SEC'
# The second segment has more nodes than nova tries, and is filled; the first
# has an address for each server of the tests.
BITS = 25, 29


class FullSegmentTest(routed_case.TestCase):

    bits = BITS

    def prepare(self):
        nova = self.cloud.nova()
        quota = '/os-quota-sets/%s' % nova.get_project_id()
        self.addCleanup(nova.delete, quota)
        nova.put(quota, json={'quota_set': {
            'cores': -1, 'ram': -1, 'instances': -1}})

    def narrow(self):
        self.useFixture(narrowed.Narrowed(self.cloud, 'segment_addresses'))

    def network(self):
        return {'uuid': self.routed.id}

    def boot_several(self):
        """Create servers; return those that run, and how many were built."""
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            made = list(pool.map(
                lambda _number: self.boot(self.network()), range(SERVERS)))
        builds = sum(len(self.hosts_tried(one)) for one in made)
        for one in made:
            self.delete_server(one)
        return [one for one in made if one['status'] == 'ACTIVE'], builds

    def assert_refused_at_once(self, server):
        """No host is tried, and the user reads which network is full."""
        self.assert_refused(server)
        self.assertEqual([], self.hosts_tried(server))


class TestOneFullSegment(FullSegmentTest):

    def test_servers_get_an_address(self):
        """Stock nova also tries hosts of the full segment, in vain."""
        self.routed.fill(self.second)
        stock, tried = self.boot_several()
        self.narrow()
        running, builds = self.boot_several()
        print('%d servers: %d run after %d builds with stock nova, %d after '
              '%d builds with segment_addresses' % (
                  SERVERS, len(stock), tried, len(running), builds))
        self.assertGreater(tried, SERVERS)
        self.assertEqual((SERVERS, SERVERS), (len(running), builds))
        for server in running:
            self.assert_in(self.first, server)

    def test_freed_address(self):
        """The segment is used again as soon as neutron has an address.

        Nova's port of a server is deleted with the server.
        """
        freed, *_rest = self.routed.fill(self.second)
        self.take_no_servers(*self.first.hosts)
        self.narrow()
        refused = self.boot(self.network())
        self.assert_refused_at_once(refused)
        self.routed.delete_port(freed)
        server = self.boot(self.network())
        self.assert_in(self.second, server)
        self.delete_server(server)
        self.assert_in(self.second, self.boot(self.network()))

    def test_other_conditions(self):
        """A port with an address, a second network and a zone are kept."""
        port = self.routed.port(self.second)
        self.routed.fill(self.second, left=1)
        zone = self.zone(min(self.first.hosts), min(self.second.hosts))
        self.narrow()
        self.assert_in(self.second, self.boot({'port': port}))
        server = self.boot({'port': self.routed.port()})
        self.assert_in(self.first, server)
        self.assertEqual([server[base.HOST]], self.hosts_tried(server))
        public = self.cloud.rest('network').get(
            '/v2.0/networks?name=public').json()['networks'][0]['id']
        server = self.boot({'uuid': public}, others=[self.network()])
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        self.assertIn(server[base.HOST], self.first.hosts)
        self.assertEqual({'public', 'routed'}, server['addresses'].keys())
        server = self.boot(self.network(), zone=zone)
        self.assert_in(self.first, server)
        self.assertEqual([min(self.first.hosts)], self.hosts_tried(server))


class TestBothSegments(FullSegmentTest):

    bits = 29, 29

    def test_twelve_addresses(self):
        """Ten servers, created at once, take six and four; then two more."""
        self.narrow()
        servers = self.boot_at_once('server-%s' % uuid.uuid4().hex[:8], 10)
        self.assertEqual([4, 6], sorted(
            sum(one[base.HOST] in each.hosts for one in servers)
            for each in self.routed.segments))
        for _server in range(2):
            self.segment_of(self.boot(self.network()))
        server = self.boot(self.network())
        self.assert_refused_at_once(server)
        with open(self.cloud.process('scheduler').log) as log:
            line, = (one for one in log if server['id'] in one
                     and 'has no valid host' in one)
        for name in (self.routed.id, self.first.id, self.second.id):
            self.assertIn(name, line)

    def boot_at_once(self, name, count):
        """Create servers in one request; wait until nova is done."""
        nova = self.cloud.nova()
        images = self.cloud.rest('image').get('/v2/images?name=empty').json()
        flavors = nova.get('/flavors').json()['flavors']
        nova.post('/servers', json={'server': {
            'name': name, 'min_count': count, 'max_count': count,
            'flavorRef': next(one['id'] for one in flavors
                              if one['name'] == 'tiny'),
            'imageRef': images['images'][0]['id'],
            'networks': [self.network()]}})
        found = []

        def done():
            found[:] = nova.get('/servers/detail?name=' + name).json()[
                'servers']
            return len(found) == count and all(
                one['status'] != 'BUILD' for one in found)

        self.wait_until(done, 'nova is done with %s' % name)
        for one in found:
            self.addCleanup(self.delete_server, one)
        return [one for one in found if one['status'] == 'ACTIVE']


class PacketRates(fixtures.Fixture):
    """Neutron's agents report a packet rate for some hosts.

    Placement then has a provider of the agent below that of the host.
    """

    def __init__(self, running, wait_until, rates):
        super().__init__()
        self._cloud = running
        self._wait_until = wait_until
        self._rates = rates

    def _setUp(self):
        before = list(self._cloud.process('network-agents').argv)
        self.addCleanup(self._remove)
        self.addCleanup(self._restart, before)
        self._restart([*before, json.dumps(self._rates)])
        self._wait_until(
            lambda: len(self._providers()) == len(self._rates)
            and all(self.inventory(each) for each in self._providers()),
            'placement has the packet rates of %s' % ', '.join(self._rates))

    def _restart(self, argv):
        agents = self._cloud.process('network-agents')
        agents.kill()
        agents.argv[:] = argv
        self._cloud.start('network-agents')

    def _providers(self):
        found = self._cloud.placement().get(
            '/resource_providers').json()['resource_providers']
        return [each['uuid'] for each in found if each['name'] in [
            '%s:Open vSwitch agent' % host for host in self._rates]]

    def inventory(self, provider):
        return self._cloud.placement().get(
            '/resource_providers/%s/inventories' % provider
        ).json()['inventories']

    def _remove(self):
        for each in self._providers():
            self._cloud.placement().delete('/resource_providers/%s' % each)
        # A nova-compute that has read them fails until it is restarted.
        for host in self._rates:
            self._cloud.restart(host)

    def used(self):
        """Return the packet rate that servers use, in kpps."""
        return sum(self._cloud.placement().get(
            '/resource_providers/%s/usages' % each).json()['usages'][RATE]
            for each in self._providers())


class TestPacketRate(FullSegmentTest):
    """Ports whose quality of service asks placement for resources.

    Nova has a numbered group of resources for each such port.
    """

    # A host of each segment.
    hosts = 'compute-1', 'compute-2'

    def prepare(self):
        super().prepare()
        self.rates = self.useFixture(PacketRates(
            self.cloud, self.wait_until, dict.fromkeys(self.hosts, 10)))

    def policy(self):
        """Create a policy with a minimum packet rate; return its ID."""
        neutron = self.cloud.rest('network')
        made = neutron.post('/v2.0/qos/policies', json={'policy': {
            'name': 'packets'}}).json()['policy']['id']
        self.addCleanup(neutron.delete, '/v2.0/qos/policies/%s' % made)
        neutron.post(
            '/v2.0/qos/policies/%s/minimum_packet_rate_rules' % made,
            json={'minimum_packet_rate_rule': {
                'min_kpps': 1, 'direction': 'any'}})
        return made

    def test_full_segment(self):
        """The group stays as it is; only the full segment is left out."""
        policy, neutron = self.policy(), self.cloud.rest('network')
        self.routed.fill(self.second)
        self.narrow()
        for count in range(1, 4):
            port = self.routed.port()
            self.addCleanup(neutron.delete, '/v2.0/ports/%s' % port)
            neutron.put('/v2.0/ports/%s' % port, json={'port': {
                'qos_policy_id': policy}})
            server = self.boot({'port': port})
            self.assert_in(self.first, server)
            self.assertEqual(self.hosts[0], server[base.HOST])
            self.assertEqual(1, len(self.hosts_tried(server)))
            self.assertEqual(count, self.rates.used())


@base.of_nova_alone
class TestPlacementsCounts(FullSegmentTest):
    """Why the filter does not ask placement."""

    def test_servers_are_not_counted(self):
        """Neutron leaves their addresses to nova, which allocates none."""
        before = self.routed.read(self.first, 'inventories')['inventories']
        port = self.routed.port(self.first)
        self.wait_until(lambda: self.counted() == 1,
                        'neutron has reserved an address')
        self.assert_in(self.first, self.boot({'port': port}))
        self.wait_until(lambda: self.counted() == 0,
                        'neutron has released the address')
        self.assertEqual(
            before, self.routed.read(self.first, 'inventories')['inventories'])
        found = self.cloud.rest('network').get(
            '/v2.0/network-ip-availabilities/%s' % self.routed.id).json()
        self.assertEqual(1, found['network_ip_availability']['used_ips'])

    def counted(self):
        """Return the addresses that placement has as reserved or used."""
        inventory = self.routed.read(
            self.first, 'inventories')['inventories']['IPV4_ADDRESS']
        usages = self.routed.read(self.first, 'usages')['usages']
        return inventory['reserved'] + usages['IPV4_ADDRESS']
