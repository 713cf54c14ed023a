# SPDX-License-Identifier: Apache-2.0
"""Two novas that share a journal by mistake: the second does not use it."""

import json

from nova.db.api import api as api_db
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.source import database
from tests import commands
from tests import fixtures
from tests.functional import test_sync_command

REFUSAL = 'the journal belongs to another nova, with the cells %s; this nova '
CURE = ('give each nova a database of its own in [aggregate_mirror_database] '
        'connection; only if this nova was rebuilt, with new cell mappings '
        'and aggregates, run "nova-aggregate-mirror-manage journal bind"')


class IdentityTest(test_sync_command.SyncTest):

    def setUp(self):
        super().setUp()
        self.member = self.host('h1')
        binding.Binding(
            self.journal.database, database.DatabaseSource().cell_mappings,
            dict).bind()
        self.assertEqual(0, self.sync('--prune').returncode)
        # A drain or a sync would repair this.
        self.placement.set_aggregates(self.member.nodes[0], [self.rack.uuid])
        self.left_over('h1')
        self.ours = self.cells()
        self.replace_cells()

    def cells(self):
        return [self.cloud.nova.cell(name).uuid for name in ('cell1', 'cell2')]

    def replace_cells(self):
        """Delete the cell mappings and create them again."""
        with api_db.get_engine().begin() as connection:
            for uuid in self.ours:
                connection.exec_driver_sql(
                    'UPDATE cell_mappings SET uuid = \'%s\' '
                    'WHERE uuid = \'%s\'' % (uuidutils.generate_uuid(), uuid))

    def replace_ledger(self):
        """Let the journal be of a nova that shares no aggregate, either."""
        uuids = self.journal.ledger.entries().keys()

        def work(connection):
            for uuid in uuids:
                connection.execute(sa.update(models.ledger).where(
                    models.ledger.c.aggregate_uuid == uuid).values(
                        aggregate_uuid=uuidutils.generate_uuid()))

        self.journal.database.run(work)

    def stored(self):
        return self.journal.database.run(nova_identity.cells)

    def status(self):
        """Return the names and the texts of the checks."""
        done = commands.run(commands.STATUS, [
            '--config-file', str(self.conf), 'upgrade', 'check', '--json'])
        return {check['check']: check['details']
                for check in json.loads(done.stdout)['checks']}


class TestSameNova(IdentityTest):
    """All cell mappings were created again, with corrected URLs."""

    def test_everything_goes_on(self):
        """Nova-api, commands and checks use the journal; an agent binds it."""
        self.assertIsNone(self.status()['Journal of this nova'])
        self.useFixture(fixtures.MirroredNova())
        self.assertEqual(
            fixtures.Outcome(status=200, member=True, mirrored=True,
                             ended=True, zone='nova'),
            self.cloud.add_host(self.rack, self.member))
        self.placement.set_aggregates(self.member.nodes[0], [])
        self.assertEqual(0, self.sync('--prune').returncode)
        self.assertEqual([], self.cloud.drift())
        self.assertEqual([], self.journal.rows.all())
        source = database.DatabaseSource()
        self.assertTrue(binding.Binding(
            self.journal.database, source.cell_mappings,
            source.aggregates).bind())
        self.assertEqual(set(self.cells()), self.stored())


class TestHook(IdentityTest):
    """Nova-api of the second nova mirrors without the journal."""

    def setUp(self):
        super().setUp()
        self.replace_ledger()
        self.useFixture(fixtures.MirroredNova())

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
