# SPDX-License-Identifier: Apache-2.0
"""The page of statements names tests that exist."""

import ast
import pathlib
import re

import testtools

TESTS = pathlib.Path(__file__).parents[2]
PAGE = TESTS.parent / 'doc' / 'source' / 'contributor' / 'specifications.rst'


def known():
    """Return the names of all modules, classes and tests."""
    found = set()
    for path in TESTS.glob('**/test_*.py'):
        found.add(path.stem)
        for one in ast.parse(path.read_text()).body:
            if isinstance(one, ast.ClassDef):
                found.add('%s.%s' % (path.stem, one.name))
                found |= {'%s.%s.%s' % (path.stem, one.name, each.name)
                          for each in one.body
                          if isinstance(each, ast.FunctionDef)}
    return found


class TestSpecificationsPage(testtools.TestCase):

    def test_names(self):
        named = re.findall(r'``(test_\w+[\w.]*)``', PAGE.read_text())
        self.assertGreater(len(named), 40)
        self.assertEqual(set(), set(named) - known())
