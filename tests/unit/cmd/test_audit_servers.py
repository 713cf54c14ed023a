# SPDX-License-Identifier: Apache-2.0
"""What ``placement audit_servers`` says of names that select servers."""

import argparse
import io
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.cmd import audit_servers
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror import source
from tests.unit import doubles

NONE = 'No server is selected: check --zone, --host and --project'


class TestSelection(testtools.TestCase):

    def audit(self, cells_down=(), nova=source.Nova({}, {}, {}),
              journal_error=None, form='json', zone='', **totals):
        """Audit the servers on the host h1; return what is said of it."""
        servers = mock.Mock(spec=readers.ServerPages,
                            cells_down=dict.fromkeys(
                                cells_down, doubles.SILENT))
        servers.problems.return_value = problems.of_cells(
            servers.cells_down, 'its servers are not audited')
        audit = mock.Mock(
            spec=readers.DatabaseAudit, source=servers,
            auditor=mock.Mock(spec=auditor.Auditor, zones=frozenset({'az1'})),
            totals=auditor.Totals(**totals))
        audit.run.return_value = iter([])
        errors = io.StringIO()
        for target, name, double in (
                (audit_servers, 'build_audit', mock.Mock(return_value=audit)),
                (program, 'check_configuration', mock.Mock()),
                (program, 'journal', mock.Mock(side_effect=journal_error)),
                (full_syncs, 'newest', mock.Mock(return_value=[])),
                (program, 'source', mock.Mock(**{
                    'return_value.read_all.return_value': nova})),
                (program, 'servers', mock.Mock())):
            self.useFixture(fixtures.MockPatchObject(target, name, double))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', errors))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', io.StringIO()))
        audit_servers.run(
            mock.Mock(command=argparse.Namespace(
                hosts=['h1'], zone=zone, project='', rules=[], format=form,
                quiet=True)))
        return errors.getvalue().splitlines()

    def test_no_server_is_selected(self):
        """Neither a server that cannot be read, nor one in a cell."""
        nova = source.Nova({}, {'h1': frozenset()}, {})
        self.assertEqual([NONE], self.audit(nova=nova))
        self.assertNotIn(NONE, self.audit(unknown=1, hosts={'h1'}))
        self.assertIn(NONE, self.audit(unknown=1, readable=1, hosts={'h1'}))
        self.assertNotIn(NONE, self.audit(['cell1']))

    def test_journal_that_cannot_be_opened(self):
        """Servers are audited without the history of full syncs."""
        self.assertIn(
            'The history of full syncs is not used: no answer', self.audit(
                journal_error=exceptions.JournalUnavailable('no answer')))

    def test_last_line(self):
        """It has the reason of the exit status, in each format."""
        for form in 'json', 'csv', 'value':
            self.assertIn('nova has no host h1', self.audit(form=form)[-1])

    def test_zone_that_does_not_exist(self):
        """The zones that exist are listed."""
        self.assertIn('nova has no availability zone typo, and no server '
                      'requests it; nova has az1', self.audit(zone='typo'))

    def test_host_without_a_compute_node(self):
        """It is reported, unless it may have one in a cell that is down."""
        self.assertEqual(
            ['nova has no host h1, and no server is on it; '
             'nova has none'], self.audit())
        self.assertEqual([NONE], self.audit(nova=source.Nova(
            {}, {}, {}, cells_down={'cell1': doubles.SILENT})))
