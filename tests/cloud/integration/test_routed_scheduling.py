# SPDX-License-Identifier: Apache-2.0
"""The hosts of servers with ports on a routed network."""

from tests.cloud.integration import base
from tests.cloud.integration import routed_case
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import schedulers


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
        for segment in self.routed.segments:
            hosts.disable(self.scene, *sorted(segment.hosts)[1:])
        full, other = (min(each.hosts) for each in self.routed.segments)
        # With a server on the other host, the full segment's host has more
        # room, and nova tries it first.
        self.boot({'port': self.routed.port(self.second)})
        self.routed.fill(self.first)
        server = self.boot({'port': self.routed.port()})
        self.assert_in(self.second, server)
        self.assertEqual([full, other], self.hosts_tried(server))


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
        answer = self.cloud.nova().get(
            '/servers/%s/os-interface' % server['id'])
        interface, = answer.json()['interfaceAttachments']
        self.assertEqual(port, interface['port_id'])
        self.assertEqual(addresses, self.routed.addresses(port))


class TestNarrowing(routed_case.TestCase):
    """Request filters and the guard."""

    def test_flavor_and_segment(self):
        """A server's host is in its flavor's aggregate and its segment."""
        furnish.aggregate(self.scene, *(
            min(segment.hosts) for segment in self.routed.segments),
            disk='fast')
        # Messages about aggregates reach nova-scheduler in any order; only at
        # its start it reads them from the database.
        self.use_scheduler(schedulers.OURS)
        flavor = furnish.flavor(self.scene, specs={
            'aggregate_instance_extra_specs:disk': 'fast'})
        for segment in self.routed.segments:
            server = self.boot({'port': self.routed.port(segment)}, flavor)
            self.assert_in(segment, server)
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
        self.use_scheduler(schedulers.OURS)
        refused = self.boot({'port': self.routed.port(self.first)})
        self.assert_refused(refused)
        self.assertEqual([], self.hosts_tried(refused))
        self.assert_in(self.second, self.boot(
            {'port': self.routed.port(self.second)}))
