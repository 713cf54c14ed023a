# SPDX-License-Identifier: Apache-2.0
"""Conventions that flake8 and mypy do not check."""

import ast
from collections import abc
import itertools
import os
import pathlib
import re
import subprocess
import sys

import fixtures
import testtools

from tests import patience

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / 'nova_aggregate_mirror'
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'index.rst'
LIMIT = re.compile('PATIENCE|TIMEOUT|WITHIN|FOR_EVER')
# Of what is tested: options of nova and of a database server.
OPTIONS = {'CELL_TIMEOUT', 'INLINE_TIMEOUT', 'LOCK_TIMEOUT'}
MODULE = '''\
LIMITS = [f(g(h(i(j(k(0))))))]

def shallow(rows):
    """f(g(h(i(j(0)))))"""
    a = f(g(h(i(0))))
    for row in rows:
        a += f(row)
    return a

def deep(rows):
    def inner():
        return -f([rows[g(0)]])
    return {len(row) for row in rows for _ in range(3)}
'''


class TestConventions(testtools.TestCase):

    def test_no_default_can_change(self):
        """A default value is one object for all calls of a process."""
        for path in PACKAGE.rglob('*.py'):
            for default in _defaults(ast.parse(path.read_text())):
                for node in ast.walk(default):
                    self.assertNotIsInstance(
                        node, (ast.Dict, ast.List, ast.Set),
                        '%s:%d' % (path, default.lineno))

    def test_next_step_has_one_name(self):
        """What to do next is a step, for programs, too."""
        self.assertEqual([], [
            str(path) for path in sorted(PACKAGE.rglob('*.py'))
            if re.search(r'\b(advice|remedy|cure)\b', path.read_text())])

    def test_class_decides(self):
        """A property of our classes answers, and no list of some of them."""
        ours: set[str] = set()
        lists: dict[str, ast.Tuple] = {}
        tests: dict[str, ast.expr] = {}
        for path in sorted(PACKAGE.rglob('*.py')):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    ours.add(node.name)
                elif _tests_class(node):
                    place = '%s:%d:%d' % (path, node.lineno, node.col_offset)
                    tests[place] = node.args[1]
                elif isinstance(node, ast.Assign) and isinstance(
                        node.value, ast.Tuple):
                    names = map(ast.unparse, node.targets)
                    lists |= dict.fromkeys(names, node.value)
        self.assertEqual([], [place for place, classes in tests.items()
                              if ours.intersection(_listed(classes, lists))])


def _tests_class(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in (
        'isinstance', 'issubclass')


def _listed(classes: ast.expr, lists: dict[str, ast.Tuple]
            ) -> abc.Iterator[str]:
    """Yield the names in a tuple that is inline, or has a name."""
    if not isinstance(classes, ast.Tuple):
        name = ast.unparse(classes).rpartition('.')[2]
        if name not in lists:
            return
        classes = lists[name]
    for element in classes.elts:
        if isinstance(element, ast.Starred):
            yield from _listed(element.value, lists)
        else:
            yield ast.unparse(element).rpartition('.')[2]


def _defaults(module: ast.Module) -> abc.Iterator[ast.expr]:
    """Yield the defaults of parameters, fields and context variables."""
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from node.args.defaults
            yield from filter(None, node.args.kw_defaults)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and field.value:
                    keywords = getattr(field.value, 'keywords', ())
                    if 'default_factory' not in {
                            keyword.arg for keyword in keywords}:
                        yield field.value
        elif isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords
                        if keyword.arg == 'default'
                        and ast.unparse(node.func).endswith('ContextVar'))


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


class TestNesting(testtools.TestCase):

    def test_what_passes_a_limit_is_listed(self):
        """One of five statements is deep; modules and docstrings have none."""
        directory = self.useFixture(fixtures.TempDir()).path
        module = pathlib.Path(directory, 'module.py')
        module.write_text(MODULE)
        for arguments, *expected in (
                (['20', '--loops', '1'], 0),
                (['19.9', '--loops', '1'], 1, '%s:12: 5 deep' % module),
                (['20'], 1, '%s:13: two "for"' % module)):
            process = subprocess.run(
                [sys.executable, ROOT / 'tools/nesting.py', *arguments,
                 directory], stdout=subprocess.PIPE, text=True)
            self.assertEqual(expected, [
                process.returncode, *process.stdout.splitlines()[2:]])
