# SPDX-License-Identifier: Apache-2.0
"""What happens to nova, placement and neutron when a segment's aggregate goes.
"""

import pathlib

import testscenarios

from tests.fullcloud import routed_case
from tests.fullcloud import stock

LOGS = ('neutron', 'neutron-rpc')
# Neutron looks for a cache that nobody asked for, and RabbitMQ may miss a
# heartbeat.
OTHERS = ('stevedore.extension', 'oslo.messaging', 'oslo_messaging', 'amqp')


class DeletionTest(routed_case.TestCase):

    def prepare(self):
        self._read = {path: path.stat().st_size for path in self._paths()}

    def _paths(self):
        return [pathlib.Path(self.cloud.daemon(name).log) for name in LOGS]

    def troubles(self):
        """What went wrong in neutron since the test began."""
        lines = []
        for path in self._paths():
            with open(path) as log:
                log.seek(self._read[path])
                lines += log.read().splitlines()
        return [line for line in lines
                if not any(other in line for other in OTHERS)
                and (' ERROR ' in line or 'Error: ' in line)]

    def delete_by_hand(self, segment, running=None):
        """Delete a segment's aggregate, as an operator does; its UUID.

        :param running: the nova-api of which cloud to ask
        """
        found = self.routed.aggregate(segment)
        nova = (running or self.cloud).nova()
        url = f'/os-aggregates/{found["id"]}'
        for host in found['hosts']:
            nova.post(url + '/action', json={'remove_host': {'host': host}})
        nova.delete(url)
        return found['uuid']


class TestByHand(testscenarios.WithScenarios, DeletionTest):

    scenarios = [(f'controller-{number}', {'controller': number})
                 for number in (1, 2)]

    def test_nothing_is_left_of_it(self):
        """Neither nodes nor the segment are in it; the other one stays."""
        others = self.routed.members(
            self.routed.aggregate(self.second)['uuid'])
        uuid = self.delete_by_hand(
            self.first, self.cloud.through(self.controller))
        self.assertEqual(set(), self.routed.members(uuid))
        self.assertEqual([], self.routed.aggregates(self.first))
        self.assertEqual(others, self.routed.members(
            self.routed.aggregate(self.second)['uuid']))


class TestByHandOfNovaAlone(DeletionTest):

    def test_neutron_finds_the_segment_in_it(self):
        """The UUID stays on the segment's provider, and helps neutron."""
        with stock.StockNova(self.cloud) as nova:
            uuid = self.delete_by_hand(self.first, nova.cloud)
            self.assertEqual([uuid], self.routed.aggregates(self.first))
            self.assertEqual({self.first.id}, self.routed.members(uuid))
            refused = self.boot({'port': self.routed.port(self.first)})
            self.assertEqual('ERROR', refused['status'])
            self.delete_server(refused)
            for port in self.routed.ports():
                self.routed.delete_port(port)
            self.routed.delete_subnet(self.first)
            self.wait_until(
                lambda: not self.routed.read(self.first, 'aggregates'),
                'neutron has deleted the provider')
        self.assertEqual([], self.troubles())


class TestNeutron(DeletionTest):

    def test_cleans_up_after_itself(self):
        """Its own order leaves nothing behind, and it has no trouble."""
        uuids = [self.routed.aggregate(each)['uuid']
                 for each in self.routed.segments]
        self.routed.delete()
        self.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([set(), set()],
                         [self.routed.members(uuid) for uuid in uuids])
        self.assertEqual([], self.troubles())

    def test_stumbles_over_a_segment_without_aggregate(self):
        """It expects one, and leaves the provider to the operator."""
        self.delete_by_hand(self.first)
        # Nothing else: it would forget the other segment along with this one.
        self.routed.delete_subnet(self.first)
        self.wait_until(self.troubles, 'neutron has stumbled')
        self.assertEqual(['IndexError: list index out of range'],
                         self.troubles())
        self.assertNotEqual({}, self.routed.read(self.first, 'aggregates'))
        self.run_client('openstack', 'resource', 'provider', 'delete',
                        self.first.id)

    def test_works_with_an_aggregate_in_its_place(self):
        """One that an operator makes serves neutron and nova alike."""
        self.delete_by_hand(self.first)
        refused = self.boot({'port': self.routed.port(self.first)})
        self.assertIn('Aggregates not found for the subnet',
                      refused['fault']['message'])
        made = self.aggregate()
        for host in self.first.hosts:
            self.add_host(made, host)
        found = self.openstack('aggregate', 'show', made)
        self.routed.write(self.first, 'aggregates', [found['uuid']])
        server = self.boot({'port': self.routed.port(self.first)})
        self.assertTrue(self.first.has(server), server)
        self.delete_server(server)
        self.routed.delete()
        self.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([], self.troubles())
        names = [each['Name'] for each in self.openstack('aggregate', 'list')]
        self.assertNotIn(made, names)
