# SPDX-License-Identifier: Apache-2.0
"""A private cloud under random faults while users work."""

import atexit
import os
import signal
import subprocess
import sys
import tempfile

import testtools
from testtools import content

from tests.cloud.chaos import soak
from tests.cloud import command
from tests.cloud import environment
from tests.cloud.integration import base
from tests.cloud.integration import leftovers
from tests.cloud import options
from tests.cloud import statefile

SECONDS = 'AGGREGATE_MIRROR_CHAOS_SECONDS'
# One and a half rounds, with about twenty faults on two cores; longer until
# each kind of fault has occurred.
SHORT = '90'
FEW = '30'
# A cloud starts in a minute or two; installing its packages may take as long.
PATIENCE = 900


class TestChaos(testtools.TestCase):

    # Its servers are killed: they must not be this machine's.
    directory = environment.TOP / '.cloud-chaos'
    up: 'subprocess.CompletedProcess[str] | None' = None

    def setUp(self):
        super().setUp()
        if TestChaos.up is None:
            atexit.register(_down)
            # A killed run may have left a cloud.
            _down()
            TestChaos.up = _tool('up', '--private', '--hosts', '3')
        if self.up.returncode == command.UNAVAILABLE:
            self.skipTest(self.up.stderr[-500:])
        self.assertEqual(0, self.up.returncode,
                         self.up.stdout[-2000:] + self.up.stderr[-5000:])

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        # Other tests use another cloud, and two clouds overload a machine.
        _down()

    def soak(self, *argv, seconds):
        """Run a soak; return its output and its counts.

        The output has every operation and the seed.
        """
        done = _tool('chaos', '--seconds', seconds, *argv,
                     seconds=2 * soak.LONGEST * int(seconds))
        self.addDetail('chaos', content.text_content(
            done.stdout + done.stderr))
        counted = done.stdout.split('\n\n')[-1]
        print(counted, file=sys.stderr, flush=True)
        self.assertEqual(0, done.returncode, 'see the details')
        return done.stdout, dict(
            line.rsplit(None, 1) for line in counted.splitlines())

    def test_placement_is_nova_after_random_faults(self):
        """All answers are nova's, and every difference is repaired."""
        out, counts = self.soak(seconds=os.environ.get(SECONDS, SHORT))
        self.assertEqual('0', counts['differences'])
        self.assertLess(0, int(counts['operations']))
        for kind in options.FAULTS:
            if kind.startswith('node-'):
                # This cloud has a single MariaDB.
                continue
            self.assertIn('\n%s ' % kind, out)

    def test_journal_heals_alone(self):
        """With its database available, the journal repairs everything.

        Nova's own dependencies stay available too: no nova-api may die.
        """
        _out, counts = self.soak('--faults', 'worker,kill,pause', seconds=FEW)
        self.assertEqual('0', counts['left to the full sync'])
        self.assertLess(0, int(counts['faults']))

    def start(self, errors):
        """Start a chaos run, and wait until it holds the cloud's lock."""
        running = subprocess.Popen(
            _argv('chaos', '--faults', 'kill,swallow'),
            stdout=subprocess.PIPE, stderr=errors, text=True)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.assertIn('Seed', running.stdout.readline())
        return running

    def test_interrupted_chaos_leaves_a_running_cloud(self):
        """Ctrl-C undoes the faults and deletes the aggregates."""
        with tempfile.TemporaryFile('w+') as errors:
            running = self.start(errors)
            second = _tool('chaos')
            _wait_for_fault(running)
            running.send_signal(signal.SIGINT)
            out, _none = running.communicate(timeout=PATIENCE)
            errors.seek(0)
            err = errors.read()
        self.assertEqual(130, running.returncode, out + err)
        self.assertIn('all processes of the cloud run', err)
        self.assertEqual(1, second.returncode)
        self.assertIn('another chaos run uses this cloud', second.stderr)
        self.assertEqual(0, _tool('status').returncode)
        listed = _tool('exec', 'openstack', 'aggregate', 'list', '-f', 'value')
        self.assertEqual(('', 0), (listed.stdout, listed.returncode))

    def test_stopped_cloud_leaves_nothing(self):
        """Down removes everything, including a chaos run and its processes.

        While the cloud ran, it was not reachable from other machines. This is
        the last test of the class: another one would start a new cloud.
        """
        there = leftovers.Footprint(statefile.State.read(self.directory))
        self.assertNotEqual([], there.processes)
        self.assertEqual([], there.reachable())
        self.assertNotEqual([], there.left())
        TestChaos.up = None
        with tempfile.TemporaryFile('w+') as errors:
            running = self.start(errors)
            _wait_for_fault(running)
            done = _tool('down')
            self.assertEqual(('', 0), (done.stderr, done.returncode))
            there.wait()
            self.assertEqual([], there.left())
            self.assertFalse(self.directory.exists())
            self.assertEqual(130, running.poll())
        self.assertIn('process %s\n' % running.pid, done.stdout)


def _wait_for_fault(chaos: 'subprocess.Popen[str]') -> None:
    # The progress line names a fault that has not ended.
    next(line for line in chaos.stdout if ' faults, ' in line)


def _argv(*argv: str) -> list[str]:
    return [sys.executable, str(base.TOOL), '--directory',
            str(TestChaos.directory), *argv]


def _tool(*argv: str, seconds: float = 0
          ) -> 'subprocess.CompletedProcess[str]':
    return subprocess.run(
        _argv(*argv), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=PATIENCE + seconds)


def _down() -> None:
    _tool('down')
