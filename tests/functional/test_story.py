# SPDX-License-Identifier: Apache-2.0
"""The story of tools/demo, with another nova than the demonstration's."""

import os
import pathlib
import subprocess
import sys
import tempfile

import testtools
from testtools import content
from testtools import content_type

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 600
"""A story is long: about twenty commands, each in its own process."""


class TestStory(testtools.TestCase):

    @testtools.skipUnless(
        os.environ.get('AGGREGATE_MIRROR_TEST_STORY') == '1',
        'it runs with ./tools/test releases, and with ./tools/test all')
    def test_every_expectation_holds(self):
        """Outages, crashes and multi-node hosts, with real processes."""
        with tempfile.TemporaryFile('w+') as output:
            self.addDetail('story', content.Content(
                content_type.UTF8_TEXT, lambda: [text.encode()]))
            text = ''
            try:
                played = subprocess.run(
                    [sys.executable, '-m', 'tests.cloud.demo.story'], cwd=TOP,
                    stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, timeout=SECONDS)
            finally:
                output.seek(0)
                text = output.read()
        self.assertEqual(0, played.returncode)
        self.assertIn('Every expectation held', text)
