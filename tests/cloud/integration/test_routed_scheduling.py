# SPDX-License-Identifier: Apache-2.0
"""The hosts of servers with ports on a routed network."""

from tests.cloud.integration import base
from tests.cloud.integration import routed_case

# Hosts that nova tries for a server: max_attempts, as it is by default.
ATTEMPTS = 3


class TestPorts(routed_case.TestCase):

    def test_with_an_address(self):
        """A server goes to the segment of its port's address."""
        for segment in self.routed.segments:
            port = self.routed.port(segment)
            addresses = self.routed.addresses(port)
            server = self.boot({'port': port})
            self.assert_in(segment, server)
            self.assertEqual([server[base.HOST]], self.hosts_tried(server))
            self.assertEqual(addresses, self.routed.addresses(port))

    @base.of_nova_alone
    def test_without_an_address(self):
        """The port gets an address in the segment of the chosen host.

        That is the user's port, or nova's if only the network is requested.
        """
        port = self.routed.port()
        self.assertEqual([], self.routed.addresses(port))
        server = self.boot({'port': port})
        self.assert_in(self.segment_of(server), server)
        self.assertEqual(1, len(self.routed.addresses(port)))
        server = self.boot({'uuid': self.routed.id})
        self.assert_in(self.segment_of(server), server)


@base.of_nova_alone
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
class TestRetry(routed_case.TestCase):

    def test_same_port_and_address(self):
        """After a failed build the server keeps port and address elsewhere."""
        refusal = self.cloud.config.refusal
        self.addCleanup(refusal.unlink, missing_ok=True)
        refusal.touch()
        port = self.routed.port(self.first)
        addresses = self.routed.addresses(port)
        server = self.boot({'port': port})
        self.assertFalse(refusal.exists())
        self.assert_in(self.first, server)
        tried = set(self.hosts_tried(server))
        self.assertEqual(2, len(tried))
        self.assertLessEqual(tried, self.first.hosts)
        interface, = self.cloud.nova().get(
            '/servers/%s/os-interface' % server['id']).json()[
                'interfaceAttachments']
        self.assertEqual(port, interface['port_id'])
        self.assertEqual(addresses, self.routed.addresses(port))


class TestZones(routed_case.TestCase):

    def test_of_both_segments(self):
        """A server's host is in both its zone and its segment, or none is."""
        both = self.zone(*(min(each.hosts) for each in self.routed.segments))
        for segment in self.routed.segments:
            server = self.boot({'port': self.routed.port(segment)}, zone=both)
            self.assert_in(segment, server)
            self.assertEqual([min(segment.hosts)], self.hosts_tried(server))
        other = self.zone(max(self.second.hosts))
        refused = self.boot({'port': self.routed.port(self.first)}, zone=other)
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
        url = '/servers/%s/action' % server['id']
        for move, status in (
                ({'migrate': None}, 'VERIFY_RESIZE'),
                ({'os-migrateLive': {'host': None,
                                     'block_migration': 'auto'}}, 'ACTIVE')):
            others = self.first.hosts - {server[base.HOST]}
            self.cloud.nova().post(url, json=move)
            server = self.wait_for(server, status, *others)
            if status != 'ACTIVE':
                self.cloud.nova().post(url, json={'confirmResize': None})
                server = self.wait_for(server, 'ACTIVE', *others)
            self.assert_in(self.first, server)
            self.assertEqual(addresses, self.routed.addresses(port))
