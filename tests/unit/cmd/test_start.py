# SPDX-License-Identifier: Apache-2.0
"""The start of the commands."""

import signal
import subprocess
import sys
import textwrap

import testtools


class TestStart(testtools.TestCase):

    def test_interrupted_before_it_began(self):
        """No traceback, and the exit status of an interrupt."""
        script = textwrap.dedent('''
            import importlib, signal, sys
            from nova_aggregate_mirror.cmd import start
            class Interrupted:
                def find_spec(self, *args):
                    signal.raise_signal(signal.SIGINT)
            sys.meta_path.insert(0, Interrupted())
            sys.exit(start.manage())
            ''')
        done = subprocess.run([sys.executable, '-c', script], text=True,
                              capture_output=True)
        self.assertEqual(128 + signal.SIGINT, done.returncode)
        self.assertEqual('Interrupted before anything was done\n', done.stderr)
