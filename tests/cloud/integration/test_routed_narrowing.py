# SPDX-License-Identifier: Apache-2.0
"""Request filters and the guard on routed networks."""

from tests.cloud.integration import routed_case
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import schedulers


class TestNarrowing(routed_case.TestCase):

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
