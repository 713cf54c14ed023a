# SPDX-License-Identifier: Apache-2.0
"""The hosts of servers with ports on a routed network."""

from tests.cloud.integration import base
from tests.cloud.integration import routed_case

# Hosts that nova tries for a server: max_attempts, as it is by default.
ATTEMPTS = 3


class TestPorts(routed_case.TestCase):

    def test_with_an_address(self):
        """A server goes to the segment of its port's address."""
        for segment in (self.first, self.second) * 2:
            port = self.routed.port(segment)
            addresses = self.routed.addresses(port)
            server = self.boot({'port': port})
            self.assert_in(segment, server)
            self.assertEqual([server[base.HOST]], self.hosts_tried(server))
            self.assertEqual(addresses, self.routed.addresses(port))

    def test_without_an_address(self):
        """The port gets an address in the segment of the chosen host."""
        port = self.routed.port()
        self.assertEqual([], self.routed.addresses(port))
        server = self.boot({'port': port})
        self.assert_in(self.segment_of(server), server)
        self.assertEqual(1, len(self.routed.addresses(port)))

    def test_of_nova(self):
        """A server with only a network gets a port on either segment."""
        server = self.boot({'uuid': self.routed.id})
        self.assert_in(self.segment_of(server), server)


class TestFullSegment(routed_case.TestCase):

    def test_left_after_a_retry(self):
        """Nova does not count addresses: it retries on another host."""
        self.keep_one_host_of_each()
        full, other = (min(each.hosts) for each in self.routed.segments)
        # With a server on the other host, the full segment's host has more
        # room, and nova tries it first.
        self.boot({'port': self.routed.port(self.second)})
        self.routed.fill(self.first)
        server = self.boot({'port': self.routed.port()})
        self.assert_in(self.second, server)
        self.assertEqual([full, other], self.hosts_tried(server))

    def test_with_no_other_host(self):
        """A server is in ERROR if all hosts that nova tries are full."""
        self.take_no_servers(*self.second.hosts)
        self.routed.fill(self.first)
        server = self.boot({'port': self.routed.port()})
        self.assertEqual('ERROR', server['status'])
        tried = self.hosts_tried(server)
        self.assertLessEqual(set(tried), self.first.hosts)
        self.assertEqual(
            min(ATTEMPTS, len(self.nodes(*self.first.hosts))), len(tried))


@base.of_nova_alone
class TestCountedAddresses(routed_case.TestCase):

    # Two addresses per segment.
    bits = 30, 30

    def test_shared_by_the_segments(self):
        """Addresses as a resource of the flavor are decided in scheduling."""
        for each in self.routed.segments:
            self.routed.write(each, 'traits', ['MISC_SHARES_VIA_AGGREGATE'])
        flavor = self.flavor({'resources:IPV4_ADDRESS': '1'})
        servers = [self.boot({'uuid': self.routed.id}, flavor)
                   for each in self.routed.segments
                   for _address in each.cidr.hosts()]
        for server in servers:
            self.assert_in(self.segment_of(server), server)
            self.assertEqual([server[base.HOST]], self.hosts_tried(server))
        refused = self.boot({'port': self.routed.port()}, flavor)
        self.assert_refused(refused)

    def test_not_in_a_zone(self):
        """Placement would require the segment in the zone's aggregate, too."""
        for each in self.routed.segments:
            self.routed.write(each, 'traits', ['MISC_SHARES_VIA_AGGREGATE'])
        flavor = self.flavor({'resources:IPV4_ADDRESS': '1'})
        zone = self.zone(min(self.first.hosts))
        refused = self.boot({'uuid': self.routed.id}, flavor, zone=zone)
        self.assert_refused(refused)
        self.assert_in(self.first, self.boot(
            {'uuid': self.routed.id}, zone=zone))


@base.of_nova_alone
class TestRetry(routed_case.TestCase):

    def setUp(self):
        super().setUp()
        self.refusal = self.cloud.config.refusal
        self.addCleanup(self.refusal.unlink, missing_ok=True)
        self.refusal.touch()

    def test_same_port_and_address(self):
        """After a failed build the server keeps port and address elsewhere."""
        port = self.routed.port(self.first)
        addresses = self.routed.addresses(port)
        server = self.boot({'port': port})
        self.assertFalse(self.refusal.exists())
        self.assert_in(self.first, server)
        tried = set(self.hosts_tried(server))
        self.assertEqual(2, len(tried))
        self.assertLessEqual(tried, self.first.hosts)
        self.assertEqual([port], self.ports_of(server))
        self.assertEqual(addresses, self.routed.addresses(port))

    def test_port_of_nova(self):
        """Nova creates a new port, so the server may change its segment."""
        self.keep_one_host_of_each()
        server = self.boot({'uuid': self.routed.id})
        self.assertFalse(self.refusal.exists())
        self.assert_in(self.segment_of(server), server)
        self.assertEqual(self.routed.ports(), self.ports_of(server))
        self.assertEqual(1, len(self.routed.ports()))
        self.assertEqual(2, len(set(self.hosts_tried(server))))

    def test_address_of_the_other_segment(self):
        """A port that got an address keeps it, and nova gives up."""
        self.keep_one_host_of_each()
        port = self.routed.port()
        server = self.boot({'port': port})
        self.assertEqual('ERROR', server['status'])
        self.assertIn('Failed to allocate the network(s), not rescheduling',
                      server['fault']['message'])
        self.assertEqual(1, len(self.routed.addresses(port)))

    def ports_of(self, server):
        found = self.cloud.nova().get(
            '/servers/%s/os-interface' % server['id']).json()
        return [each['port_id'] for each in found['interfaceAttachments']]


class TestZones(routed_case.TestCase):

    def test_of_both_segments(self):
        """A server's host is in both its zone and its segment."""
        zone = self.zone(*(min(each.hosts) for each in self.routed.segments))
        for segment in self.routed.segments:
            server = self.boot({'port': self.routed.port(segment)}, zone=zone)
            self.assert_in(segment, server)
            self.assertEqual(min(segment.hosts), server[base.HOST])
            self.assertEqual([server[base.HOST]], self.hosts_tried(server))

    def test_of_the_other_segment(self):
        """No host is in both zone and segment, and none is tried."""
        zone = self.zone(*self.second.hosts)
        refused = self.boot({'port': self.routed.port(self.first)}, zone=zone)
        self.assert_refused(refused)
        self.assertEqual([], self.hosts_tried(refused))


@base.of_nova_alone
class TestMoves(routed_case.TestCase):

    def test_stay_in_the_segment(self):
        """Cold and live migration keep the port and its address."""
        port = self.routed.port(self.first)
        addresses = self.routed.addresses(port)
        server = self.boot({'port': port})
        self.assert_in(self.first, server)
        for move, status in ((['migrate'], 'VERIFY_RESIZE'),
                             (['migrate', '--live-migration'], 'ACTIVE')):
            others = self.first.hosts - {server[base.HOST]}
            self.run_client('openstack', 'server', *move, server['id'])
            server = self.wait_for(server, status, *others)
            if status != 'ACTIVE':
                self.run_client('openstack', 'server', 'migration', 'confirm',
                                server['id'])
                server = self.wait_for(server, 'ACTIVE', *others)
            self.assert_in(self.first, server)
            self.assertEqual(addresses, self.routed.addresses(port))
