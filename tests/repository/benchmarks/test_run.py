# SPDX-License-Identifier: Apache-2.0
"""A run of benchmarks/run at the smallest sizes."""

import pathlib
import subprocess
import sys

import fixtures
import testtools
from testtools import content

from benchmarks import parts

TOP = pathlib.Path(__file__).resolve().parents[3]
UNAVAILABLE = 3
# The others are these at other sizes.
PARTS = [part for part in parts.PARTS if not part.name.startswith('sync-')]


class TestRun(testtools.TestCase):

    def test_quick_report_is_whole(self):
        """The report has every part, and describes the machine."""
        report = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'report.txt')
        done = subprocess.run(
            [sys.executable, str(TOP / 'benchmarks/run'), '--quick',
             '--write', str(report), '--parts',
             *(part.name for part in PARTS)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True)
        self.addDetail('run', content.text_content(done.stdout + done.stderr))
        if done.returncode == UNAVAILABLE:
            self.skipTest(done.stderr[-500:])
        self.assertEqual(0, done.returncode)
        text = report.read_text()
        for title in ('processor', 'cores', 'kernel', 'database',
                      *(part.title for part in PARTS)):
            self.assertIn(title, text)
