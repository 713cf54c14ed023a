# SPDX-License-Identifier: Apache-2.0
"""Routed networks: neutron's aggregates, and the hosts of servers."""

from concurrent import futures
import re

from tests.cloud.integration import base
from tests.cloud.integration import routed
from tests.cloud import processes
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

# Neutron logs an error for a cache that is not configured, and RabbitMQ may
# miss a heartbeat.
OTHERS = re.compile(r'stevedore\.extension|oslo[._]messaging|amqp')
SERVERS = 5


class RoutedTest(base.TestCase):
    """A test with a routed network of two segments."""

    bits = 29, 29
    """The prefix length of the subnet of each segment."""

    def setUp(self):
        super().setUp()
        self.routed = self.useFixture(
            routed.RoutedNetwork(self.scene, self.bits))
        self.first, self.second = self.routed.segments
        self.network = {'uuid': self.routed.id}

    def use_our_filters(self):
        """Configure nova-scheduler until the test ends."""
        self.addCleanup(self.scene.schedulers.use, '')
        self.scene.schedulers.use(schedulers.OURS)

    def assert_in(self, server, *segments):
        """Check that a server has a host and an address of a segment."""
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        self.assertTrue(any(segment.has(server) for segment in (
            segments or self.routed.segments)), server)

    def assert_refused_at_once(self, server):
        """Check that nova found no host for a server, and tried none."""
        self.assertEqual('ERROR', server['status'])
        self.assertIn('No valid host', server['fault']['message'])
        self.assertEqual([], self.hosts_tried(server))

    def hosts_tried(self, server):
        """Return the hosts that tried to build a server, in order."""
        url = '/servers/%s/os-instance-actions' % server['id']
        actions = self.cloud.nova().get(url).json()['instanceActions']
        request, = (each['request_id'] for each in actions
                    if each['action'] == 'create')
        created = servers.action(self.scene, server['id'], request)
        # Nova lists the newest first, and its times have no fractions of a
        # second.
        return [each['host'] for each in sorted(
            reversed(created['events']), key=lambda event: event['start_time'])
            if each['event'] == 'compute__do_build_and_run_instance']

    def uuid(self, segment):
        """Return the UUID of the aggregate that neutron created."""
        return self.routed.aggregate(segment)['uuid']


class TestAggregates(RoutedTest):

    def read_cloud(self, directory):
        super().read_cloud(directory)
        # Before neutron creates the segments.
        self.logs = [processes.NewLines(self.cloud.process(name).log)
                     for name in ('neutron', 'neutron-rpc')]

    def test_made_by_neutron_and_mirrored(self):
        """The aggregate has the segment and all nodes of its hosts."""
        for segment in self.routed.segments:
            nodes = {node.uuid for node in self.cloud.nodes()
                     if node.host in segment.hosts}
            self.assertEqual(nodes | {segment.id},
                             self.routed.members(self.uuid(segment)))

    def test_deleted_by_neutron(self):
        """Neutron's deletion leaves nothing, and it never logs an error."""
        uuids = [*map(self.uuid, self.routed.segments)]
        self.routed.delete()
        self.scene.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([set(), set()],
                         [self.routed.members(uuid) for uuid in uuids])
        for log in self.logs:
            errors = [line for line in log.read().splitlines()
                      if ' ERROR ' in line or 'Error: ' in line]
            self.assertEqual(
                [], [line for line in errors if not OTHERS.search(line)])


class TestPorts(RoutedTest):

    def test_with_an_address(self):
        """A server goes to the segment of its port's address."""
        for segment in self.routed.segments:
            port = self.routed.port(segment)
            addresses = self.routed.addresses(port)
            server = self.boot({'port': port})
            self.assert_in(server, segment)
            self.assertEqual([server[base.HOST]], self.hosts_tried(server))
            self.assertEqual(addresses, self.routed.addresses(port))

    @base.of_nova_alone
    def test_without_an_address(self):
        """The port gets an address in the segment of the chosen host.

        That is the user's port, or nova's if only the network is requested.
        """
        port = self.routed.port()
        self.assertEqual([], self.routed.addresses(port))
        self.assert_in(self.boot({'port': port}))
        self.assertEqual(1, len(self.routed.addresses(port)))
        self.assert_in(self.boot(self.network))

    @base.of_nova_alone
    def test_same_port_and_address(self):
        """After a failed build the server keeps port and address elsewhere."""
        refusal = self.cloud.config.refusal
        self.addCleanup(refusal.unlink, missing_ok=True)
        refusal.touch()
        port = self.routed.port(self.first)
        addresses = self.routed.addresses(port)
        server = self.boot({'port': port})
        self.assertFalse(refusal.exists())
        self.assert_in(server, self.first)
        tried = set(self.hosts_tried(server))
        self.assertEqual(2, len(tried))
        self.assertLessEqual(tried, self.first.hosts)
        answer = self.cloud.nova().get(
            '/servers/%s/os-interface' % server['id'])
        interface, = answer.json()['interfaceAttachments']
        self.assertEqual(port, interface['port_id'])
        self.assertEqual(addresses, self.routed.addresses(port))


class TestNarrowing(RoutedTest):
    """Request filters and the guard."""

    def test_flavor_and_segment(self):
        """A server's host is in its flavor's aggregate and its segment."""
        furnish.aggregate(self.scene, *(
            min(segment.hosts) for segment in self.routed.segments),
            disk='fast')
        # Messages about aggregates reach nova-scheduler in any order; only at
        # its start it reads them from the database.
        self.use_our_filters()
        flavor = furnish.flavor(self.scene, specs={
            'aggregate_instance_extra_specs:disk': 'fast'})
        for segment in self.routed.segments:
            server = self.boot({'port': self.routed.port(segment)}, flavor)
            self.assert_in(server, segment)
            self.assertEqual([min(segment.hosts)], self.hosts_tried(server))

    def test_host_of_another_segment(self):
        """A foreign write to placement does not move a server to that host."""
        self.stop_agents()
        wrong = min(self.second.hosts)
        hosts.member(self.scene, wrong, self.uuid(self.first), True)
        hosts.disable(self.scene, *self.first.hosts)
        # Stock nova's scheduler uses the wrong host.
        believed = self.boot({'port': self.routed.port(self.first)})
        self.assertEqual([wrong], self.hosts_tried(believed))
        self.use_our_filters()
        self.assert_refused_at_once(
            self.boot({'port': self.routed.port(self.first)}))
        self.assert_in(self.boot({'port': self.routed.port(self.second)}),
                       self.second)


class TestFullSegment(RoutedTest):

    # The second segment has more nodes than nova tries, and is filled; the
    # first has an address for each server of the tests.
    bits = 25, 29

    def test_servers_get_an_address(self):
        """Stock nova also tries hosts of the full segment, in vain."""
        self.routed.fill(self.second)
        _stock, tried = self.boot_several()
        self.assertGreater(tried, SERVERS)
        self.use_our_filters()
        running, builds = self.boot_several()
        self.assertEqual((SERVERS, SERVERS), (len(running), builds))

    def boot_several(self):
        """Create servers; return those that run, and how many were built."""
        with futures.ThreadPoolExecutor(4) as pool:
            made = list(pool.map(self.boot, [self.network] * SERVERS))
        builds = sum(len(self.hosts_tried(server)) for server in made)
        running = [server for server in made if server['status'] == 'ACTIVE']
        for server in running:
            self.assert_in(server, self.first)
        for server in made:
            servers.delete(self.scene, server['id'])
        return running, builds

    def test_freed_address(self):
        """The segment is used again as soon as neutron has an address.

        Nova's port of a server is deleted with the server.
        """
        freed, *_rest = self.routed.fill(self.second)
        hosts.disable(self.scene, *self.first.hosts)
        self.use_our_filters()
        self.assert_refused_at_once(self.boot(self.network))
        self.routed.delete_port(freed)
        server = self.boot(self.network)
        self.assert_in(server, self.second)
        servers.delete(self.scene, server['id'])
        self.assert_in(self.boot(self.network), self.second)
