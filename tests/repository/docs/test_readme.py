# SPDX-License-Identifier: Apache-2.0
"""README's first command works; its second command runs these tests."""

import re
import subprocess
import unittest

from tests.repository.docs import shell


class TestReadme(unittest.TestCase):

    def test_the_demonstration(self):
        """An outage, a crash and an explanation, with real processes."""
        readme = (shell.ROOT / 'README.rst').read_text()
        command, = re.findall(r'^Try it::\n\n    (.+)', readme, re.MULTILINE)
        # On SIGINT, unlike SIGKILL, it stops what it has started.
        played = subprocess.run(
            ['timeout', '--signal=INT', str(shell.TIMEOUT), 'bash', '-c',
             command], cwd=shell.ROOT, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, played.returncode, played.stdout)
        self.assertIn('Every expectation held', played.stdout)
