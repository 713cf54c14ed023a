# SPDX-License-Identifier: Apache-2.0
"""The commands of tools/cloud, run by tests."""

import os
import subprocess
import sys

import testtools
from testtools import content

from tests.cloud import command
from tests.cloud import environment
from tests import patience

PATIENCE = patience.seconds(900)


def call(*argv: object, seconds: float = PATIENCE,
         factor: float = patience.FACTOR
         ) -> 'subprocess.CompletedProcess[str]':
    """Run a command line to its end, with limits multiplied by a factor."""
    return subprocess.run(
        [sys.executable, environment.TOP / 'tools' / 'cloud', *map(str, argv)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=seconds, env={**os.environ, patience.VARIABLE: str(factor)})


def check(test: testtools.TestCase,
          ended: 'subprocess.CompletedProcess[str]') -> str:
    """Check that a command has succeeded, or skip; return its output."""
    if ended.returncode == command.UNAVAILABLE:
        test.skipTest(ended.stderr[-500:])
    test.addDetail('tools/cloud', content.text_content(
        ended.stdout + ended.stderr))
    test.assertEqual(0, ended.returncode, 'see the details')
    return ended.stdout
