# SPDX-License-Identifier: Apache-2.0
"""The aggregates that neutron creates for segments, and deletes again."""

import re

from tests.cloud.integration import routed_case
from tests.cloud import processes

LOGS = ('neutron', 'neutron-rpc')
# Neutron logs an error for a cache that is not configured, and RabbitMQ may
# miss a heartbeat.
OTHERS = re.compile(r'stevedore\.extension|oslo[._]messaging|amqp')


class TestAggregates(routed_case.TestCase):

    def read_cloud(self, directory):
        super().read_cloud(directory)
        # Before neutron creates the segments.
        self.logs = [processes.NewLines(self.cloud.process(name).log)
                     for name in LOGS]

    def test_made_by_neutron_and_mirrored(self):
        """The aggregate has the segment and all nodes of its hosts."""
        for segment in self.routed.segments:
            self.assertEqual(self.nodes(*segment.hosts) | {segment.id},
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
