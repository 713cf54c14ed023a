# SPDX-License-Identifier: Apache-2.0
"""Outages and bad parts, measured with real processes."""

import os

import testtools

from tests.cloud.integration import tool
from tests import patience

# Most of the time is spent waiting.
JOBS = '6'
LONGEST = patience.seconds(3600)
# The limits of bad parts hold for one row at a time, on a machine that does
# nothing else. Who waits for a bad part waits much longer.
BUSY = 2.0


class TestFaults(testtools.TestCase):

    def measure(self, selection, **limits):
        """Measure a selection of rows, each of them."""
        printed = tool.check(self, tool.call(
            'faults', '--select', selection, '--jobs', JOBS, **limits))
        measured, total = printed.splitlines()[-1].split()[:3:2]
        self.assertEqual(total, measured)

    def test_pairs(self):
        """Every pair of party, fault, moment and call keeps the promise."""
        self.measure('pairs')

    @testtools.skipUnless(os.environ.get('AGGREGATE_MIRROR_TEST_ALL'),
                          'it measures time, and runs with ./tools/test all')
    def test_parts(self):
        """No bad part delays a healthy host."""
        self.measure('parts', seconds=LONGEST, factor=BUSY * patience.FACTOR)
