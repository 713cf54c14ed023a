# SPDX-License-Identifier: Apache-2.0
"""What all commands of the openstack client print."""

import dataclasses
import io
import json
import types

import fixtures
import testtools
import yaml

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import aggregates
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.osc import servers
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests.unit import doubles
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE

UNREAD = outcome.Subject(outcome.UNREAD, 'uuid')


class Lister(command.Lister):
    """A command with a list."""

    def take_action(self, parsed_args):
        return ('Name', 'Hosts'), [(EVIL, 1)]


def run(kind, *argv, **attributes):
    """Run a command, with other attributes; return what it prints."""
    out = io.StringIO()
    lister = kind(types.SimpleNamespace(stdout=out), None)
    vars(lister).update(attributes)
    lister.run(lister.get_parser('').parse_args(argv))
    return out.getvalue()


class TestCommand(testtools.TestCase):

    def show(self, form):
        """Print a list with a text that controls the terminal."""
        return run(Lister, '-f', form)

    def test_names_that_control_the_terminal(self):
        """They are escaped in what is read by people."""
        for form in 'table', 'value', 'csv':
            text = self.show(form)
            self.assertEqual(printable.lines(text), text)
            # In CSV, a backslash is doubled.
            self.assertIn(SAFE, text.replace('\\\\', '\\'))

    def test_table(self):
        """It has the details only by request, and no line without rows."""
        rows = [('a', 'uuid', 0, 0, 0, 'in_sync')]
        for argv, shown, data in (
                ([], False, rows), (['-c', 'UUID'], True, rows),
                (['-f', 'csv'], True, rows), ([], False, [])):
            text = run(aggregates.ListAggregates, *argv,
                       take_action=lambda _args, data=data: (
                           aggregates.COLUMNS, list(data)))
            self.assertEqual((bool(data), shown), (bool(text), 'UUID' in text))

    def test_sorted_table(self):
        """Rows are sorted by any column, also by one that it does not have."""
        def show(*argv):
            table = run(
                Lister, *argv, take_action=lambda parsed_args: (
                    ('Name', 'In Nova'), [('a', 9), ('b', 10), ('c', None)]),
                in_table=lambda rows: (
                    ('Cell',), [(('line', name),) for name, _count in rows]))
            return ''.join(letter for letter in table if letter in 'abc')

        for argv, expected in (
                ((), 'abc'), (('--sort-column', 'Name'), 'abc'),
                (('--sort-column', 'other'), 'abc'),
                (('--sort-column', 'Name', '--sort-descending'), 'cba'),
                (('--sort-column', 'In Nova', '--sort-descending'), 'cba'),
                (('--sort-column', 'In Nova', '--sort-ascending'), 'abc'),
                (('--sort-column', 'Cell', '--sort-descending'), 'abc')):
            self.assertEqual(expected, show(*argv), argv)

    def test_names_in_documents(self):
        """They are exact, because a document has escapes of its own."""
        for form, load in ('json', json.loads), ('yaml', yaml.safe_load):
            text = self.show(form)
            self.assertEqual([{'Name': EVIL, 'Hosts': 1}], load(text))
            self.assertEqual(printable.lines(text), text)

    @staticmethod
    def judged(*found, nova=source.Nova({}, {}, {}), failed=(), **options):
        """Build the result of a comparison that fails for these subjects."""
        error = exceptions.ServiceFailed('answered 500', 'placement')
        return result.Result(
            outcome.Outcome(failed=dict.fromkeys(failed, error)), nova, found,
            request=full_sync.Request(write=False), **options)

    def run_lister(self, kind, judged, *arguments):
        """Run a command with a result; return status, rows and errors."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.console.syncs.run',
            lambda *_arguments, **_options: judged))
        out, errors = io.StringIO(), io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', errors))
        lister = kind(types.SimpleNamespace(
            stdout=out, options=types.SimpleNamespace(verbose_level=1),
            client_manager=types.SimpleNamespace(
                aggregate_mirror=types.SimpleNamespace(
                    aggregates=frozenset))), None)
        status = lister.run(lister.get_parser('').parse_args(
            [*arguments, '-f', 'json']))
        return status, json.loads(out.getvalue() or '[]'), errors.getvalue()

    def test_interrupted_diff(self):
        """No list is printed: an empty one would say that nothing differs."""
        interrupted = dataclasses.replace(
            full_sync.without_comparison(
                exceptions.Stopped(''), full_sync.Request(write=False)),
            interruption=exit_status.INTERRUPTED)
        status, rows, errors = self.run_lister(aggregates.Diff, interrupted)
        self.assertEqual((exit_status.INTERRUPTED, []), (status, rows))
        self.assertIn('Interrupted before the comparison', errors)

    def test_aggregate_that_was_not_read(self):
        """It is unknown, also without a host in nova."""
        judged = self.judged(
            nova=source.Nova({'uuid': 'rack'}, {}, {}), failed=[UNREAD])
        status, [row], _errors = self.run_lister(
            aggregates.ListAggregates, judged)
        self.assertEqual((exit_status.NOT_READ, 'unknown'),
                         (status, row['State']))
        _status, rows, errors = self.run_lister(
            aggregates.ShowAggregate, judged, 'uuid')
        self.assertEqual([], rows)
        self.assertNotIn('no provider in placement', errors)

    def test_cell_that_is_down(self):
        """Not everything could be read."""
        nova = source.Nova({}, {}, {}, cells_down={'c': doubles.SILENT})
        for failed, expected in (([], exit_status.NO_NODE),
                                 ([UNREAD], exit_status.NOT_READ)):
            status, _rows, _errors = self.run_lister(
                aggregates.ListAggregates,
                self.judged(nova=nova, failed=failed))
            self.assertEqual(expected, status)

    def test_removals_that_a_sync_refuses(self):
        """The refusal has its own step; what is missing has one."""
        missing, stale, deleted = (associations.Association(
            ('h1',), 'n1', 'zone', 'uuid', state) for state in (
                associations.State.MISSING, associations.State.STALE_KEPT,
                associations.State.STALE))
        refused = exceptions.RemovalsRefused('too many', step='look at them')
        for found in [stale], [stale, missing], [deleted, missing]:
            status, rows, errors = self.run_lister(
                aggregates.Diff, self.judged(*found, refused=refused))
            self.assertEqual((exit_status.DRIFT, len(found)),
                             (status, len(rows)))
            self.assertIn('too many: look at them', errors)
            self.assertNotIn('--prune', errors)
            self.assertEqual(missing in found, 'To change' in errors)

    def test_argument_that_is_empty(self):
        """A variable that a script has not set does not select everything."""
        for kind, *arguments in (
                (servers.ListServers, '--zone', ''),
                (servers.ListServers, '--project='),
                (aggregates.Diff, '--host', 'h1', '--host', ''),
                (aggregates.ShowAggregate, '')):
            status, _rows, errors = self.run_lister(
                kind, self.judged(), *arguments)
            self.assertEqual(exit_status.COULD_NOT_RUN, status)
            self.assertIn(' has no value', errors)

    def test_next_step_of_diff(self):
        """A sync of what was compared; agents cannot be seen in the APIs."""
        failed = [outcome.Subject(outcome.PROVIDER, 'n%02d' % number)
                  for number in range(12)]
        for state, what, pruning in (
                (associations.State.MISSING, 'add', ''),
                (associations.State.STALE, 'remove', '--prune ')):
            compared = self.judged(associations.Association(
                ('h1',), 'n99', 'zone', 'uuid', state), failed=failed)
            status, _rows, errors = self.run_lister(
                aggregates.Diff, compared, '--aggregate', 'a b',
                '--host', 'h1')
            self.assertEqual(exit_status.NOT_READ, status)
            first, step, *others = errors.splitlines()
            self.assertEqual(
                ['Placement differs from nova: 1 association to %s.' % what,
                 'To change placement, run "openstack aggregate mirror sync '
                 '%s--aggregate \'a b\' --host h1".' % pruning,
                 '... and 2 more of the same kind; "openstack aggregate '
                 'mirror sync --prune --dry-run -f json --aggregate \'a b\' '
                 '--host h1" lists all'], [first, step, others[-1]])
            self.assertNotIn('agent', errors)
