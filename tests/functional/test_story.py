# SPDX-License-Identifier: Apache-2.0
"""The story of tools/demo, with the nova of the test environment."""

import pathlib
import subprocess
import sys
import tempfile

import testtools
from testtools import content
from testtools import content_type

from tests.cloud import clients

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 600
"""A story is long: about twenty commands, each in its own process."""


class TestStory(testtools.TestCase):

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


class TestClients(testtools.TestCase):

    def test_driver_that_is_not_installed(self):
        """The demonstration has SQLite only; this environment has more."""
        name = 'nova-aggregate-mirror-manage'
        client = clients.Client(
            pathlib.Path(sys.executable), [*clients.PROGRAMS[name], 'no_such'])
        self.addCleanup(client.close)
        status, out, err = client.run([name, '--version'], {}, TOP)
        self.assertEqual(0, status, err)
        self.assertNotEqual('', out)
