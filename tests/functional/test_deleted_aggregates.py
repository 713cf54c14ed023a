# SPDX-License-Identifier: Apache-2.0
"""Aggregates that nova has deleted and placement still has."""

from collections.abc import Callable

from nova.db.api import api as api_db
from nova.db.api import models
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import comparison
from tests import fixtures
from tests.functional import test_sync_command

load_tests = testscenarios.load_tests_apply_scenarios

DAY = comparison.FOREIGN_AFTER
FOREIGN = uuidutils.generate_uuid()
TABLES = [model.__table__ for model in (
    models.Aggregate, models.AggregateHost, models.AggregateMetadata)]


class DeletionTest(testtools.TestCase):
    """A host, and a provider that is no compute node, in two aggregates."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.host = self.cloud.create_host('h1', nodes=2)
        self.segment = uuidutils.generate_uuid()
        self.placement.create_provider(self.segment, 'segment')
        self.agent = fixtures.Agent()

    def prune(self, value: bool) -> None:
        self.cloud.nova.conf.config(prune=value, group='aggregate_mirror')

    def entry(self) -> journal.LedgerEntry | None:
        """Return the ledger's entry for the aggregate."""
        return self.agent.journal.ledger.entries().get(self.zone.uuid)

    def unnoticed(self, remove: Callable[[], object]) -> None:
        """Remove something while no change reaches placement."""
        self.placement.drop_connection()
        remove()
        self.placement.recover()

    def assert_left(self, expected: set[str], *providers: str) -> None:
        for provider in providers:
            self.assertEqual(expected, self.placement.aggregates(provider))


class TestUser(testscenarios.WithScenarios, DeletionTest):
    """Aggregates that a user deletes through a nova-api with this package."""

    scenarios = [('prune', {'pruning': True}),
                 ('no prune', {'pruning': False})]

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MirroredNova())
        self.prune(self.pruning)

    def test_only_aggregate_is_emptied_and_deleted(self) -> None:
        """A drain and a sync remove it; the brake does not refuse that."""
        self.cloud.add_host(self.zone, self.host)
        self.placement.set_aggregates(self.segment, [self.zone.uuid])
        self.agent.sync()
        self.assertEqual([], self.cloud.drift())
        self.placement.refuse()
        self.assertEqual(
            200, self.cloud.remove_host(self.zone, self.host).status)
        self.assertEqual(200, self.cloud.delete_aggregate(self.zone))
        self.placement.recover()
        self.assertEqual(2, len(self.cloud.drift()))
        self.agent.drain()
        result = self.agent.sync()
        self.assertIsNone(result.refused)
        self.assert_left(set(), *self.host.nodes, self.segment)
        self.assertEqual([], self.agent.journal.rows.all())

    def test_associations_of_another_tool(self) -> None:
        """The next sync removes the aggregate from every provider."""
        for provider in (*self.host.nodes, self.segment):
            self.placement.set_aggregates(
                provider, [self.zone.uuid, FOREIGN])
        self.placement.refuse()
        self.assertEqual(200, self.cloud.delete_aggregate(self.zone))
        self.assertEqual(1, len(self.cloud.warnings()))
        self.placement.recover()
        self.assertTrue(self.entry().deleted)
        self.assert_left({self.zone.uuid, FOREIGN}, *self.host.nodes,
                         self.segment)
        self.agent.drain()
        self.assertIsNone(self.agent.sync().refused)
        self.assert_left({FOREIGN}, *self.host.nodes, self.segment)

    def test_delete_that_nova_refuses(self) -> None:
        """Nothing is removed, and the mark is cleared when it is old."""
        self.cloud.add_host(self.zone, self.host)
        self.placement.set_aggregates(self.segment, [self.zone.uuid])
        self.assertEqual(400, self.cloud.delete_aggregate(self.zone))
        self.agent.sync()
        self.assertTrue(self.entry().deleted)
        self.agent.clock += fixtures.CONF.aggregate_mirror.max_call_age
        self.agent.sync()
        self.assertFalse(self.entry().deleted)
        self.assert_left({self.zone.uuid}, *self.host.nodes, self.segment)


class TestOtherNovaApi(DeletionTest):
    """Aggregates that were deleted by a nova-api without this package."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.StockNova())
        self.rack = self.cloud.create_aggregate('rack')
        self.single = self.cloud.create_host('h2')
        for aggregate in (self.zone, self.rack):
            self.cloud.add_host(aggregate, self.single)
        self.placement.set_aggregates(self.segment, [self.zone.uuid])

    def delete(self) -> None:
        self.unnoticed(
            lambda: self.cloud.remove_host(self.zone, self.single))
        self.assertEqual(200, self.cloud.delete_aggregate(self.zone))
        self.assertEqual(1, len(self.cloud.drift()))

    def test_aggregate_that_a_sync_has_seen(self) -> None:
        """The sync that saw it changes nothing; the next sync prunes it."""
        self.assertEqual([], self.agent.sync().drift)
        self.delete()
        self.agent.sync()
        self.assertEqual([], self.cloud.drift())
        self.assert_left({self.rack.uuid}, *self.single.nodes)
        self.assert_left({self.zone.uuid}, self.segment)

    def test_without_pruning(self) -> None:
        """A stale association is reported and kept."""
        self.prune(False)
        self.agent.sync()
        self.delete()
        kept = [association.pair
                for association in self.agent.sync().associations
                if association.state == 'stale_kept']
        self.assertEqual([(self.single.nodes[0], self.zone.uuid)], kept)
        self.assertEqual(1, len(self.cloud.drift()))

    def test_aggregate_that_no_sync_has_seen(self) -> None:
        """Without a ledger entry it is foreign, and kept."""
        self.delete()
        self.agent.sync()
        self.assertEqual(1, len(self.cloud.drift()))

    def test_provider_that_is_no_compute_node(self) -> None:
        """It loses the aggregate after a day of uninterrupted absence."""
        self.agent.sync()
        self.delete()
        self.agent.sync()
        self.agent.clock += DAY - 1000
        self.agent.sync()
        self.assert_left({self.zone.uuid}, self.segment)
        self.agent.clock += 1000
        self.agent.sync()
        self.assert_left(set(), self.segment)


class TestRestoredDatabase(test_sync_command.SyncTest):
    """Nova's API database restored to an earlier state, and forward again."""

    def setUp(self) -> None:
        super().setUp()
        self.segment = uuidutils.generate_uuid()
        self.placement.create_provider(self.segment, 'segment')
        self.old = self.host('old')
        self.plan('--prune', status=0)

    def saved(self) -> dict[sa.Table, list[dict]]:
        """Return the aggregate tables of nova's API database."""
        with api_db.get_engine().begin() as connection:
            return {table: [dict(row) for row in connection.execute(
                sa.select(table)).mappings()]
                for table in TABLES}

    def restore(self, saved: dict[sa.Table, list[dict]]) -> None:
        with api_db.get_engine().begin() as connection:
            for table, rows in saved.items():
                connection.execute(sa.delete(table))
                if rows:
                    connection.execute(sa.insert(table), rows)

    def test_backward_and_forward(self) -> None:
        """Compute nodes follow nova; other associations are kept."""
        before = self.saved()
        late = self.cloud.create_aggregate('late', 'az2')
        new = self.cloud.create_host('new')
        self.assertEqual(200, self.cloud.nova.request(
            'POST', '/os-aggregates/%d/action' % late.id,
            {'add_host': {'host': 'new'}}).status_code)
        # As neutron does with its segments, and other tools with their own.
        self.placement.set_aggregates(self.segment, [late.uuid, FOREIGN])
        self.placement.set_aggregates(new.nodes[0], [late.uuid, FOREIGN])
        self.plan(status=0)
        after = self.saved()
        self.restore(before)
        plan = self.plan(status=0)
        self.assertEqual({('new', late.uuid)}, self.pairs(plan, 'remove'))
        self.assertEqual({('', late.uuid)}, self.pairs(plan, 'absent'))
        entry, *_others = self.journal.history.newest()
        self.assertEqual(
            'host new (provider %s): aggregate deleted (%s)'
            % (new.nodes[0], late.uuid), entry.removals)
        self.assertEqual({FOREIGN},
                         self.placement.aggregates(new.nodes[0]))
        self.restore(after)
        plan = self.plan(status=0)
        self.assertEqual({('new', late.uuid)}, self.pairs(plan, 'add'))
        self.assertEqual([], plan['remove'])
        for provider in (self.segment, new.nodes[0]):
            self.assertEqual({late.uuid, FOREIGN},
                             self.placement.aggregates(provider))
        self.assertEqual([], self.cloud.drift())
