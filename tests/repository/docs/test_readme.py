# SPDX-License-Identifier: Apache-2.0
"""README's demonstration works; the command below it runs these tests."""

import subprocess
import unittest

from tests.repository.docs import page
from tests.repository.docs import shell


class TestReadme(unittest.TestCase):

    def test_the_demonstration(self):
        """An outage, a crash and an explanation, with real processes."""
        command = page.readme('Try it in six minutes').commands[0]
        # On SIGINT, unlike SIGKILL, it stops what it has started.
        played = subprocess.run(
            ['timeout', '--signal=INT', str(shell.TIMEOUT), 'bash', '-c',
             command], cwd=shell.ROOT, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, played.returncode, played.stdout)
        self.assertIn('Every expectation held', played.stdout)
