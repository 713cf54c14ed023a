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
GALERA = 'AGGREGATE_MIRROR_GALERA_SECONDS'
NODE = 'node-'
# One and a half rounds, with about twenty faults on two cores; longer until
# each kind of fault has occurred.
SHORT = '90'
FEW = '30'
# A cloud starts in a minute or two; installing its packages may take as long.
PATIENCE = 900


class ChaosTest(testtools.TestCase):
    """A cloud of its own for all tests of a class."""

    # Its servers are killed: they must not be this machine's.
    directory = environment.TOP / '.cloud-chaos'
    flags: tuple[str, ...] = ('--private', '--hosts', '3')
    up: 'subprocess.CompletedProcess[str] | None' = None

    def setUp(self):
        super().setUp()
        cls = type(self)
        if cls.up is None:
            atexit.register(cls.tool, 'down')
            # A killed run may have left a cloud.
            cls.tool('down')
            cls.up = cls.tool('up', *self.flags)
        if self.up.returncode == command.UNAVAILABLE:
            self.skipTest(self.up.stderr[-500:])
        self.assertEqual(0, self.up.returncode,
                         self.up.stdout[-2000:] + self.up.stderr[-5000:])

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        # Other tests use another cloud, and two clouds overload a machine.
        cls.tool('down')

    @classmethod
    def argv(cls, *argv):
        """Return the command line of the tool for this cloud."""
        return [sys.executable, str(base.TOOL), '--directory',
                str(cls.directory), *argv]

    @classmethod
    def tool(cls, *argv, seconds=0):
        """Run the tool."""
        return subprocess.run(
            cls.argv(*argv), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE + seconds)

    def soak(self, *argv, seconds):
        """Run a soak; return its output and its counts.

        The output has every operation and the seed.
        """
        done = self.tool('chaos', '--seconds', seconds, *argv,
                         seconds=2 * soak.LONGEST * int(seconds))
        self.addDetail('chaos', content.text_content(
            done.stdout + done.stderr))
        counted = done.stdout.split('\n\n')[-1]
        print(counted, file=sys.stderr, flush=True)
        self.assertEqual(0, done.returncode, 'see the details')
        return done.stdout, dict(
            line.rsplit(None, 1) for line in counted.splitlines())

    def check(self, seconds, kinds):
        """Assert that each kind of fault occurs, and that all is repaired."""
        out, counts = self.soak(seconds=seconds)
        self.assertEqual('0', counts['differences'])
        self.assertLess(0, int(counts['operations']))
        for kind in kinds:
            self.assertIn('\n%s ' % kind, out)


class TestChaos(ChaosTest):

    def test_placement_is_nova_after_random_faults(self):
        """All answers are nova's, and every difference is repaired."""
        self.check(os.environ.get(SECONDS, SHORT), [
            kind for kind in options.FAULTS if not kind.startswith(NODE)])

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
            self.argv('chaos', '--faults', 'kill,swallow'),
            stdout=subprocess.PIPE, stderr=errors, text=True)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.assertIn('Seed', running.stdout.readline())
        return running

    def test_interrupted_chaos_leaves_a_running_cloud(self):
        """Ctrl-C undoes the faults and deletes the aggregates."""
        with tempfile.TemporaryFile('w+') as errors:
            running = self.start(errors)
            second = self.tool('chaos')
            _wait_for_fault(running)
            running.send_signal(signal.SIGINT)
            out, _none = running.communicate(timeout=PATIENCE)
            errors.seek(0)
            err = errors.read()
        self.assertEqual(130, running.returncode, out + err)
        self.assertIn('all processes of the cloud run', err)
        self.assertEqual(1, second.returncode)
        self.assertIn('another run uses this cloud', second.stderr)
        self.assertEqual(0, self.tool('status').returncode)
        listed = self.tool(
            'exec', 'openstack', 'aggregate', 'list', '-f', 'value')
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
            done = self.tool('down')
            self.assertEqual(('', 0), (done.stderr, done.returncode))
            there.wait()
            self.assertEqual([], there.left())
            self.assertFalse(self.directory.exists())
            self.assertEqual(130, running.poll())
        self.assertIn('process %s\n' % running.pid, done.stdout)


@testtools.skipUnless(
    os.environ.get(GALERA), 'takes ten minutes: set %s to seconds' % GALERA)
class TestGalera(ChaosTest):

    directory = environment.TOP / '.cloud-galera'
    flags = (*ChaosTest.flags, '--galera')

    def test_placement_is_nova_after_faults_of_nodes(self):
        """Each way to leave the cluster and to join it again is repaired."""
        self.check(os.environ[GALERA], [
            kind for kind in options.FAULTS if kind != 'mariadb'])


def _wait_for_fault(chaos: 'subprocess.Popen[str]') -> None:
    # The progress line names a fault that has not ended.
    next(line for line in chaos.stdout if ' faults, ' in line)
