# SPDX-License-Identifier: Apache-2.0
"""Random faults while users work."""

import os
import subprocess
import sys

from testtools import content

from tests.cloud.chaos import soak
from tests.cloud.integration import base
from tests.cloud import options

SECONDS = 'AGGREGATE_MIRROR_CHAOS_SECONDS'
# One and a half rounds, with about twenty faults on two cores; longer until
# each kind of fault has occurred.
SHORT = '90'
FEW = '30'
PATIENCE = 900


class TestChaos(base.TestCase):

    last = True
    foreign = {soak.FOREIGN: soak.FOREIGN}

    def assert_equal(self):
        # Chaos has started processes again.
        self.read_cloud(self.cloud.state.directory)
        super().assert_equal()

    def argv(self, *argv):
        """Return the command line of the tool for this cloud."""
        return [sys.executable, str(base.TOOL), '--directory',
                str(self.cloud.state.directory), *argv]

    def tool(self, *argv, seconds=0):
        """Run the tool."""
        return subprocess.run(
            self.argv(*argv), capture_output=True, text=True,
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

    def test_placement_is_nova_after_random_faults(self):
        """All answers are nova's, and every difference is repaired."""
        out, counts = self.soak(seconds=os.environ.get(SECONDS, SHORT))
        self.assertEqual('0', counts['differences'])
        self.assertLess(0, int(counts['operations']))
        for kind in options.FAULTS:
            self.assertIn('\n%s ' % kind, out)

    def test_journal_heals_alone(self):
        """With its database available, the journal repairs everything.

        Nova's own dependencies stay available too: no nova-api may die.
        """
        _out, counts = self.soak('--faults', 'worker,kill,pause', seconds=FEW)
        self.assertEqual('0', counts['left to the full sync'])
        self.assertLess(0, int(counts['faults']))
