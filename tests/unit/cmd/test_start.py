# SPDX-License-Identifier: Apache-2.0
"""The start of the commands."""

import importlib.metadata
import signal
import subprocess
import sys
import textwrap

import testtools

from nova_aggregate_mirror.cmd import start


def run(script, *argv):
    return subprocess.run(
        [sys.executable, '-c', textwrap.dedent(script), *argv], text=True,
        capture_output=True)


class TestStart(testtools.TestCase):

    def test_interrupted_before_it_began(self):
        """No traceback, and the exit status of an interrupt."""
        done = run('''
            import importlib, signal, sys
            from nova_aggregate_mirror.cmd import start
            class Interrupted:
                def find_spec(self, *args):
                    signal.raise_signal(signal.SIGINT)
            # A shell lets what it starts in the background ignore it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.meta_path.insert(0, Interrupted())
            sys.exit(start.manage())
            ''')
        self.assertEqual(128 + signal.SIGINT, done.returncode)
        self.assertEqual('Interrupted before anything was done\n', done.stderr)

    def test_imports(self):
        """They are not interrupted to look for garbage."""
        done = run('''
            import gc, importlib, os, types
            from nova_aggregate_mirror.cmd import start
            def import_module(name):
                print(gc.isenabled(), os.environ['EVENTLET_NO_GREENDNS'])
                return types.SimpleNamespace(main=lambda: print(
                    gc.isenabled(), gc.get_freeze_count() > 0))
            importlib.import_module = import_module
            start.manage()
            ''')
        self.assertEqual('False yes\nTrue True\n', done.stdout, done.stderr)

    def start(self, *argv, program='manage', missing='nova'):
        """Run the command without a package."""
        return run('''
            import sys
            from nova_aggregate_mirror.cmd import start
            class Missing:
                def find_spec(self, name, *args):
                    if name.partition('.')[0] == '%s':
                        raise ModuleNotFoundError(name, name=name)
            sys.meta_path.insert(0, Missing())
            sys.exit(start.%s())
            ''' % (missing, program), *argv)

    def test_package_that_is_not_installed(self):
        """One line names it, and where to run it or what installs it."""
        in_nova, extra = ' in /.*: run it in nova-api.*', (
            '.*: install this package with its extra \\[nova\\]')
        for missing, program, arguments, step in (
                ('nova', 'manage', ['db', 'sync'], in_nova),
                ('oslo_config', 'manage', ['db', 'sync'], in_nova),
                *((name, 'manage', ['db', 'sync'], extra)
                  for name in start.EXTRA),
                ('prometheus_client', 'agent', [],
                 '.*: pip install prometheus-client')):
            done = self.start(*arguments, program=program, missing=missing)
            self.assertEqual((255, ''), (done.returncode, done.stdout))
            self.assertRegex(
                done.stderr, '^nova-aggregate-mirror-%s: the package %s is '
                'not installed%s\n$' % (program, missing, step))

    def test_help_without_nova(self):
        """It says so, too; the version needs no nova."""
        done = self.start('--help')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertIn('The package nova is not installed', done.stdout)
        done = self.start('--version')
        self.assertEqual(
            (0, importlib.metadata.version('nova-aggregate-mirror') + '\n',
             ''), (done.returncode, done.stdout, done.stderr))

    def test_defect_of_this_package(self):
        """It has a traceback, and not the status of a result."""
        done = self.start('db', 'sync', missing='nova_aggregate_mirror')
        self.assertIn('Traceback', done.stderr)
        self.assertEqual(255, done.returncode)
