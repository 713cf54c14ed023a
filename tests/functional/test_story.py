# SPDX-License-Identifier: Apache-2.0
"""The story of tools/demo, with the nova of these tests."""

import pathlib
import subprocess
import sys

import testtools
from testtools import content

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 600
"""A story is long: some twenty commands, each a process."""


class TestStory(testtools.TestCase):

    def test_every_expectation_holds(self):
        """Outages, crashes and hosts of several nodes, by real processes."""
        played = subprocess.run(
            [sys.executable, '-m', 'tests.cloud.story'], cwd=TOP,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        self.addDetail('story', content.text_content(played.stdout))
        self.assertEqual(0, played.returncode)
        self.assertIn('Every expectation held', played.stdout)
