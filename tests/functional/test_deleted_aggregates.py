# SPDX-License-Identifier: Apache-2.0
"""Aggregates that nova has deleted and placement still has."""


from nova.db.api import api as api_db
from nova.db.api import models
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from tests import fixtures
from tests.functional import test_sync_command

FOREIGN = uuidutils.generate_uuid()
TABLES = [model.__table__ for model in (
    models.Aggregate, models.AggregateHost, models.AggregateMetadata)]


class TestUser(testtools.TestCase):
    """An aggregate that a user deletes through a nova-api with this package.

    It is also on a provider that is no compute node.
    """

    def test_only_aggregate_is_emptied_and_deleted(self) -> None:
        """A drain and a sync remove it; neither brake nor prune matters."""
        cloud = self.useFixture(fixtures.NovaAndPlacement())
        placement, agent = cloud.placement, fixtures.Agent()
        self.useFixture(fixtures.MirroredNova())
        cloud.nova.conf.config(prune=False, group='aggregate_mirror')
        zone = cloud.create_aggregate('zone', 'az1')
        host = cloud.create_host('h1', nodes=2)
        segment = uuidutils.generate_uuid()
        placement.create_provider(segment, 'segment')
        cloud.add_host(zone, host)
        placement.set_aggregates(segment, [zone.uuid, FOREIGN])
        agent.sync()
        self.assertEqual([], cloud.drift())
        placement.refuse()
        self.assertEqual(200, cloud.remove_host(zone, host).status)
        self.assertEqual(200, cloud.delete_aggregate(zone))
        placement.recover()
        self.assertEqual(2, len(cloud.drift()))
        agent.drain()
        self.assertIsNone(agent.sync().refused)
        self.assertEqual([], cloud.drift())
        self.assertEqual({FOREIGN}, placement.aggregates(segment))
        self.assertEqual([], agent.journal.rows.all())


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
