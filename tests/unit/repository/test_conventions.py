# SPDX-License-Identifier: Apache-2.0
"""A convention that flake8 and mypy do not check."""

import ast
from collections import abc
import pathlib

import testtools

ROOT = pathlib.Path(__file__).parents[3]


class TestConventions(testtools.TestCase):

    def test_no_default_can_change(self):
        """A default value is one object for all calls of a process."""
        self.assertEqual([], [
            '%s:%d' % (path, default.lineno)
            for path in sorted((ROOT / 'nova_aggregate_mirror').rglob('*.py'))
            for default in _defaults(ast.parse(path.read_text()))
            if any(isinstance(node, (ast.Dict, ast.List, ast.Set))
                   for node in ast.walk(default))])


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
