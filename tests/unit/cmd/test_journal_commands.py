# SPDX-License-Identifier: Apache-2.0
"""Output and effect of the commands for the journal alone."""

import argparse
import contextlib
import io
import json

import fixtures

from nova_aggregate_mirror.cmd import journal_commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import nova_identity
from tests.unit import doubles

OF_OTHER = '1f6a2f0e-6a3c-4f0e-9a7c-2f3f6b1f7b11'


class CommandTest(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.rows = self.journal.rows
        for name, answer in (
                ('cmd.program.journal', self.journal),
                ('cmd.program.source', self.nova),
                ('cmd.program.check_configuration', None),
                ('journal.db.existing.display_url', 'sqlite:////journal'),
                ('journal.db.existing.is_missing', False)):
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.' + name,
                lambda *_conf, answer=answer: answer))

    def run_command(self, command, *more, **options):
        """Run a command; return its status, and keep what it prints."""
        self.out, self.err = io.StringIO(), io.StringIO()
        conf = argparse.Namespace(command=argparse.Namespace(**options))
        with contextlib.redirect_stdout(self.out), \
                contextlib.redirect_stderr(self.err):
            return command(conf, *more)


class TestRows(CommandTest):

    def show(self, form):
        """Return what the list prints."""
        self.assertEqual(0, self.run_command(
            journal_commands.show, lambda: self.now, format=form))
        return self.out.getvalue()

    def forget(self, *ids, force=False):
        return self.run_command(
            journal_commands.forget, id=[*ids], force=force)

    def test_empty_journal(self):
        """JSON has an empty list; the table is replaced by a sentence."""
        self.assertEqual([], json.loads(self.show('json')))
        self.assertIn('The journal sqlite:////journal is empty: no operation '
                      'is pending', self.show('table'))

    def test_table(self):
        """Oldest first, with the state, the age and the last error."""
        failed = self.hand_over('h1', error='placement refused')
        self.now += 70
        running, mirrored = self.record('h2'), self.record('h3')
        self.rows.set_mirrored([mirrored.id])
        self.now += 5
        found = [[cell.strip() for cell in line.split('|')[1:-1]]
                 for line in self.show('table').splitlines()[4:-1]]
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
        self.assertIn('\n%s: %s\n' % (', '.join(hosts), error),
                      self.show('table'))

    def test_json_has_everything(self):
        """Times are machine-readable."""
        failed = self.hand_over('h1', ['n1'])
        self.now += 60
        mirrored = self.record('h2')
        self.rows.set_mirrored([mirrored.id])
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
        }], json.loads(self.show('json')))

    def test_forget(self):
        """A row of an operation that may still run is kept."""
        failed, running = self.hand_over('h1'), self.record('h2')
        self.assertEqual(exit_status.REFUSED, self.forget(
            running.id, failed.id))
        self.assertEqual('1 row forgotten\n', self.out.getvalue())
        self.assertEqual([running], self.rows.all())
        self.assertIn(
            'Row %s was kept: its operation may still run. The agent closes '
            'it once its host is mirrored and [aggregate_mirror] max_call_age '
            'has passed; ' % running.id, self.err.getvalue())
        self.assertEqual(exit_status.COULD_NOT_RUN, self.forget(failed.id))
        self.assertIn('no row %s; see "nova-aggregate-mirror-manage journal '
                      'list"\n' % failed.id, self.err.getvalue())

    def test_forget_by_force(self):
        """An operator may know that the operation has ended."""
        running, kept = self.record('h1'), self.record('h2')
        self.assertEqual(0, self.forget(running.id, force=True))
        self.assertEqual([kept], self.rows.all())


class TestBind(CommandTest):

    def bind(self, force=False):
        return self.run_command(journal_commands.bind, force=force)

    def stored(self):
        return self.journal.database.run(nova_identity.cells)

    def belong_to_another(self):
        binding.replace(self.journal.database, {'other': ''})
        self.journal.ledger.remember({OF_OTHER})

    def test_journal_of_another_nova(self):
        """The ledger is kept, and it has no rows that might be another's."""
        self.belong_to_another()
        self.assertEqual(0, self.bind())
        self.assertEqual({doubles.CELL}, self.stored())
        self.assertEqual({OF_OTHER}, {*self.journal.ledger.entries()})

    def test_rows_of_another_nova(self):
        """They are kept as well, and only with --force."""
        self.belong_to_another()
        row = self.hand_over('h1')
        self.assertEqual(exit_status.REFUSED, self.bind())
        self.assertEqual(
            'The journal has rows of h1. If these are hosts of this nova, '
            'bind it with --force\n', self.err.getvalue())
        self.assertEqual({'other'}, self.stored())
        self.assertEqual(0, self.bind(force=True))
        self.assertEqual({doubles.CELL}, self.stored())
        self.assertEqual(
            [row.id], [row.id for row in self.journal.rows.all()])

    def test_rows_of_this_nova(self):
        """It is bound already, or to nothing yet."""
        self.hand_over('h1')
        for _time in range(2):
            self.assertEqual(0, self.bind())
            self.assertEqual({doubles.CELL}, self.stored())

    def test_nova_without_cells(self):
        """Nothing would tell it from another nova."""
        self.belong_to_another()
        self.nova.mapped = {}
        self.assertRaises(
            exceptions.InvalidConfiguration, self.bind, force=True)
        self.assertEqual({'other'}, self.stored())
