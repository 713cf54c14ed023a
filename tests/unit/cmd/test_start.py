# SPDX-License-Identifier: Apache-2.0
"""The start of the commands."""

import importlib.metadata
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

    def start(self, *argv, missing='nova'):
        """Run the command without a package."""
        script = textwrap.dedent('''
            import sys
            from nova_aggregate_mirror.cmd import start
            class Missing:
                def find_spec(self, name, *args):
                    if name.partition('.')[0] == '%s':
                        raise ModuleNotFoundError(name, name=name)
            sys.meta_path.insert(0, Missing())
            sys.exit(start.manage())
            ''' % missing)
        return subprocess.run([sys.executable, '-c', script, *argv],
                              text=True, capture_output=True)

    def test_nova_is_not_installed(self):
        """One line says where to run it; the help says it, too."""
        for missing in 'nova', 'oslo_config':
            done = self.start('db', 'version', missing=missing)
            self.assertEqual((255, ''), (done.returncode, done.stdout))
            self.assertRegex(
                done.stderr, '^nova-aggregate-mirror-manage: the package %s '
                'is not installed in /.*: run it in nova-api.*\n$' % missing)
        done = self.start('--help')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertIn('The package nova is not installed', done.stdout)
        done = self.start('--version')
        self.assertEqual(
            (0, importlib.metadata.version('nova-aggregate-mirror') + '\n',
             ''), (done.returncode, done.stdout, done.stderr))

    def test_defect_of_this_package(self):
        """It has a traceback, and not the status of a result."""
        done = self.start('db', 'version', missing='nova_aggregate_mirror')
        self.assertIn('Traceback', done.stderr)
        self.assertEqual(255, done.returncode)
