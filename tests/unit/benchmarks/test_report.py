# SPDX-License-Identifier: Apache-2.0
"""The options of benchmarks/run, and its report."""

import configparser
import contextlib
import importlib
import io
import pathlib
import re
import socket

import fixtures
import testtools

from benchmarks import add_host
from benchmarks import arguments
from benchmarks import figures
from benchmarks import machine
from benchmarks import measure
from benchmarks import options
from benchmarks import outage
from benchmarks import parts
from benchmarks import program
from benchmarks import recovery
from benchmarks import report
from benchmarks import stock
from benchmarks import table
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import processes

CPUINFO = """\
processor\t: 0
model name\t: AMD EPYC 7B13   64-Core
processor\t: 1
model name\t: another
"""
PORTS = dict.fromkeys(config.SMALL, 0)
MET = table.Table('Met', ('', 'target'), [['a', '2 or more: met'],
                                          ['b', 'all 20: met'], ['c', '']])
MISSED = table.Table('Missed', ('', 'target'), [['a', '2 or more: MISSED']])


def refused(*argv):
    """Return the exit status and the last line of a refused command line."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            options.parse(list(argv))
        except SystemExit as exc:
            return exc.code, said.getvalue().splitlines()[-1]
    raise AssertionError('%s was accepted' % (argv,))


class TestOptions(testtools.TestCase):

    def test_everything_is_measured(self):
        """Without options the whole report is written."""
        self.assertEqual(list(parts.PARTS), options.parse([]).parts)

    def test_parts_are_in_the_order_of_a_report(self):
        """Each part is measured once, even if it is named twice."""
        chosen = options.parse(['--parts', 'recovery', 'sync', 'recovery'])
        self.assertEqual(['sync', 'recovery'],
                         [part.name for part in chosen.parts])

    def test_wrong_command_lines(self):
        """Each exits with 2 and a line with the error."""
        missing = self.useFixture(fixtures.TempDir()).join('a', 'b')
        for argv, wanted in ((['--parts', 'all'], "invalid choice: 'all'"),
                             (['--parts'], 'expected at least one'),
                             (['--database', 'mysql://x'], 'is neither'),
                             (['--database', 'mysql+pymysql://h:abc'],
                              'Port could not'),
                             (['--write', missing], 'cannot be written'),
                             (['--markdown', '/'], 'cannot be written'),
                             (['sync'], 'unrecognized arguments')):
            status, said = refused(*argv)
            self.assertEqual(2, status)
            self.assertIn(wanted, said)

    def test_sizes_are_what_the_benchmarks_take(self):
        """The default and the quick sizes of each part are valid."""
        for part in parts.PARTS:
            module = importlib.import_module(part.module)
            for argv in part.arguments, part.quick:
                self.assertIsNotNone(module.parse(list(argv)))
            self.assertTrue(callable(module.measure))

    def test_a_thousand_hosts_are_pending(self):
        """The report's main size, and the sizes that have targets."""
        taken = {part.name: importlib.import_module(part.module).parse(
            list(part.arguments)) for part in parts.PARTS}
        self.assertEqual(1000, taken['recovery'].hosts)
        self.assertIn(2000, taken['scheduler'].hosts)
        self.assertIn(5000, taken['explain'].hosts)
        self.assertNotEqual({}, figures.targets(
            taken['sync'].hosts, taken['sync'].memberships,
            taken['sync'].aggregates))
        self.assertEqual((5000, 3), (taken['agent'].hosts,
                                     taken['agent'].memberships))


class TestMachine(testtools.TestCase):

    def test_processor(self):
        """Its model is listed once for any number of cores."""
        self.assertEqual('AMD EPYC 7B13 64-Core', machine.processor(CPUINFO))

    def test_processor_without_a_name(self):
        """An architecture without a model name still has a description."""
        self.assertNotEqual('', machine.processor('processor\t: 0\n'))

    def test_description(self):
        """Figures, without the name of the machine."""
        described = machine.description()
        self.assertEqual(['processor', 'cores', 'memory', 'kernel'],
                         list(described))
        self.assertTrue(re.fullmatch(r'[1-9]\d* GiB', described['memory']))
        self.assertNotIn(socket.gethostname(), ' '.join(described.values()))


def part(tables, missed=()):
    return report.Measured('A part', tables, missed, 61.4, '0.5', '3.9')


class TestReport(testtools.TestCase):

    def test_parts_say_what_became_of_their_targets(self):
        """Targets met, targets missed, no target, or no result."""
        self.assertEqual(
            ['2 met', 'MISSED: a', '', 'could not be measured'],
            [each.verdict for each in (
                part([MET]), part([MET, MISSED], ['a']),
                part([table.Table('None', ('',), [['x']])]), part([]))])

    def test_all_of_it(self):
        """The environment, an overview with the load, then the parts."""
        result = report.Report({'cores': '4'}, [part([MET]), part([MISSED],
                                                                  ['a'])])
        first, overview, *rest = result.tables()
        self.assertEqual([['cores', '4']], first.rows)
        self.assertEqual([['A part', '61', '0.5', '3.9', '2 met'],
                          ['A part', '61', '0.5', '3.9', 'MISSED: a']],
                         overview.rows)
        self.assertEqual([MET, MISSED], rest)
        self.assertEqual(['a'], result.missed)

    def test_a_part_without_tables_is_missing(self):
        """The report has the other parts, but is not complete."""
        self.assertTrue(report.Report({}, [part([MET])]).complete)
        self.assertFalse(report.Report({}, [part([MET]), part([])]).complete)

    def test_rows_are_as_long_as_their_header(self):
        """Otherwise reStructuredText rejects the table."""
        for each in report.Report({'a': 'b'}, [part([MET])]).tables():
            for row in each.rows:
                self.assertEqual(len(each.header), len(row), each.title)


class Services:
    """The services that a run needs."""

    def versions(self):
        return {'nova': '34.0.0'}


class TestMeasure(testtools.TestCase):

    def run_parts(self, *argv, fails=None):
        """Return the exit status and the output of a run of fake parts."""
        class Module:
            parse = staticmethod(list)

            @staticmethod
            def measure(sizes, chosen):
                if fails:
                    raise fails
                return [MISSED if 'big' in sizes else MET], (
                    ['a'] if 'big' in sizes else [])

        self.useFixture(fixtures.MockPatchObject(
            measure.importlib, 'import_module', return_value=Module))
        self.useFixture(fixtures.MockPatchObject(
            measure.services, 'choose', return_value=Services()))
        self.useFixture(fixtures.MockPatchObject(
            processes, 'interruptible'))
        self.useFixture(fixtures.MockPatchObject(
            parts, 'PARTS', (parts.Part('one', 'One', '', ['big'], []),)))
        printed = self.useFixture(fixtures.StringStream('out')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', printed))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', printed))
        status = measure.main(list(argv))
        printed.seek(0)
        return status, printed.read()

    def test_missed_target(self):
        """The exit status is 1, and the last line names the target."""
        status, said = self.run_parts()
        self.assertEqual(1, status)
        self.assertEqual('Missed: a', said.splitlines()[-1])

    def test_quick(self):
        """Sizes are small, and the report notes it."""
        status, said = self.run_parts('--quick')
        self.assertEqual(0, status)
        self.assertIn('--quick', said)

    def test_part_that_cannot_be_measured(self):
        """It prints a line, no traceback, and still writes the report."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join('r'))
        status, said = self.run_parts(
            '--write', str(path), fails=program.Void('it wrote too much'))
        self.assertEqual(program.COULD_NOT_RUN, status)
        self.assertIn('The benchmark cannot continue: it wrote too much\n',
                      said)
        self.assertIn('could not be measured', path.read_text())
        self.assertNotIn('too much', path.read_text())

    def test_both_formats(self):
        """reStructuredText for the documentation, markdown for an issue."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.run_parts('--write', str(folder / 'a.inc'),
                       '--markdown', str(folder / 'a.md'))
        self.assertIn('.. list-table:: ' + report.ENVIRONMENT,
                      (folder / 'a.inc').read_text())
        self.assertIn('| nova | 34.0.0 |', (folder / 'a.md').read_text())

    def test_commit(self):
        """The commit of this checkout; elsewhere it is "not known"."""
        self.assertTrue(re.fullmatch(
            '([0-9a-f]{12}|not known)(, with changes)?', measure.commit()))
        self.useFixture(fixtures.EnvironmentVariable('PATH', ''))
        self.assertEqual('not known', measure.commit())


def outage_run(statuses, seconds=2.0, by_journal=0):
    return outage.Run(
        outage.Calls(statuses, 50.0, 90.0), seconds, 1.0,
        dict.fromkeys(figures.traffic.PLACEMENT, 2), by_journal)


class TestRecovery(testtools.TestCase):

    def rows(self, ours, theirs=(10, 0)):
        failed, answered = theirs
        return recovery.rows([figures.Pair(
            outage_run(ours, by_journal=10),
            outage_run({500: failed, 200: answered}, 20.0))], 10)

    def test_answers_and_time(self):
        """Stock nova failed every call and took ten times as long."""
        rows, missed = self.rows({200: 10})
        self.assertEqual([], missed)
        self.assertEqual(
            [['10 hosts: add-host answered 200', '0', '10', '',
              'all 10: met'],
             ['10 hosts: add-host answered 500', '10', '0', '', '']],
            rows[:2])
        self.assertIn(['10 hosts: until placement is in sync, s', '20.0',
                       '2.0', '10.0', ''], rows)
        self.assertIn(['10 hosts: placement requests', '10', '10', '1.00',
                       ''], rows)

    def test_answers_have_no_ratio(self):
        """Counts of successful calls have no ratio."""
        rows, _missed = self.rows({200: 10}, theirs=(5, 5))
        self.assertEqual(['5', '10', ''], rows[0][1:4])

    def test_one_call_that_failed(self):
        """No user's request may fail because of placement."""
        rows, missed = self.rows({200: 9, 500: 1})
        self.assertEqual(['10 hosts: add-host answered 200'], missed)
        self.assertEqual('all 10: MISSED', rows[0][-1])


class Api(add_host.Api):
    """An API that was already called."""

    def __init__(self, milliseconds):
        self.requests = 2.0
        self.times = dict.fromkeys(
            add_host.ACTIONS, [900.0] * add_host.WARM_UP + [milliseconds])


class TestAddHost(testtools.TestCase):

    def rows(self, ours, calls=add_host.ENOUGH):
        return add_host.rows([figures.Pair(Api(ours), Api(50.0))], calls)

    def test_ours_is_not_to_be_slower(self):
        """The target is stock nova's time; the first calls do not count."""
        rows, missed = self.rows(40.0)
        self.assertEqual(['add-host: wall, ms', '50.0', '40.0', '1.25',
                          '1 or more: met'], rows[0])
        self.assertEqual([], missed)
        self.assertEqual(['add-host: wall, ms'], self.rows(60.0)[1])

    def test_few_calls_have_no_target(self):
        """Too few calls are not significant."""
        rows, missed = self.rows(60.0, add_host.ENOUGH - 1)
        self.assertEqual(('', []), (rows[0][-1], missed))


class TestStock(testtools.TestCase):

    def test_hooks_are_empty(self):
        """An option without a value is written: it has a meaning."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        files = config.Config(folder, arguments.SQLITE, '', PORTS)
        config_files.write_nova(files, 'stock.conf', stock.OPTIONS)
        written = configparser.RawConfigParser()
        written.read(folder / 'stock.conf')
        self.assertEqual('', written['aggregate_mirror']['hooks'])

    def test_none_takes_away(self):
        """An option of the whole cloud can be removed for a single nova."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        files = config.Config(folder, arguments.SQLITE, '', PORTS)
        config_files.write_nova(
            files, 'a.conf', {'database': {'connection': None}})
        written = configparser.RawConfigParser()
        written.read(folder / 'a.conf')
        self.assertNotIn('connection', written['database'])

    def test_stock_nova_with_this_package_is_refused(self):
        """The figures would compare this package with itself."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'log').mkdir()
        running = type('Cloud', (), {
            'config': config.Config(folder, '', '', PORTS),
            'another_nova_api': lambda self, *_options:
                contextlib.nullcontext('nova')})()
        log = folder / 'log' / 'stock.log'
        log.write_text('started\n')
        with stock.nova_api(running) as nova:
            self.assertEqual('nova', nova)
        log.write_text('INFO %s; hooks: mirror\n' % stock.ACTIVE)
        self.assertRaises(program.Void, stock.nova_api(running).__enter__)
