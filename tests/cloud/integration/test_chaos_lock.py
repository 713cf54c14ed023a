# SPDX-License-Identifier: Apache-2.0
"""The lock that ends a chaos run before its cloud is removed."""

import pathlib
import subprocess
import sys

import fixtures
import psutil
import testtools

from tests.cloud.chaos import lock
from tests.cloud import environment
from tests.cloud import processes

# A chaos run with a daemon in its own session.
CHAOS = """
import pathlib, signal, subprocess, sys, time
from tests.cloud.chaos import lock
if sys.argv[2] == 'deaf':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with lock.hold(pathlib.Path(sys.argv[1])):
    daemon = subprocess.Popen(['sleep', '600'], start_new_session=True)
    print(daemon.pid, flush=True)
    time.sleep(600)
"""


class TestTake(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.lines = []

    def wait_a_second(self, *limits):
        """Shorten time limits for events that never happen in the test."""
        for name in limits:
            self.useFixture(fixtures.MonkeyPatch(
                'tests.cloud.chaos.lock.%s' % name, 1))

    def chaos(self, kind):
        """Start a process that holds the lock; return it and its daemon."""
        running = subprocess.Popen(
            [sys.executable, '-c', CHAOS, str(self.folder), kind],
            stdout=subprocess.PIPE, text=True, cwd=environment.TOP)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        daemon = psutil.Process(int(running.stdout.readline()))
        self.addCleanup(lambda: daemon.is_running() and daemon.kill())
        return running, daemon

    def take(self):
        return lock.take(self.folder, self.lines.append)

    def test_without_chaos(self):
        """Without a chaos run nothing is printed, and no run can begin."""
        with self.take():
            error = self.assertRaises(
                processes.CloudError, lock.hold(self.folder).__enter__)
        self.assertIn('another run', str(error))
        self.assertEqual([], self.lines)

    def test_run_is_interrupted(self):
        """Its daemons stay: they are recorded in the cloud's state."""
        chaos, daemon = self.chaos('well')
        with self.take():
            self.assertEqual(-15, chaos.wait(timeout=10))
        self.assertTrue(daemon.is_running())
        said, = self.lines
        self.assertIn('process %s' % chaos.pid, said)

    def test_run_that_ignores_sigterm_is_killed(self):
        """Its daemons are killed too: they may not be recorded yet."""
        chaos, daemon = self.chaos('deaf')
        self.wait_a_second('ENDS_WITHIN')
        with self.take():
            self.assertEqual(-9, chaos.wait(timeout=10))
        daemon.wait(timeout=10)
        self.assertIn('Killing it', self.lines[1])

    def test_another_process_with_its_pid_is_not_killed(self):
        """A recorded pid that now belongs to another process is not killed."""
        chaos, _daemon = self.chaos('well')
        self.wait_a_second('ENDS_WITHIN', 'DIES_WITHIN')
        number, created = (self.folder / lock.NAME).read_text().split()
        (self.folder / lock.NAME).write_text(
            '%s %s\n' % (number, float(created) - 100))
        self.assertRaises(processes.CloudError, self.take().__enter__)
        self.assertIsNone(chaos.poll())
        self.assertEqual([], self.lines)
