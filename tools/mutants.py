#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Change one comparison, decision or number at a time: do the tests notice?

Cosmic Ray makes each change, a mutant, in a copy of the repository. Those of
the module's tests that execute the changed lines then run in a fork, which
finds nova imported, the shortest first, until one fails. A mutant that none
notices is printed, unless tests/mutants.csv has it with the reason why it need
not be noticed. As many modules are tried in parallel as there are cores.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import csv
import difflib
import importlib
import itertools
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

from cosmic_ray import ast
from cosmic_ray.ast import ast_query
from cosmic_ray import mutating
from cosmic_ray.operators import operator
from cosmic_ray.operators import provider
import coverage
import parso.python.tree

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCUSED = ROOT / 'tests' / 'mutants.csv'
# The tests of each module, which alone decide. Functional ones decide where
# only a real server or nova can tell.
TESTS = {
    'agent/drain': [
        'unit.agent.test_drain', 'unit.agent.test_waiting',
        'unit.agent.test_service', 'functional.test_locked_rows',
        'functional.test_row_locks'],
    'hooks/mirror': [
        'unit.hooks.test_mirror', 'unit.hooks.test_processes',
        'functional.test_budget', 'functional.test_invalid_aggregates',
        'functional.test_locked_rows', 'functional.test_observe',
        'functional.test_outage'],
    'limits/engines': [
        'unit.limits.test_engines', 'unit.journal.db.test_engine',
        'functional.test_row_locks', 'functional.test_journal_databases'],
    'reconcile/provider_writes': [
        'unit.reconcile.test_provider_writes',
        'unit.reconcile.test_full_sync'],
    'limits/deadline': ['unit.limits.test_deadline'],
    'limits/backoff': ['unit.limits.test_backoff'],
    'hooks/attach': ['unit.hooks.test_attach'],
}
# A comparison becomes its opposite, or loses or gains its limit.
COMPARISONS = {
    'Eq': ['NotEq'], 'NotEq': ['Eq'], 'Is': ['IsNot'], 'IsNot': ['Is'],
    'Lt': ['LtE', 'GtE'], 'LtE': ['Lt', 'Gt'], 'Gt': ['GtE', 'LtE'],
    'GtE': ['Gt', 'Lt']}
OPERATORS = [
    'AddNot', 'NumberReplacer', 'ReplaceAndWithOr', 'ReplaceBreakWithContinue',
    'ReplaceContinueWithBreak', 'ReplaceFalseWithTrue', 'ReplaceOrWithAnd',
    'ReplaceTrueWithFalse', 'ReplaceUnaryOperator_Delete_Not',
    *('ReplaceComparisonOperator_%s_%s' % (before, after)
      for before, others in COMPARISONS.items() for after in others)]
# What has statements, or a head and statements.
BLOCKS = {'file_input', 'suite', 'simple_stmt', 'decorated', 'funcdef',
          'classdef', 'if_stmt', 'while_stmt', 'for_stmt', 'with_stmt',
          'try_stmt'}
# What the last tests printed.
LOG = 'mutants.log'
# Seconds; tests that hang have noticed.
LONGEST = 300
# Seconds of a test that does not decide: many mutants would wait for it.
SLOW = 5.0
# Prints what a test imports but the package and its tests.
IMPORTED = '''
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*(name for name in sys.modules if name.partition('.')[0] not in (
    '__main__', 'nova_aggregate_mirror', 'tests')))
'''


class SwapLimits(operator.Operator):
    """``min`` becomes ``max``, and the other way round."""

    OTHERS = {'min': 'max', 'max': 'min'}

    def mutation_positions(self, node):
        if isinstance(node, parso.python.tree.Name) and (
                node.value in self.OTHERS):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        return parso.python.tree.Name(
            self.OTHERS[node.value], node.start_pos, prefix=node.prefix)

    @classmethod
    def examples(cls):
        return [operator.Example('min(1, 2)', 'max(1, 2)')]


def operators():
    core = provider.OperatorProvider()
    return [SwapLimits(), *(core[name]() for name in OPERATORS)]


def copy(folder):
    """Copy what is in the repository, as it is now."""
    files = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others',
         '--exclude-standard'], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    archive = subprocess.run(
        ['tar', '--create', '--null', '--files-from=-', '--file=-',
         '--ignore-failed-read'], cwd=ROOT, check=True, input=files.stdout,
        stdout=subprocess.PIPE)
    subprocess.run(['tar', '--extract', '--file=-'], cwd=folder, check=True,
                   input=archive.stdout)
    # Not by the time of the file: mutants follow each other within one tick.
    subprocess.run([sys.executable, '-m', 'compileall', '-q',
                    '--invalidation-mode', 'checked-hash', 'tests',
                    'nova_aggregate_mirror'], cwd=folder, check=True)


def preload(names):
    """Import what tests import of others; the mutant must not be imported."""
    imported = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', IMPORTED, *names], check=True,
        stdout=subprocess.PIPE, text=True)
    if any(name.startswith('tests.functional.') for name in names):
        # Before anything that imports eventlet.
        importlib.import_module('tests.functional')
    for name in imported.stdout.split():
        # Some need others before them, or are made by others.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class Recorder(unittest.TextTestResult):
    """Takes the time of each test, and the lines that it executes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.coverage = coverage.Coverage(data_file=None)
        self.seconds = collections.Counter()

    def startTest(self, test):
        super().startTest(test)
        self.coverage.switch_context(name(test))
        self.seconds[name(test)] -= time.monotonic()

    def stopTest(self, test):
        self.seconds[name(test)] += time.monotonic()
        super().stopTest(test)


def name(test):
    """Return the name of a test, the same for all its scenarios."""
    # Some are multiplied when they run.
    return test.id().partition('(')[0]


def forked(function, *args):
    """Call a function in a fork; return what it returns, None if it fails."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONGEST)
            log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            writer.send(function(*args))
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(1)
    writer.close()
    try:
        return reader.recv()
    except EOFError:
        return None
    finally:
        reader.close()
        os.waitpid(pid, 0)


def cases(names):
    """Load the tests of modules."""
    suites = [unittest.defaultTestLoader.loadTestsFromNames(names)]
    for suite in suites:
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                suites.append(test)
            else:
                yield test


def record(path, names):
    """Run all tests; list seconds, name and executed lines, shortest first.

    Lines that are executed by an import belong to each test. Those that take
    long are left out.
    """
    runner = unittest.TextTestRunner(resultclass=Recorder, failfast=True)
    result = runner._makeResult()
    result.failfast = True
    result.coverage.start()
    for module in names:
        importlib.import_module(module)
    unittest.TestSuite(cases(names)).run(result)
    result.coverage.stop()
    if not result.wasSuccessful():
        result.printErrors()
        return None
    data = result.coverage.get_data()
    tests = collections.defaultdict(set)
    for line, contexts in data.contexts_by_lineno(str(path)).items():
        for test in result.seconds if '' in contexts else contexts:
            tests[test].add(line)
    return sorted((result.seconds[test], test, lines)
                  for test, lines in tests.items()
                  if result.seconds[test] < SLOW)


def lines(node):
    """Return the lines of the statement, or of the head, that a node is in."""
    while node.parent.type not in BLOCKS:
        node = node.parent
    return range(node.start_pos[0], node.end_pos[0] + 1)


def notice(names, chosen):
    """Run the chosen tests in their order; return whether one fails."""
    tests = collections.defaultdict(list)
    for test in cases(names):
        tests[name(test)].append(test)
    result = unittest.TestResult()
    result.failfast = True
    unittest.TestSuite(itertools.chain.from_iterable(
        tests[one] for one in chosen)).run(result)
    return not result.wasSuccessful()


def mutants(module):
    """Try all mutants of a module.

    :returns: their number, and those that no test has noticed: module,
        definition, line before and after
    """
    names = ['tests.' + name for name in TESTS[module]]
    path = pathlib.Path('nova_aggregate_mirror', module + '.py')
    count, unnoticed = 0, []
    with tempfile.TemporaryDirectory(prefix='mirror-mutants-') as folder:
        copy(folder)
        os.chdir(folder)
        sys.path.insert(0, folder)
        os.environ['PYTHONPATH'] = folder
        sys.dont_write_bytecode = True
        preload(names)
        recorded = forked(record, path.resolve(), names)
        tests = [test for _seconds, test, _lines in recorded or ()]
        # They must succeed in the order in which they decide, too.
        if recorded is None or forked(notice, names, tests) is not False:
            raise RuntimeError('the tests of %s fail without a mutant:\n%s' % (
                module, pathlib.Path(LOG).read_text()[-2000:]))
        for change in operators():
            tree = ast.get_ast_from_path(path)
            nodes = [node for node in ast.ast_nodes(tree)
                     for _position in change.mutation_positions(node)]
            count += len(nodes)
            for occurrence, node in enumerate(nodes):
                changed = lines(node)
                chosen = [test for _seconds, test, executed in recorded
                          if not executed.isdisjoint(changed)]
                definition = ast_query.ASTQuery(node).get_definition_name()
                with mutating.use_mutation(path, change, occurrence) as code:
                    # None if the mutant ends or hangs the process.
                    if forked(notice, names, chosen) is False:
                        unnoticed.append(
                            (module, definition or '', *differing(*code)))
    return count, unnoticed


def differing(before, after):
    """Return the lines that differ, before and after."""
    lines = [line for line in difflib.ndiff(
        before.splitlines(), after.splitlines())]
    return [' '.join(line[2:].strip() for line in lines
                     if line.startswith(sign)) for sign in '-+']


def excused():
    """Read the mutants that need not be noticed."""
    with EXCUSED.open(newline='') as lines:
        return {tuple(row[:-1]): row[-1] for row in csv.reader(lines)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        'modules', nargs='*', metavar='MODULE',
        help='only these: %s' % ', '.join(TESTS))
    modules = parser.parse_args().modules or list(TESTS)
    for unknown in set(modules) - TESTS.keys():
        parser.error('no tests are known of %s; modules: %s' % (
            unknown, ', '.join(TESTS)))
    known, unnoticed, total = excused(), set(), 0
    # A process each, which changes its working directory.
    with concurrent.futures.ProcessPoolExecutor(
            max_tasks_per_child=1) as pool:
        runs = {pool.submit(mutants, module): module for module in modules}
        for run in concurrent.futures.as_completed(runs):
            count, found = run.result()
            print('%s: %d mutants, %d not noticed' % (
                runs[run], count, len(found)), flush=True)
            total += count
            unnoticed.update(found)
    needless = {key for key in known if key[0] in modules} - unnoticed
    for key in sorted(unnoticed - known.keys()):
        print('not noticed: ', end='')
        csv.writer(sys.stdout, lineterminator='\n').writerow(key)
    for key in sorted(needless):
        print('%s has a mutant that is noticed, or does not exist: %s' % (
            EXCUSED.relative_to(ROOT), ', '.join(key)))
    print('%d mutants, %d not noticed, of which %d have a reason' % (
        total, len(unnoticed), len(unnoticed & known.keys())))
    return 1 if unnoticed - known.keys() or needless else 0


if __name__ == '__main__':
    sys.exit(main())
