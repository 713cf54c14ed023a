# SPDX-License-Identifier: Apache-2.0
"""The aggregates that neutron creates for segments, and their providers."""

import testscenarios

from tests.cloud.integration import routed_case
from tests.cloud.situations import furnish


class TestAggregates(routed_case.TestCase):

    def test_made_by_neutron_and_mirrored(self):
        """The aggregate has the segment and all nodes of its hosts."""
        for segment in self.routed.segments:
            self.assertEqual(
                self.nodes(*segment.hosts) | {segment.id},
                self.routed.members(self.uuid(segment)))


class TestSync(testscenarios.WithScenarios, routed_case.TestCase):

    scenarios = [('command', {'agent': False}), ('agent', {'agent': True})]

    def test_segments_are_left_alone(self):
        """A sync repairs nodes, and keeps what a segment's provider has."""
        self.stop_agents()
        other = self.aggregate()
        uuid = furnish.uuid(self.scene, other)
        node, = self.nodes('compute-1')
        # A missing association, a surplus association, and a foreign
        # association.
        self.move(node, remove=[self.uuid(self.first)], add=[uuid])
        self.move(self.first.id, add=[uuid])
        before = self._segments()
        self._sync()
        self.assertEqual(before, self._segments())
        self.assertIn(uuid, self.routed.aggregates(self.first))
        self.assertIn(node, self.routed.members(self.uuid(self.first)))
        self.assertNotIn(node, self.routed.members(uuid))

    def _segments(self):
        """Return the generations and aggregates of the segments' providers."""
        return [self.routed.read(each, 'aggregates')
                for each in self.routed.segments]

    def _sync(self):
        if self.agent:
            self.start_agents()
            self.assert_equal()
            return
        status, out, err = self.cloud.run(
            'nova-aggregate-mirror-manage', '--config-file',
            self.cloud.config.path('controller-1.conf'), 'placement',
            'sync_aggregates', '--prune', '--format', 'value')
        self.assertEqual(0, status, out + err)
        self.assertRegex(out, r'foreign_provider .*%s ' % self.first.id)


class TestDrift(routed_case.TestCase):

    def test_hosts_come_back(self):
        """A segment without hosts gets no server until they are repaired."""
        self.stop_agents()
        uuid = self.uuid(self.first)
        for node in self.nodes(*self.first.hosts):
            self.move(node, remove=[uuid])
        refused = self.boot({'port': self.routed.port(self.first)})
        self.assert_refused(refused)
        self.start_agents()
        self.assert_equal()
        made = self.boot({'port': self.routed.port(self.first)})
        self.assert_in(self.first, made)
