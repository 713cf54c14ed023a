# SPDX-License-Identifier: Apache-2.0
"""Deletion of a segment's aggregate, in nova, placement and neutron."""

import pathlib

from tests.cloud.integration import base
from tests.cloud.integration import routed_case
from tests.cloud.integration import stock

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

    def delete_by_hand(self, segment, running=None):
        """Delete a segment's aggregate, as an operator does; return its UUID.

        :param running: the cloud whose nova-api to ask
        """
        found = self.routed.aggregate(segment)
        nova = (running or self.cloud).nova()
        url = '/os-aggregates/%s' % found['id']
        for host in found['hosts']:
            nova.post(url + '/action', json={'remove_host': {'host': host}})
        nova.delete(url)
        return found['uuid']


class TestByHand(DeletionTest):

    def test_nothing_is_left_of_it(self):
        """It has no provider any more; the other aggregate is unchanged."""
        others = self.routed.members(
            self.routed.aggregate(self.second)['uuid'])
        uuid = self.delete_by_hand(self.first, self.cloud)
        self.assertEqual(set(), self.routed.members(uuid))
        self.assertEqual([], self.routed.aggregates(self.first))
        self.assertEqual(others, self.routed.members(
            self.routed.aggregate(self.second)['uuid']))


@base.of_nova_alone
class TestByHandOfNovaAlone(DeletionTest):

    def test_neutron_finds_the_segment_in_it(self):
        """The UUID stays on the segment's provider, where neutron needs it."""
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
        """Neutron's own deletion leaves nothing, and logs no error."""
        uuids = [self.routed.aggregate(each)['uuid']
                 for each in self.routed.segments]
        self.routed.delete()
        self.wait_until(self.routed.is_gone, 'neutron has cleaned up')
        self.assertEqual([set(), set()],
                         [self.routed.members(uuid) for uuid in uuids])
        self.assertEqual([], self.troubles())

    def test_stumbles_over_a_segment_without_aggregate(self):
        """Neutron expects it, and leaves the provider to the operator."""
        self.delete_by_hand(self.first)
        # Only the subnet: with more, neutron would forget the other segment
        # too.
        self.routed.delete_subnet(self.first)
        self.wait_until(self.troubles, 'neutron has stumbled')
        self.assertEqual(['IndexError: list index out of range'],
                         self.troubles())
        self.assertNotEqual({}, self.routed.read(self.first, 'aggregates'))
        self.run_client('openstack', 'resource', 'provider', 'delete',
                        self.first.id)

    def test_works_with_an_aggregate_in_its_place(self):
        """An aggregate created by an operator works for neutron and nova."""
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
