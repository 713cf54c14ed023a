# SPDX-License-Identifier: Apache-2.0
"""Deletion of a segment's aggregate, in nova, placement and neutron."""

import pathlib

from tests.cloud.integration import routed_case

LOGS = ('neutron', 'neutron-rpc')
# Neutron logs an error for a cache that is not configured, and RabbitMQ may
# miss a heartbeat.
OTHERS = ('stevedore.extension', 'oslo.messaging', 'oslo_messaging', 'amqp')


class DeletionTest(routed_case.TestCase):

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
        return [line for line in lines
                if not any(other in line for other in OTHERS)
                and (' ERROR ' in line or 'Error: ' in line)]

    def delete_by_hand(self, segment):
        """Delete a segment's aggregate, like an operator; return its UUID."""
        found = self.routed.aggregate(segment)
        self.delete_aggregate(found['name'])
        return found['uuid']


class TestByHand(DeletionTest):

    def test_nothing_is_left_of_it(self):
        """It has no provider any more; the other aggregate is unchanged."""
        others = self.routed.members(
            self.routed.aggregate(self.second)['uuid'])
        uuid = self.delete_by_hand(self.first)
        self.assertEqual(set(), self.routed.members(uuid))
        self.assertEqual([], self.routed.aggregates(self.first))
        self.assertEqual(others, self.routed.members(
            self.routed.aggregate(self.second)['uuid']))


class TestNeutron(DeletionTest):

    def test_cleans_up_after_itself(self):
        """Neutron's own deletion leaves nothing, and logs no error."""
        uuids = [self.routed.aggregate(each)['uuid']
                 for each in self.routed.segments]
        self.routed.delete()
        self.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([set(), set()],
                         [self.routed.members(uuid) for uuid in uuids])
        self.assertEqual([], self.troubles())

    def test_works_with_an_aggregate_in_its_place(self):
        """An aggregate created by an operator works for neutron and nova."""
        self.delete_by_hand(self.first)
        refused = self.boot({'port': self.routed.port(self.first)})
        self.assertIn('Aggregates not found for the subnet',
                      refused['fault']['message'])
        made = self.aggregate()
        for host in self.first.hosts:
            self.add_host(made, host)
        self.routed.write(self.first, 'aggregates', [self.uuid_of(made)])
        server = self.boot({'port': self.routed.port(self.first)})
        self.assertTrue(self.first.has(server), server)
        self.delete_server(server)
        self.routed.delete()
        self.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([], self.troubles())
        names = [each['Name'] for each in self.openstack('aggregate', 'list')]
        self.assertNotIn(made, names)
