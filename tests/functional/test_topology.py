# SPDX-License-Identifier: Apache-2.0
"""Hosts with several nodes, with none, or with changing providers."""

import dataclasses
import uuid

import fixtures as base_fixtures
from nova import objects
import testtools

from nova_aggregate_mirror.journal import store
from tests import fixtures


class TopologyTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')

    def stock(self) -> None:
        self.useFixture(fixtures.StockNova())

    def mirrored(self) -> None:
        self.useFixture(fixtures.MirroredNova())


class SeveralNodesTest(TopologyTest):
    """A host with three compute nodes, as an ironic service has."""

    def setUp(self) -> None:
        super().setUp()
        self.host = self.cloud.create_host('ironic', nodes=3)

    def test_stock_mirrors_the_first_node_only(self) -> None:
        """Two of three nodes are neither added nor removed."""
        self.stock()
        added = self.cloud.add_host(self.aggregate, self.host)
        self.assertEqual((200, False), (added.status, added.mirrored))
        self.assertEqual(2, len(self.cloud.drift()))
        for node in self.host.nodes:
            self.cloud.placement.set_aggregates(node, [self.aggregate.uuid])
        removed = self.cloud.remove_host(self.aggregate, self.host)
        self.assertEqual((200, False), (removed.status, removed.mirrored))
        self.assertEqual(2, len(self.cloud.drift()))

    def test_mirrored_every_node_follows_its_host(self) -> None:
        """All nodes are added and removed within the call."""
        self.mirrored()
        self.assertEqual(
            fixtures.Outcome(status=200, member=True, mirrored=True,
                             ended=True, zone='east'),
            self.cloud.add_host(self.aggregate, self.host))
        self.assertEqual([], self.cloud.drift())
        self.assertEqual(
            fixtures.Outcome(status=200, member=False, mirrored=True,
                             ended=True, zone='nova'),
            self.cloud.remove_host(self.aggregate, self.host))
        self.assertEqual([], self.cloud.drift())


class NoNodeTest(TopologyTest):
    """A compute service that has no compute node."""

    def _outcomes(self, name: str) -> list[fixtures.Outcome | int]:
        """Do what nova cannot complete, with a host and an aggregate.

        :returns: the outcome of each call, or its HTTP status
        """
        host = self.cloud.create_host(name, nodes=0)
        aggregate = self.cloud.create_aggregate(name, 'east')
        return [self.cloud.add_host(aggregate, host),
                self.cloud.add_host(aggregate, host),
                self.cloud.remove_host(aggregate, host),
                self.cloud.delete_service(host),
                self.cloud.delete_aggregate(aggregate)]

    def test_answers_and_state_are_those_of_stock_nova(self) -> None:
        """Nova answers 404 but adds the host, and cannot remove it again."""
        stuck = fixtures.Outcome(status=404, member=True, mirrored=True,
                                 ended=False, zone='nova')
        again = dataclasses.replace(stuck, status=409)
        expected = [stuck, again, stuck, 500, 400]
        self.stock()
        self.assertEqual(expected, self._outcomes('stock'))
        self.mirrored()
        self.assertEqual(expected, self._outcomes('mirrored'))
        self.assertEqual([], store.Journal(fixtures.CONF).rows.all())

    def test_mirrored_compute_node_appears_later(self) -> None:
        """A full sync mirrors it, and nova can remove the host again."""
        self.mirrored()
        host = self.cloud.create_host('late', nodes=0)
        self.cloud.add_host(self.aggregate, host)
        host = dataclasses.replace(host, nodes=(
            self.cloud.nova.create_node(host.name, 0, 'cell1'),))
        self.cloud.create_providers(host)
        self.assertEqual(1, len(self.cloud.drift()))
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())
        self.assertEqual(
            fixtures.Outcome(status=200, member=False, mirrored=True,
                             ended=True, zone='nova'),
            self.cloud.remove_host(self.aggregate, host))
        self.cloud.add_host(self.aggregate, host)
        self.assertEqual(204, self.cloud.delete_service(host))
        self.assertEqual(200, self.cloud.delete_aggregate(self.aggregate))

    def test_mirrored_unknown_host_is_404(self) -> None:
        """A host that does not exist is not added."""
        self.mirrored()
        unknown = fixtures.Host('unknown', 'none', ())
        expected = fixtures.Outcome(status=404, member=False, mirrored=True,
                                    ended=False, zone='nova')
        for act in self.cloud.add_host, self.cloud.remove_host:
            self.assertEqual(expected, act(self.aggregate, unknown))


class ProviderTest(TopologyTest):
    """Providers and aggregates that are deleted and recreated."""

    def setUp(self) -> None:
        super().setUp()
        self.host = self.cloud.create_host('host')
        [self.node] = self.host.nodes

    def _recreate_provider(self) -> None:
        self.cloud.add_host(self.aggregate, self.host)
        self.cloud.placement.delete_provider(self.node)
        self.cloud.create_providers(self.host)

    def test_stock_recreated_provider_is_in_no_aggregate(self) -> None:
        """Adding the host again answers 409 and mirrors nothing."""
        self.stock()
        self._recreate_provider()
        self.assertEqual(
            fixtures.Outcome(status=409, member=True, mirrored=False,
                             ended=False, zone='east'),
            self.cloud.add_host(self.aggregate, self.host))
        self.assertEqual(1, len(self.cloud.drift()))

    def test_mirrored_recreated_provider_is_cured_by_sync(self) -> None:
        """The next sync adds it to the aggregates of its host."""
        self.mirrored()
        self._recreate_provider()
        self.assertEqual(1, len(self.cloud.drift()))
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_mirrored_recreated_provider_is_cured_by_any_call(self) -> None:
        """Even a call that nova refuses repairs its host."""
        self.mirrored()
        self._recreate_provider()
        self.assertEqual(
            fixtures.Outcome(status=409, member=True, mirrored=True,
                             ended=False, zone='east'),
            self.cloud.add_host(self.aggregate, self.host))

    def test_mirrored_provider_of_a_later_day_is_added_by_sync(self) -> None:
        """A node without a provider is pending, and a warning names it."""
        self.mirrored()
        host = self.cloud.create_host('new', providers=False)
        self.assertEqual(
            fixtures.Outcome(status=200, member=True, mirrored=True,
                             ended=True, zone='east', warnings=1),
            self.cloud.add_host(self.aggregate, host))
        [warning] = self.cloud.warnings()
        self.assertIn('host new (request req-', warning)
        self.assertIn('placement has no resource provider %s; nova-compute '
                      'creates it' % host.nodes[0], warning)
        self.cloud.create_providers(host)
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def _delete_while_stale(self) -> int:
        self.cloud.add_host(self.aggregate, self.host)
        self.cloud.placement.drop_connection()
        self.cloud.remove_host(self.aggregate, self.host)
        self.cloud.placement.recover()
        return self.cloud.delete_aggregate(self.aggregate)

    def test_stock_deleted_aggregate_stays_on_its_providers(self) -> None:
        """Nova does not report a deleted aggregate to placement."""
        self.stock()
        self.assertEqual(200, self._delete_while_stale())
        self.assertEqual({self.aggregate.uuid},
                         self.cloud.placement.aggregates(self.node))

    def test_mirrored_deleted_aggregate_is_gone_from_placement(self) -> None:
        """Its stale associations are removed with the aggregate."""
        self.mirrored()
        # The earlier failure would otherwise leave this to the agent.
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')
        self.assertEqual(200, self._delete_while_stale())
        self.assertEqual([], self.cloud.warnings())
        self.assertEqual([], self.cloud.drift())

    def test_mirrored_delete_during_an_outage_is_cured_by_sync(self) -> None:
        """The journal has the aggregate that nova has deleted."""
        self.mirrored()
        self.cloud.placement.set_aggregates(self.node, [self.aggregate.uuid])
        self.cloud.placement.refuse()
        self.assertEqual(200, self.cloud.delete_aggregate(self.aggregate))
        self.assertEqual(1, len(self.cloud.warnings()))
        self.cloud.placement.recover()
        self.assertEqual(1, len(self.cloud.drift()))
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_stock_service_in_an_aggregate_is_not_deleted(self) -> None:
        """During an outage nova answers 500 and changes nothing."""
        self.stock()
        self.cloud.add_host(self.aggregate, self.host)
        self.cloud.placement.refuse()
        self.assertEqual(500, self.cloud.delete_service(self.host))
        self.assertEqual({self.aggregate.uuid},
                         self.cloud.nova.aggregates_of(self.host.name))

    def test_mirrored_service_in_an_aggregate_is_deleted(self) -> None:
        """The orphaned provider loses all aggregates of nova."""
        self.mirrored()
        self.cloud.add_host(self.aggregate, self.host)
        self.cloud.placement.refuse()
        self.assertEqual(204, self.cloud.delete_service(self.host))
        self.assertEqual(1, len(self.cloud.warnings()))
        self.assertEqual({}, self.cloud.nova.nodes())
        self.cloud.placement.recover()
        self.cloud.sync()
        self.assertEqual(frozenset(),
                         self.cloud.placement.aggregates(self.node))

    def test_mirrored_foreign_aggregates_are_kept(self) -> None:
        """A call, a delete and a sync keep foreign associations."""
        self.mirrored()
        foreign = str(uuid.uuid4())
        self.cloud.placement.set_aggregates(self.node, [foreign])
        self.cloud.add_host(self.aggregate, self.host)
        self.assertEqual({foreign, self.aggregate.uuid},
                         self.cloud.placement.aggregates(self.node))
        self.cloud.remove_host(self.aggregate, self.host)
        self.cloud.delete_aggregate(self.aggregate)
        self.cloud.sync()
        self.assertEqual({foreign},
                         self.cloud.placement.aggregates(self.node))

    def test_mirrored_hosts_of_every_cell(self) -> None:
        """Hosts of any cell are mirrored, mapped or not."""
        self.mirrored()
        host = self.cloud.create_host('far', cell='cell2')
        self.assertTrue(self.cloud.add_host(self.aggregate, host).mirrored)
        self.assertEqual([], self.cloud.drift())


class StaleReadTest(TopologyTest):
    """A host that another request adds after nova has read the aggregate.

    Nova then removes the host from its database, does not find it in the
    aggregate that it has read, and answers 500. The chaos test of the full
    cloud accepts that response.
    """

    def setUp(self) -> None:
        super().setUp()
        self.host = self.cloud.create_host('host')
        self._read = objects.Aggregate.get_by_id
        self._added = False
        self.log = self.useFixture(base_fixtures.FakeLogger('nova.api'))

    def read_and_add(self, _class, context, number):
        found = self._read(context, number)
        if not self._added:
            self._added = True
            self.assertEqual(200, self.cloud.add_host(
                self.aggregate, self.host).status)
        return found

    def remove(self) -> fixtures.Outcome:
        """Remove the host while it is being added."""
        with base_fixtures.MonkeyPatch(
                'nova.objects.Aggregate.get_by_id', self.read_and_add):
            removed = self.cloud.remove_host(self.aggregate, self.host)
        self.assertIn('ValueError', self.log.output)
        return removed

    def test_stock_removes_and_fails(self) -> None:
        """It is nova's own response."""
        self.stock()
        removed = self.remove()
        self.assertEqual((500, False), (removed.status, removed.member))

    def test_mirrored_removes_fails_and_is_right(self) -> None:
        """Nova's response is unchanged, and placement is in sync."""
        self.mirrored()
        removed = self.remove()
        self.assertEqual((500, False, True), (
            removed.status, removed.member, removed.mirrored))
        self.assertEqual([], self.cloud.drift())
