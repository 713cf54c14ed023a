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
                [sys.executable, TOOL, *arguments, directory],
                stdout=subprocess.PIPE, text=True)
            self.assertEqual(expected, [
                process.returncode, *process.stdout.splitlines()[2:]])
