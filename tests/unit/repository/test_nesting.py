# SPDX-License-Identifier: Apache-2.0
"""The check of how deep statements nest."""

import pathlib
import subprocess
import sys

import fixtures
import testtools

TOOL = pathlib.Path(__file__).parents[3] / 'tools' / 'nesting.py'
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


class TestNesting(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.module = pathlib.Path(self.directory, 'module.py')
        self.module.write_text(MODULE)

    def check(self, *arguments):
        """Run the check; return its exit status and what it lists."""
        process = subprocess.run(
            [sys.executable, TOOL, *arguments, self.directory],
            stdout=subprocess.PIPE, text=True)
        return process.returncode, process.stdout.splitlines()[2:]

    def test_limit_is_not_passed(self):
        """One of five statements is deep; modules and docstrings have none."""
        self.assertEqual((0, []), self.check('20', '--loops', '1'))

    def test_deep_statements_are_listed(self):
        self.assertEqual((1, ['%s:12: 5 deep' % self.module]),
                         self.check('19.9', '--loops', '1'))

    def test_second_for_of_a_comprehension_is_listed(self):
        self.assertEqual(
            (1, ['%s:13: two "for"' % self.module]), self.check('20'))
