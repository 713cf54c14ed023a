# SPDX-License-Identifier: Apache-2.0
"""Random faults while users work."""

import os

from tests.cloud.faults import soak
from tests.cloud.integration import base
from tests.cloud.integration import tool

# One and a half rounds, with about twenty faults on two cores; longer until
# each kind of fault has occurred.
SECONDS = os.environ.get('AGGREGATE_MIRROR_CHAOS_SECONDS', '90')


class TestChaos(base.TestCase):

    last = True
    foreign = soak.OTHERS

    def assert_equal(self):
        # Chaos has started processes again.
        self.read_cloud(self.cloud.state.directory)
        super().assert_equal()

    def soak(self, *rows, seconds):
        """Soak the cloud in random faults, some of each kind."""
        limit = tool.PATIENCE + 2 * soak.LONGEST * int(seconds)
        selected = ['--select=%s' % row for row in rows]
        tool.check(self, tool.call(
            '--directory', self.cloud.state.directory, 'faults', '--seconds',
            seconds, *selected, seconds=limit))

    def test_placement_is_nova_after_random_faults(self):
        """All answers are nova's, and every difference is repaired."""
        self.soak('chaos', seconds=SECONDS)

    def test_journal_heals_alone(self):
        """With its database available, the journal repairs everything.

        Nova's own dependencies stay available too: no nova-api may die.
        """
        self.soak('* worker-killed random', '* killed random',
                  '* paused random', seconds='30')
