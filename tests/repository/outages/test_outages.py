# SPDX-License-Identifier: Apache-2.0
"""Selections of outages and of bad parts, measured with real processes."""

import testtools

from tests.cloud.integration import tool

# Most of the time is spent waiting.
JOBS = '6'


class TestOutages(testtools.TestCase):

    def measure(self, *argv):
        """Run a command of the tool, which has to measure every line."""
        printed = tool.check(self, tool.call(*argv, '--jobs', JOBS))
        measured, total = printed.splitlines()[-1].split()[:3:2]
        self.assertEqual(total, measured)

    def test_pairs(self):
        """Every pair of party, fault, moment and call keeps the promise."""
        self.measure('outages', '--pairs')

    def test_parts(self):
        """No bad part delays a healthy host."""
        self.measure('parts', '--selection')
