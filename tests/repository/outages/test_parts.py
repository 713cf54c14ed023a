# SPDX-License-Identifier: Apache-2.0
"""A selection of bad parts, and how soon healthy hosts are mirrored."""

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


class TestParts(testtools.TestCase):

    def test_selection(self):
        """No bad part delays a healthy host."""
        done = subprocess.run(
            [sys.executable, str(TOOL), 'parts', '--selection', '--jobs',
             JOBS], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE)
        if done.returncode == command.UNAVAILABLE:
            self.skipTest(done.stderr[-500:])
        self.addDetail('parts', content.text_content(
            done.stdout + done.stderr))
        self.assertEqual(0, done.returncode, 'see the details')
        measured, total = done.stdout.splitlines()[-1].split()[:3:2]
        self.assertEqual(total, measured)
