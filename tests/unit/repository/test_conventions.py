# SPDX-License-Identifier: Apache-2.0
"""Conventions that flake8 and mypy do not check."""

import ast
from collections import abc
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / 'nova_aggregate_mirror'


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
