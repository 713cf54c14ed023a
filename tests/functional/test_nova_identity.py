# SPDX-License-Identifier: Apache-2.0
"""Two novas that share a journal by mistake: the second does not use it."""

from nova.db.api import api as api_db
from oslo_utils import uuidutils

from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.source import database
from tests import fixtures
from tests.functional import test_sync_command

REFUSAL = 'the journal belongs to another nova, with the cells %s; this nova '
CURE = ('Give each nova a database of its own in [aggregate_mirror_database] '
        'connection')


class TestHook(test_sync_command.SyncTest):
    """Nova-api of the second nova mirrors without the journal."""

    def setUp(self):
        super().setUp()
        self.member = self.host('h1')
        nova_identity.Binding(
            self.journal.database,
            database.DatabaseSource().cell_mappings).bind()
        self.assertEqual(0, self.sync('--prune').returncode)
        # A drain or a sync would repair this.
        self.placement.set_aggregates(self.member.nodes[0], [self.rack.uuid])
        self.left_over('h1')
        self.ours = self.cells()
        self.replace_cells()
        self.useFixture(fixtures.MirroredNova())

    def cells(self):
        return [self.cloud.nova.cell(name).uuid for name in ('cell1', 'cell2')]

    def replace_cells(self):
        """Become another nova that shares no cell with the journal's nova."""
        with api_db.get_engine().begin() as connection:
            for uuid in self.ours:
                connection.exec_driver_sql(
                    'UPDATE cell_mappings SET uuid = \'%s\' '
                    'WHERE uuid = \'%s\'' % (uuidutils.generate_uuid(), uuid))

    def kept(self):
        return self.journal.rows.all(), self.journal.ledger.entries()

    def assert_error(self):
        """Assert that the error has both lists of cells and the solution."""
        error, *_more = self.cloud.warnings()
        for part in (REFUSAL % ', '.join(sorted(self.ours)), *self.cells(),
                     CURE):
            self.assertIn(part, error)

    def test_operations(self):
        """Each operation is mirrored inline and logs one ERROR."""
        before = self.kept()
        new = self.cloud.create_aggregate('new')
        host = self.cloud.create_host('h2')
        for act, member in ((self.cloud.add_host, True),
                            (self.cloud.remove_host, False)):
            self.assertEqual(
                fixtures.Outcome(status=200, member=member, mirrored=True,
                                 ended=True, zone='nova', warnings=1),
                act(new, host))
            self.assert_error()
        self.placement.set_aggregates(host.nodes[0], [new.uuid])
        self.assertEqual(200, self.cloud.delete_aggregate(new))
        self.assert_error()
        self.assertEqual(set(), self.placement.aggregates(host.nodes[0]))
        self.assertEqual(before, self.kept())

    def test_outage_of_placement(self):
        """Nova's response is unchanged, and the journal is not used."""
        before = self.kept()
        host = self.cloud.create_host('h2')
        self.placement.refuse()
        self.assertEqual(200, self.cloud.add_host(self.zone, host).status)
        self.assert_error()
        self.assertIn('it is not in the journal', self.cloud.warnings()[-1])
        self.assertEqual(200, self.cloud.delete_aggregate(
            self.cloud.create_aggregate('new')))
        self.assert_error()
        self.assertIn('its deletion is not mirrored to placement',
                      self.cloud.warnings()[-1])
        self.assertIn('may remain there', self.cloud.warnings()[-1])
        self.placement.recover()
        self.assertEqual(before, self.kept())
