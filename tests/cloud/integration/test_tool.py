# SPDX-License-Identifier: Apache-2.0
"""The output and the exit statuses of tools/cloud."""

import pathlib
import signal
import subprocess
import sys

import fixtures

from tests.cloud.integration import base
from tests.cloud.integration import leftovers
from tests.cloud import statefile


class TestTool(base.TestCase):

    def tool(self, *argv, directory=None):
        """Run tools/cloud on the cloud of the tests."""
        return subprocess.run(
            [sys.executable, str(base.TOOL), '--directory',
             str(directory or self.cloud.state.directory), *argv],
            capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def test_second_up_reports_that_it_is_up(self):
        """A second up succeeds and reports that the cloud is up."""
        done = self.tool('up')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('The cloud is up already', done.stdout)

    def test_status_shows_dead_processes(self):
        """The exit status and the table both show a dead process."""
        self.assertEqual(0, self.tool('status').returncode)
        self.addCleanup(self.cloud.start, 'agent-2')
        self.cloud.process('agent-2').kill()
        done = self.tool('status')
        self.assertEqual(1, done.returncode)
        line, = (line for line in done.stdout.splitlines()
                 if line.startswith('agent-2 '))
        self.assertEqual('NO', line.split()[3])
        self.assertEqual(1, done.stdout.count(' NO '))

    def test_exec_returns_the_status_of_its_command(self):
        """The command runs as administrator, and exec returns its status."""
        done = self.tool('exec', 'openstack', 'token', 'issue', '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(3, self.tool(
            'exec', 'sh', '-c', 'exit 3').returncode)
        self.assertEqual(127, self.tool('exec', 'no-such').returncode)

    def test_interrupted_up_leaves_nothing(self):
        """Ctrl-C stops all processes and removes everything but the logs."""
        folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'new')
        starting = subprocess.Popen(
            [sys.executable, str(base.TOOL), '--directory', str(folder),
             'up'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(self.tool, 'down', directory=folder)
        # Keystone runs, and the other services create their tables.
        next(line for line in starting.stdout if 'Creating the tables' in line)
        self.wait_until(lambda: 'keystone' in {
            each.name for each in statefile.State.read(folder).processes},
            'keystone has started')
        there = leftovers.Footprint(statefile.State.read(folder))
        self.assertNotEqual([], there.left())
        starting.send_signal(signal.SIGINT)
        _out, err = starting.communicate()
        self.assertEqual(130, starting.returncode, err)
        self.assertIn('all started processes are stopped', err)
        self.assertEqual(['log'], [path.name for path in folder.iterdir()])
        there.wait()
        self.assertEqual([], there.left())

    def test_wrong_command_lines(self):
        """Invalid command lines are refused before any action."""
        for argv in ([], ['sideways'], ['up', '--hosts', '2'], ['exec'],
                     ['up', '--hosts', 'many'],
                     ['exec', '--controller', '3', 'true'],
                     ['chaos', '--seconds', '0'],
                     ['chaos', '--faults', 'kill,sideways'],
                     ['outages', '--party', 'everybody'],
                     ['outages', '--jobs', '0'],
                     ['outages', '--pairs', '--write'],
                     ['parts', '--only', 'everything'],
                     ['parts', '--selection', '--write']):
            done = self.tool(*argv)
            self.assertEqual(2, done.returncode, argv)
            self.assertIn('usage:', done.stderr)

    def test_foreign_directory_is_left_alone(self):
        """A directory with other files is refused and unchanged."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'mine').touch()
        done = self.tool('up', directory=folder)
        self.assertEqual(1, done.returncode)
        self.assertIn('mine', done.stderr)
        self.assertTrue((folder / 'mine').exists())
