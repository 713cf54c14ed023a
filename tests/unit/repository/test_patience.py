# SPDX-License-Identifier: Apache-2.0
"""Limits of tests, which one variable multiplies."""

import ast
import itertools
import os
import pathlib
import re
import subprocess
import sys

import testtools

from tests import patience

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'index.rst'
LIMIT = re.compile('PATIENCE|TIMEOUT|WITHIN|FOR_EVER')
# Of what is tested: options of nova and of a database server.
OPTIONS = {'CELL_TIMEOUT', 'INLINE_TIMEOUT', 'LOCK_TIMEOUT'}


def numbers(tree: ast.Module):
    """Yield the lines with a limit that is a plain number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = node.value
            targets = itertools.chain(*map(ast.walk, node.targets))
            names = {name.id for name in targets if isinstance(name, ast.Name)}
            is_limit = any(map(LIMIT.search, names - OPTIONS))
        elif isinstance(node, ast.Call) and node.args:
            value = node.args[0]
            is_limit = ast.unparse(node.func) == 'fixtures.Timeout'
        else:
            continue
        if is_limit and isinstance(value, ast.Constant):
            yield node.lineno


class TestLimits(testtools.TestCase):

    def test_factor(self):
        """Each limit is a multiple in whole seconds, rounded up."""
        for factor, seconds in (None, 2), ('1', 2), ('2.5', 3), ('10', 12):
            environment = dict(os.environ)
            environment.pop(patience.VARIABLE, None)
            if factor:
                environment[patience.VARIABLE] = factor
            printed = subprocess.run(
                [sys.executable, '-c', 'from tests import patience; '
                 'print(patience.seconds(1.2))'], cwd=ROOT, env=environment,
                capture_output=True, text=True, check=True).stdout
            self.assertEqual(seconds, int(printed))

    def test_variable(self):
        """The contributor page has it."""
        self.assertIn('* - ``%s``\n' % patience.VARIABLE, PAGE.read_text())

    def test_no_limit_is_a_number(self):
        """It would be right for the speed of one machine."""
        for folder in ('tests', 'benchmarks'):
            for path in sorted((ROOT / folder).rglob('*.py')):
                lines = numbers(ast.parse(path.read_text()))
                self.assertEqual([], list(lines), path)
