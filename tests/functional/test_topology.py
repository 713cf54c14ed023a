# SPDX-License-Identifier: Apache-2.0
"""Hosts with several nodes, with none, or without a provider."""

import dataclasses

import testtools

from nova_aggregate_mirror.journal import store
from tests import fixtures

ADDED = fixtures.Outcome(status=200, member=True, mirrored=True, ended=True,
                         zone='east')
REMOVED = dataclasses.replace(ADDED, member=False, zone='nova')


class TestNodes(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')
        self.useFixture(fixtures.MirroredNova())

    def test_every_node_follows_its_host(self) -> None:
        """All are added and removed within the call, in any cell."""
        for host in (self.cloud.create_host('ironic', nodes=3),
                     self.cloud.create_host('far', cell='cell2')):
            for act, expected in ((self.cloud.add_host, ADDED),
                                  (self.cloud.remove_host, REMOVED)):
                self.assertEqual(expected, act(self.aggregate, host))
                self.assertEqual([], self.cloud.drift())

    def test_answers_without_a_node_are_those_of_stock_nova(self) -> None:
        """Nova answers 404 but adds the host, and cannot remove it again."""
        stuck = dataclasses.replace(ADDED, status=404, ended=False,
                                    zone='nova')
        again = dataclasses.replace(stuck, status=409)
        for name in 'mirrored', 'stock':
            if name == 'stock':
                self.useFixture(fixtures.StockNova())
            host = self.cloud.create_host(name, nodes=0)
            aggregate = self.cloud.create_aggregate(name, 'east')
            self.assertEqual([stuck, again, stuck, 500, 400], [
                self.cloud.add_host(aggregate, host),
                self.cloud.add_host(aggregate, host),
                self.cloud.remove_host(aggregate, host),
                self.cloud.delete_service(host),
                self.cloud.delete_aggregate(aggregate)])
            self.assertEqual([], store.Journal(fixtures.CONF).rows.all())

    def test_provider_of_a_later_day_is_added_by_sync(self) -> None:
        """A node without a provider is pending, and a warning names it."""
        host = self.cloud.create_host('new', providers=False)
        self.assertEqual(dataclasses.replace(ADDED, warnings=1),
                         self.cloud.add_host(self.aggregate, host))
        [warning] = self.cloud.warnings()
        self.assertIn('host new (request req-', warning)
        self.assertIn('placement has no resource provider %s; nova-compute '
                      'creates it' % host.nodes[0], warning)
        self.cloud.create_providers(host)
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_service_in_an_aggregate_is_deleted(self) -> None:
        """The orphaned provider loses all aggregates of nova."""
        host = self.cloud.create_host('host')
        self.cloud.add_host(self.aggregate, host)
        self.cloud.placement.refuse()
        self.assertEqual(204, self.cloud.delete_service(host))
        self.assertEqual(1, len(self.cloud.warnings()))
        self.assertEqual({}, self.cloud.nova.nodes())
        self.cloud.placement.recover()
        self.cloud.sync()
        self.assertEqual(frozenset(),
                         self.cloud.placement.aggregates(*host.nodes))
