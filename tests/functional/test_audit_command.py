# SPDX-License-Identifier: Apache-2.0
"""``placement audit_servers`` as an operator runs it: output and status."""

import json
import pathlib
import re

import fixtures as base_fixtures
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror.audit import readers
from tests.functional import test_html_report
from tests.functional import test_manage
from tests import placed


class AuditTest(test_manage.ManageTest):

    def setUp(self):
        super().setUp()
        self.near, self.far = self.host('near'), self.cloud.create_host(
            'far', cell='cell2')
        self.flavor = placed.create_flavor()

    def server(self, host, *args, **options):
        return placed.create_server(
            self.cloud.nova, self.flavor, host, *args, **options)


class TestAuditServers(AuditTest):

    def audit(self, *argv):
        return self.run_command('placement', 'audit_servers', *argv)

    def test_nothing_is_misplaced(self):
        """It exits with 0, with one line."""
        done = self.audit()
        self.assertEqual(
            (0, '0 of 0 servers are on a host that contradicts the '
             'request\n', ''), (done.returncode, done.stdout, done.stderr))
        self.server('near')
        done = self.audit()
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertTrue(done.stdout.startswith('0 of 1 server is '))

    def test_servers_of_all_cells(self):
        """It exits with 7 and tells how to move each."""
        self.server('near')
        moved = self.server('far', 'cell2')
        done = self.audit()
        self.assertEqual((7, ''), (done.returncode, done.stderr))
        self.assertEqual('1 of 2 servers are on a host that contradicts the '
                         'request: 1 zone', done.stdout.splitlines()[0])
        for text in 'web', moved, 'zone az1', 'no zone':
            self.assertIn(text, done.stdout)
        done = self.audit('--format', 'json')
        self.assertEqual((7, ''), (done.returncode, done.stderr))
        answer = json.loads(done.stdout)
        [one] = answer.pop('misplacements')
        self.assertEqual({
            'servers': 2, 'misplaced': 1, 'without_request': 0,
            'rules': {'zone': 1}, 'cells_down': []}, answer)
        self.assertEqual((moved, 'far', 'unknown'), (
            one['server'], one['host'], one['cause']))

    def test_pages(self):
        """Each server is read once, whatever page it is on."""
        self.server('near')
        uuids = [uuidutils.generate_uuid() for _one in range(
            2 * readers.PAGE)]
        with self.cloud.nova.in_cell('cell2') as context:
            with context.db_connection.writer.get_engine().begin() as cell:
                cell.execute(sa.insert(models.Instance.__table__), [
                    {'uuid': uuid, 'host': 'far', 'vm_state': 'active',
                     'deleted': 0} for uuid in uuids])
        with api_db.get_engine().begin() as api:
            specs = api_models.RequestSpec.__table__
            text = api.scalar(sa.select(specs.c.spec))
            api.execute(sa.insert(specs), [
                {'instance_uuid': uuid, 'spec': text} for uuid in uuids])
        done = self.audit('--format', 'json')
        misplaced = json.loads(done.stdout)['misplacements']
        self.assertEqual(
            sorted(uuids), sorted(one['server'] for one in misplaced))

    def test_server_without_a_request(self):
        """It is reported, not audited."""
        self.server('far', 'cell2', stored=False)
        done = self.audit()
        self.assertEqual(
            (255, '1 server is not audited: nova has no request that it can '
             'read (nova has none)\n'), (done.returncode, done.stderr))
        self.server('near')
        for zone in (), ('--zone', 'nova'):
            self.assertEqual(0, self.audit(*zone).returncode)

    def test_cell_that_does_not_answer(self):
        """It exits with 5, and the other cells are audited."""
        self.cloud.create_aggregate('other', 'az2')
        self.server('near', zone='az2')
        self.cloud.nova.break_cell('cell2')
        done = self.audit()
        self.assertEqual(5, done.returncode)
        self.assertIn('the database of cell cell2', done.stderr)
        self.assertIn('; its other servers are not audited', done.stderr)
        self.assertIn('1 of 1 server is', done.stdout)


class TestReport(AuditTest):
    """``report --servers`` as an operator runs it."""

    def test_misplaced_servers(self):
        """They are shown with their commands, and the status stays 0."""
        self.cloud.sync()
        self.server('near')
        moved = [self.server('far', 'cell2', name=name)
                 for name in ('db', test_html_report.EVIL)]
        file = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path, 'report.html')
        done = self.run_command(
            'report', '--quiet', '--html', str(file), '--servers')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertIn(
            'in sync with nova; 2 of 3 servers are on a host that '
            'contradicts the request: 2 zone\n', done.stdout)
        page = file.read_text()
        self.assertTrue(page.endswith('</html>'))
        section = re.search('<section id="servers">.*?</section>', page,
                            re.DOTALL).group()
        for text in ('<dt>audited</dt><dd>3<', '<dt>misplaced</dt><dd>2<',
                     '<dt>by zone</dt><dd>2<', '<b>2 servers</b> from',
                     '<bdi>zone az1</bdi>', '<bdi>no zone</bdi>',
                     '<bdi>&lt;script&gt;document', '<bdi>not recorded: ',
                     *('>openstack server migrate --live-migration %s<' % one
                       for one in moved)):
            self.assertIn(text, section)
