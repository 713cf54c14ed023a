# SPDX-License-Identifier: Apache-2.0
"""Two novas that share a journal by mistake: the second does not use it."""

from oslo_utils import uuidutils

from nova_aggregate_mirror.journal.db import existing
from tests import databases
from tests import fixtures
from tests.functional import test_sync_command

REFUSAL = 'the journal belongs to another nova, with the cells %s; this nova '
CURE = ('give each nova a database of its own in [aggregate_mirror_database] '
        'connection; only if this nova was rebuilt, with new cell mappings '
        'and aggregates, run "nova-aggregate-mirror-manage journal bind"')


class TestHook(test_sync_command.SyncTest):
    """Nova-api of the second nova mirrors without the journal."""

    def setUp(self):
        super().setUp()
        self.theirs = uuidutils.generate_uuid()
        self.journal.ledger.remember([uuidutils.generate_uuid()])
        self.left_over('h1')
        databases.execute(
            'sqlite:///%s' % existing.sqlite_file(fixtures.CONF),
            'INSERT INTO cells (cell_uuid) VALUES (\'%s\')' % self.theirs)
        self.useFixture(fixtures.MirroredNova())

    def kept(self):
        return self.journal.rows.all(), self.journal.ledger.entries()

    def assert_error(self):
        """Assert that the error has both lists of cells and the solution."""
        error, *_more = self.cloud.warnings()
        ours = [self.cloud.nova.cell(name).uuid for name in ('cell1', 'cell2')]
        for part in (REFUSAL % self.theirs, *ours, CURE):
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
