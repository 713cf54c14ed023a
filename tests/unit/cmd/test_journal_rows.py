# SPDX-License-Identifier: Apache-2.0
"""Output and effect of ``journal list`` and ``journal forget``."""

import json

import fixtures

from nova_aggregate_mirror.cmd import journal_rows
from nova_aggregate_mirror import exit_status
from tests.unit import doubles


class TestJournalRows(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.rows = self.journal.rows
        self.out = self.useFixture(fixtures.StringStream('out'))
        self.err = self.useFixture(fixtures.StringStream('err'))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.out.stream))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err.stream))

    def text(self, stream):
        stream.stream.seek(0)
        return stream.stream.read()

    def show(self, form):
        return journal_rows.show(self.rows, form, 'sqlite:////journal',
                                 now=lambda: self.now)

    def test_empty_journal(self):
        """JSON has an empty list; the table is replaced by a sentence."""
        self.assertEqual(0, self.show('json'))
        self.assertEqual([], json.loads(self.text(self.out)))
        self.assertEqual(0, self.show('table'))
        self.assertIn('The journal sqlite:////journal is empty: no operation '
                      'is pending', self.text(self.out))

    def test_table(self):
        """Oldest first, with the state, the age and the last error."""
        failed = self.hand_over('h1', error='placement refused')
        self.now += 70
        running, mirrored = self.record('h2'), self.record('h3')
        self.rows.set_mirrored([mirrored.id])
        self.now += 5
        self.assertEqual(0, self.show('table'))
        found = [[cell.strip() for cell in line.split('|')[1:-1]]
                 for line in self.text(self.out).splitlines()[4:-1]]
        self.assertEqual([
            ['h1', 'to be mirrored', '75 s', '1'], [failed.id, '', '', '']],
            found[:2])
        self.assertEqual(sorted([
            (['h2', 'may still run', '5 s', '0'], [running.id, '', '', '']),
            (['h3', 'mirrored, may still', '5 s', '0'],
             [mirrored.id, 'run', '', ''])]),
            sorted(zip(found[2::2], found[3::2])))

    def test_errors_of_usual_rows(self):
        """They are below the table, each once with its hosts."""
        error = ('placement at http://10.0.0.5:8778 answered 503 with '
                 'text/html during PUT /resource_providers/x/aggregates')
        hosts = ['compute-1%d.rack-3.example' % number for number in range(9)]
        for host in hosts:
            self.hand_over(host, error=error)
        self.rows.set_mirrored([self.record('h3').id])
        self.show('table')
        self.assertIn('\n%s: %s\n' % (', '.join(hosts), error),
                      self.text(self.out))

    def test_json_has_everything(self):
        """Times are machine-readable."""
        failed = self.hand_over('h1', ['n1'])
        self.now += 60
        mirrored = self.record('h2')
        self.rows.set_mirrored([mirrored.id])
        self.show('json')
        self.assertEqual([{
            'id': failed.id, 'host': 'h1', 'nodes': ['n1'],
            'request_id': None,
            'state': 'to_mirror', 'detail': 'to be mirrored',
            'created_at': '1970-01-01T00:16:40Z', 'mirrored_at': None,
            'attempts': 1, 'last_error': 'refused',
        }, {
            'id': mirrored.id, 'host': 'h2', 'nodes': [],
            'request_id': None,
            'state': 'running_mirrored', 'detail': 'mirrored, may still run',
            'created_at': '1970-01-01T00:17:40Z',
            'mirrored_at': '1970-01-01T00:17:40Z',
            'attempts': 0, 'last_error': None,
        }], json.loads(self.text(self.out)))

    def test_forget(self):
        """A row of an operation that may still run is kept."""
        failed, running = self.hand_over('h1'), self.record('h2')
        self.assertEqual(exit_status.REFUSED, journal_rows.forget(
            self.rows, [running.id, failed.id]))
        self.assertEqual([running], self.rows.all())
        self.assertIn(
            'Row %s was kept: its operation may still run. The agent closes '
            'it once its host is mirrored and [aggregate_mirror] max_call_age '
            'has passed; ' % running.id, self.text(self.err))
        self.assertEqual(exit_status.COULD_NOT_RUN, journal_rows.forget(
            self.rows, [failed.id]))
        self.assertIn('no row %s; see "nova-aggregate-mirror-manage journal '
                      'list"\n' % failed.id, self.text(self.err))

    def test_forget_by_force(self):
        """An operator may know that the operation has ended."""
        running, kept = self.record('h1'), self.record('h2')
        self.assertEqual(0, journal_rows.forget(
            self.rows, [running.id], force=True))
        self.assertEqual([kept], self.rows.all())
