# SPDX-License-Identifier: Apache-2.0
"""The installed scripts, which the other tests do not start."""

import subprocess

import testtools

from tests import commands


class TestScripts(testtools.TestCase):

    def test_help(self):
        """Each script prints its usage, and no warning of a library."""
        for module, name in commands.PROGRAMS.items():
            done = subprocess.run(
                [commands.script(module), '--help'], capture_output=True,
                text=True, timeout=commands.TIMEOUT)
            self.assertEqual((0, ''), (done.returncode, done.stderr), name)
            self.assertIn('usage: ' + name, done.stdout)
