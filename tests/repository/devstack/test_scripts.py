# SPDX-License-Identifier: Apache-2.0
"""Checks of every shell script of this repository."""

import pathlib
import subprocess
import sys

import testtools

ROOT = pathlib.Path(__file__).parents[3]
FOLDERS = ('.ci', 'devstack', 'tests', 'tools')
# As DevStack itself is checked: lines may be long there.
BASHATE = ('-i', 'E006', '-e', 'E005,E042')
# Sourced files, and the variables shared with them, are not here but in
# DevStack.
ELSEWHERE = 'SC1090,SC1091,SC2034,SC2153,SC2154'


def scripts() -> list[str]:
    """Return the paths of the files that bash runs."""
    found = []
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob('*'):
            # Running tests create and delete compiled files.
            if '__pycache__' not in path.parts and path.is_file():
                with path.open('rb') as file:
                    first = file.readline()
                if first.startswith(b'#!') and first.endswith(b'bash\n'):
                    found.append(str(path))
    return sorted(found)


class TestScripts(testtools.TestCase):

    def check(self, *command):
        self.assertGreater(len(scripts()), 5)
        done = subprocess.run(
            [*command, *scripts()], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)

    def tool(self, name):
        """Return the path of a program of this Python environment."""
        return str(pathlib.Path(sys.executable).with_name(name))

    def test_bashate(self):
        self.check(self.tool('bashate'), *BASHATE)

    def test_shellcheck(self):
        self.check(self.tool('shellcheck'), '--exclude', ELSEWHERE)
