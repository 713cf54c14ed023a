# SPDX-License-Identifier: Apache-2.0
"""Selections of outages and of bad parts, measured with real processes."""

import subprocess
import sys

import testtools
from testtools import content

from tests.cloud import command
from tests.cloud import environment

TOOL = environment.TOP / 'tools' / 'cloud'
# Most of the time is spent waiting.
JOBS = '6'
PATIENCE = 900


class TestOutages(testtools.TestCase):

    def measure(self, *argv):
        """Run a command of the tool, which has to measure every line."""
        done = subprocess.run(
            [sys.executable, str(TOOL), *argv, '--jobs', JOBS],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=PATIENCE)
        if done.returncode == command.UNAVAILABLE:
            self.skipTest(done.stderr[-500:])
        self.addDetail('tool', content.text_content(
            done.stdout + done.stderr))
        self.assertEqual(0, done.returncode, 'see the details')
        measured, total = done.stdout.splitlines()[-1].split()[:3:2]
        self.assertEqual(total, measured)

    def test_pairs(self):
        """Every pair of party, fault, moment and call keeps the promise."""
        self.measure('outages', '--pairs')

    def test_parts(self):
        """No bad part delays a healthy host."""
        self.measure('parts', '--selection')
