# SPDX-License-Identifier: Apache-2.0
"""Random faults while users work."""

import os
import sys

from tests.cloud.chaos import soak
from tests.cloud.integration import base
from tests.cloud.integration import tool
from tests.cloud import options

SECONDS = 'AGGREGATE_MIRROR_CHAOS_SECONDS'
# One and a half rounds, with about twenty faults on two cores; longer until
# each kind of fault has occurred.
SHORT = '90'
FEW = '30'


class TestChaos(base.TestCase):

    last = True
    foreign = {soak.FOREIGN: soak.FOREIGN}

    def assert_equal(self):
        # Chaos has started processes again.
        self.read_cloud(self.cloud.state.directory)
        super().assert_equal()

    def soak(self, *argv, seconds):
        """Run a soak; return its output and its counts.

        The output has every operation and the seed.
        """
        printed = tool.check(self, tool.call(
            '--directory', self.cloud.state.directory, 'chaos', '--seconds',
            seconds, *argv,
            seconds=tool.PATIENCE + 2 * soak.LONGEST * int(seconds)))
        counts = printed.split('\n\n')[-1]
        print(counts, file=sys.stderr, flush=True)
        return printed, dict(
            line.rsplit(None, 1) for line in counts.splitlines())

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
        _out, counts = self.soak(
            '--fault', 'worker', '--fault', 'kill', '--fault', 'pause',
            seconds=FEW)
        self.assertEqual('0', counts['left to the full sync'])
        self.assertLess(0, int(counts['faults']))
