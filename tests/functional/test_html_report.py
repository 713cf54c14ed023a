# SPDX-License-Identifier: Apache-2.0
"""The report command: contents of the page and exit status."""

import pathlib
import signal

import fixtures as base_fixtures
from oslo_utils import uuidutils

from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import full_syncs
from tests import fixtures
from tests.functional import test_manage
from tests.functional import test_sync_command
from tests import patience

PATIENCE = patience.seconds(300)
EVIL = '<script>document.title = "evil"</script><b title=\'&amp;'


class ReportTest(test_sync_command.SyncTest):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path)
        self.file = self.directory / 'report.html'

    def report(self, status, *argv):
        """Write the page, assert the exit status, and return the page."""
        done = self.run_command('report', '--quiet', '--html',
                                str(self.file), *argv)
        self.assertEqual(status, done.returncode, done.stderr)
        if status != 255:
            self.assertEqual('', done.stderr)
        self.assertEqual([self.file], list(self.directory.iterdir()))
        return self.file.read_text()

    def every_kind(self):
        """Create a cloud with each kind of drift, and hostile names."""
        self.evil = self.cloud.create_aggregate(EVIL, 'zone <2>')
        self.right = self.host('right')
        self.gone, storage = [uuidutils.generate_uuid() for _ in range(2)]
        self.journal.ledger.remember({self.gone})
        self.placement.set_aggregates(self.right.nodes[0], [
            self.zone.uuid, self.gone, test_sync_command.FOREIGN])
        for name in ('same1', 'same2'):
            self.placement.set_aggregates(
                self.host(name).nodes[0], [self.zone.uuid])
        self.host('missing')
        self.host('pending', providers=False)
        self.host('nodeless', nodes=0)
        self.placement.set_aggregates(
            self.host('unmapped', mapped=False).nodes[0], [self.zone.uuid])
        self.stale('stale', self.evil.uuid)
        many = self.host('ironic', nodes=3)
        self.placement.set_aggregates(many.nodes[0], [self.zone.uuid])
        self.placement.create_provider(storage, 'storage')
        self.placement.set_aggregates(storage, [self.zone.uuid])
        self.left_over('missing', 'refused <by> "placement"')
        full_syncs.add(self.journal.database, full_syncs.Entry(
            'agent --prune', 'api<1>', 1.6e9, 1.6e9 + 1, 1.0, added=3,
            status=6, failed=1, reason='no provider <yet>', removed=1,
            removals='host <h>: aggregate a'))


class TestPage(ReportTest):

    def test_everything_is_shown_and_nothing_is_written(self):
        """The page shows drift, journal, history and kept associations."""
        self.every_kind()
        before = self.everything(), full_syncs.newest(
            self.journal.database)
        page = self.report(4)
        self.assertEqual(before, (self.everything(), full_syncs.newest(
            self.journal.database)))
        for text in (
                'Placement differs from nova: 3 missing and 2 stale; the page '
                'lists ',
                'Host unmapped: no host mapping: run',
                'Host nodeless: no compute node', 'in the journal',
                'has no resource provider yet', '<small>2/3</small>',
                'deleted ' + self.gone, test_sync_command.FOREIGN,
                'refused &lt;by&gt;', 'api&lt;1&gt;', '2020-09-13 12:26:41',
                'no provider &lt;yet&gt;', 'host &lt;h&gt;: aggregate a',
                'zone &lt;2&gt;',
                '<b>2 hosts</b> from <bdi>same1</bdi>'):
            self.assertIn(text, page)
        self.assertNotIn('<script>document', page)
        self.assertNotIn(test_manage.placement_service.TOKEN, page)

    def test_in_sync(self):
        """It exits with 0; with drift, with 7 and the command to run."""
        host = self.host('h1')
        self.placement.set_aggregates(host.nodes[0], [self.zone.uuid])
        page = self.report(0)
        self.assertIn('Placement is in sync with nova', page)
        self.assertIn('None yet: run the agent, or a sync.', page)
        self.placement.set_aggregates(host.nodes[0], [])
        self.assertIn('sync_aggregates --prune</code>', self.report(7))
        self.sync()
        self.assertIn('placement sync_aggregates</bdi>', self.report(0))
        self.host('h2', providers=False)
        self.assertIn('1 problem on the page; otherwise no', self.report(6))

    def test_no_journal_yet(self):
        """The report does not create a journal, and says what is unknown."""
        path = pathlib.Path(existing.sqlite_file(fixtures.CONF))
        self.assertFalse(path.exists())
        self.assertIn('There is no journal yet', self.report(0))
        self.assertFalse(path.exists())


class TestOutage(ReportTest):
    """The page is written with what is available, and reports the rest."""

    def setUp(self):
        super().setUp()
        self.host('h1')
        self.left_over('h1', 'because of this')

    def test_placement(self):
        """Nova's aggregates, the journal and the history are shown."""
        self.placement.refuse()
        page = self.report(2)
        self.assertIn('Nothing could be compared: placement at ', page)
        self.assertIn('<td class="unknown"><i>unknown</i>', page)
        self.assertIn('because of this', page)

    def test_cell(self):
        """It exits with 5, and its hosts are unknown, not stale."""
        far = self.host('far', cell='cell2')
        self.placement.set_aggregates(far.nodes[0], [self.zone.uuid])
        self.cloud.nova.break_cell('cell2')
        page = self.report(5)
        self.assertIn('its cell did not answer', page)
        self.assertIn('the database of cell cell2 (', page)
        self.assertIn('<td class="unknown">', page)
        self.assertIn('compute nodes (2 cells, one not read)', page)
        self.assertIn('<td><bdi>may be a compute node of cell cell2 (', page)
        for state in ('stale', 'without_compute_node'):
            self.assertNotIn('<td class="%s">' % state, page)

    def test_journal(self):
        """The comparison is shown; without drift it exits with 255."""
        self.write_conf(more='[aggregate_mirror_database]\n'
                             'connection = sqlite:////proc/version\n')
        page = self.report(7)
        self.assertIn('the journal ', page)
        self.assertIn('is not complete', page)
        self.assertNotIn('every operation is mirrored', page)
        self.cloud.sync()
        self.report(255)
        done = self.run_command('report', '--html', str(self.file))
        self.assertIn('cannot use /proc', done.stderr.splitlines()[-1])


class TestFile(ReportTest):

    def test_standard_output(self):
        """It gets only the page; the summary goes to standard error."""
        done = self.run_command('report', '--quiet', '--html', '-')
        self.assertEqual(0, done.returncode)
        self.assertTrue(done.stdout.startswith('<!DOCTYPE html>'))
        self.assertTrue(done.stdout.endswith('</html>'))
        self.assertEqual(1, len(done.stderr.splitlines()))

    def test_interrupted(self):
        """It ends without its threads, and leaves the file unchanged."""
        self.file.write_text('before')
        for number in range(30):
            self.host('h%d' % number)
        land = self.placement.hold_after(9, ('GET',))
        process = self.start('report', '--foreign', '--html', str(self.file))
        self.assertTrue(self.placement.stuck.wait(PATIENCE))
        process.send_signal(signal.SIGTERM)
        # Shorter than [aggregate_mirror] request_timeout.
        _said, errors = process.communicate(timeout=30)
        land()
        self.assertEqual(143, process.returncode, errors)
        self.assertIn('Interrupted', errors)
        self.assertEqual('before', self.file.read_text())
        self.assertEqual([self.file], list(self.directory.iterdir()))
