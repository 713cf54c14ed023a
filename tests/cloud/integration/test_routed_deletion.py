# SPDX-License-Identifier: Apache-2.0
"""Deletion of a segment's aggregate, in nova, placement and neutron."""

import pathlib
import re

from tests.cloud.integration import routed_case

LOGS = ('neutron', 'neutron-rpc')
# Neutron logs an error for a cache that is not configured, and RabbitMQ may
# miss a heartbeat.
OTHERS = re.compile(r'stevedore\.extension|oslo[._]messaging|amqp')


class TestByHand(routed_case.TestCase):

    def test_nothing_is_left_of_it(self):
        """It has no provider any more; the other aggregate is unchanged."""
        aggregate = self.routed.aggregate(self.first)
        others = self.routed.members(self.uuid(self.second))
        self.cloud.delete_aggregates(aggregate['name'])
        self.assertEqual(set(), self.routed.members(aggregate['uuid']))
        self.assertEqual([], self.routed.aggregates(self.first))
        self.assertEqual(others, self.routed.members(self.uuid(self.second)))


class TestNeutron(routed_case.TestCase):

    def prepare(self):
        self._read = {path: path.stat().st_size for path in self._paths()}

    def _paths(self):
        return [pathlib.Path(self.cloud.process(name).log) for name in LOGS]

    def troubles(self):
        """Return neutron's errors since the test began."""
        lines = []
        for path in self._paths():
            with open(path) as log:
                log.seek(self._read[path])
                lines += log.read().splitlines()
        return [line for line in lines if not OTHERS.search(line)
                and (' ERROR ' in line or 'Error: ' in line)]

    def test_cleans_up_after_itself(self):
        """Neutron's own deletion leaves nothing, and logs no error."""
        uuids = [*map(self.uuid, self.routed.segments)]
        self.routed.delete()
        self.scene.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([set(), set()],
                         [self.routed.members(uuid) for uuid in uuids])
        self.assertEqual([], self.troubles())
