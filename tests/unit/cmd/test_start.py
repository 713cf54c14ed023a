# SPDX-License-Identifier: Apache-2.0
"""The start of the commands."""

import importlib.metadata
import signal
import subprocess
import sys
import textwrap

import testtools

from nova_aggregate_mirror.cmd import start


class TestStart(testtools.TestCase):

    def test_interrupted_before_it_began(self):
        """No traceback, and the exit status of an interrupt."""
        script = textwrap.dedent('''
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
        done = subprocess.run([sys.executable, '-c', script], text=True,
                              capture_output=True)
        self.assertEqual(128 + signal.SIGINT, done.returncode)
        self.assertEqual('Interrupted before anything was done\n', done.stderr)

    def test_imports(self):
        """They are not interrupted to look for garbage."""
        script = textwrap.dedent('''
            import gc, importlib, os, types
            from nova_aggregate_mirror.cmd import start
            def import_module(name):
                print(gc.isenabled(), os.environ['EVENTLET_NO_GREENDNS'])
                return types.SimpleNamespace(main=lambda: print(
                    gc.isenabled(), gc.get_freeze_count() > 0))
            importlib.import_module = import_module
            start.manage()
            ''')
        done = subprocess.run([sys.executable, '-c', script], text=True,
                              capture_output=True)
        self.assertEqual('False yes\nTrue True\n', done.stdout, done.stderr)

    def start(self, *argv, program='manage', missing='nova'):
        """Run the command without a package."""
        script = textwrap.dedent('''
            import sys
            from nova_aggregate_mirror.cmd import start
            class Missing:
                def find_spec(self, name, *args):
                    if name.partition('.')[0] == '%s':
                        raise ModuleNotFoundError(name, name=name)
            sys.meta_path.insert(0, Missing())
            sys.exit(start.%s())
            ''' % (missing, program))
        return subprocess.run([sys.executable, '-c', script, *argv],
                              text=True, capture_output=True)

    def test_nova_is_not_installed(self):
        """One line says where to run it; the help says it, too."""
        for missing in 'nova', 'oslo_config':
            done = self.start('db', 'sync', missing=missing)
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

    def test_package_of_the_agent_alone(self):
        """It is named with the command that installs it."""
        done = self.start(program='agent', missing='prometheus_client')
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        self.assertRegex(
            done.stderr, '^nova-aggregate-mirror-agent: the package '
            'prometheus_client is not .*: pip install prometheus-client\n$')

    def test_package_of_the_extra_nova(self):
        """A part that is started without it names the extra."""
        for missing in start.EXTRA:
            done = self.start('db', 'sync', missing=missing)
            self.assertEqual((255, ''), (done.returncode, done.stdout))
            self.assertRegex(
                done.stderr, '^nova-aggregate-mirror-manage: the package %s '
                'is not .*: install this package with its extra \\[nova\\]\n$'
                % missing)

    def test_defect_of_this_package(self):
        """It has a traceback, and not the status of a result."""
        done = self.start('db', 'sync', missing='nova_aggregate_mirror')
        self.assertIn('Traceback', done.stderr)
        self.assertEqual(255, done.returncode)
