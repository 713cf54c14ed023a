# SPDX-License-Identifier: Apache-2.0
"""How findings become rows, and which checks are skipped."""

import importlib
import inspect
import itertools
import pkgutil

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror import exceptions
from tests.unit import doubles


class TestRows(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.ran = []
        self.findings = {}

    def check(self, name, *needs, reason=''):
        def find(deployment):
            self.ran.append(name)
            findings = self.findings.get(name, [])
            if isinstance(findings, Exception):
                raise findings
            return findings

        return runner.Check(name, find, needs, lambda deployment: reason)

    def results(self, *rows):
        return [(int(result.code), result.details) for result
                in runner.run(None, rows).values()]

    def test_worst_finding_is_the_result(self):
        """Every finding is printed, in order, also of a success."""
        self.findings['a'] = (checks.good('fine') + checks.failure('bad', 'x')
                              + checks.warning('odd', 'y', 'z'))
        self.assertEqual([(2, 'fine.\nbad.\n  x\nodd.\n  y\n  z')],
                         self.results(self.check('a')))
        self.findings['a'] = checks.good('fine')
        self.assertEqual([(0, 'fine.')], self.results(self.check('a')))

    def test_check_that_needs_another(self):
        """It is skipped, and names the check that failed."""
        self.findings['a'] = checks.warning('odd')
        rows = self.results(self.check('a'), self.check('b', 'a'),
                            self.check('c', 'b'), self.check('d'))
        self.assertEqual(['a', 'd'], self.ran)
        self.assertEqual([(1, 'odd.')] + 2 * [
            (1, 'Not checked: resolve "a" first.')] + [(0, None)], rows)

    def test_check_that_does_not_apply(self):
        """It has no row of its own: it would look like a success."""
        self.findings['a'] = checks.failure('bad')
        self.findings['c'] = checks.skipped('nova has no host yet')
        rows = self.results(self.check('a'), self.check(
            'b', 'a', reason='it is off'), self.check('c'))
        self.assertEqual(
            [(2, 'bad.'), (0, 'b: it is off.\nc: nova has no host yet.')],
            rows)
        self.assertEqual(['a', 'c'], self.ran)

    def test_what_breaks_in_between(self):
        """The check fails, and the others are run."""
        self.findings['a'] = exceptions.JournalUnavailable('gone')
        rows = self.results(self.check('a'), self.check('b'))
        self.assertEqual((2, 'gone.'), rows[0])
        self.assertEqual((0, None), rows[1])

    def test_option_that_cannot_be_read(self):
        """Whether a check applies may depend on it: it fails, and no other."""
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as file:
            file.write('[scheduler]\nrouted = si\n')
        conf = doubles.make_conf(self)
        conf.register_opt(cfg.BoolOpt('routed'), 'scheduler')
        conf(['--config-file', path])
        row = runner.Check('a', lambda deployment: [], (), lambda deployment:
                           str(deployment.conf.scheduler.routed))
        results = runner.run(
            checks.Deployment(conf, lambda: None), [row, self.check('b')])
        self.assertEqual(
            [(2, '[scheduler] routed in %s is "si": set it to true or false.'
              % path), (0, None)],
            [(int(result.code), result.details)
             for result in results.values()])

    def test_needs_are_rows_before(self):
        """A check comes after the checks that it needs."""
        before = set()
        for check in runner.CHECKS:
            self.assertLessEqual(set(check.needs), before)
            before.add(check.name)
        self.assertEqual(len(runner.CHECKS), len(before))

    def test_each_check_is_a_row(self):
        """No function that checks a deployment is left out."""
        modules = [importlib.import_module(module.name) for module
                   in pkgutil.iter_modules(checks.__path__,
                                           checks.__name__ + '.')]
        functions = set()
        for name, function in itertools.chain.from_iterable(
                inspect.getmembers(module, inspect.isfunction)
                for module in modules):
            signature = inspect.signature(function)
            required = [one.annotation for one
                        in signature.parameters.values()
                        if one.default is one.empty]
            if not name.startswith('_') and (
                    required, signature.return_annotation) == (
                        [checks.Deployment], checks.Findings):
                functions.add(function)
        self.assertEqual(functions, {check.find for check in runner.CHECKS})
