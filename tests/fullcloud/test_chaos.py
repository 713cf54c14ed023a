# SPDX-License-Identifier: Apache-2.0
"""A private cloud whose parts fail at random, while users work."""

import atexit
import functools
import os
import pathlib
import signal
import subprocess
import sys

import testtools
from testtools import content

from tests.fullcloud import base
from tests.fullcloud import command

SECONDS = 'AGGREGATE_MIRROR_CHAOS_SECONDS'
# Enough for about ten faults, on two cores.
SHORT = '40'


class TestChaos(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory, reason = _directory()
        if reason:
            self.skipTest(reason)

    def test_placement_is_nova_after_random_faults(self):
        """Every answer is nova's, and what went wrong is healed.

        The output says what was done, and with which seed.
        """
        done = _tool(self.directory, 'chaos', '--seconds',
                     os.environ.get(SECONDS, SHORT))
        self.addDetail('chaos', content.text_content(
            done.stdout + done.stderr))
        self.assertEqual(0, done.returncode, 'see the details')
        counts = dict(line.rsplit(None, 1)
                      for line in done.stdout.split('\n\n')[-1].splitlines())
        self.assertEqual('0', counts['differences'])
        self.assertLess(0, int(counts['operations']))
        self.assertLess(0, int(counts['faults']))

    def test_interrupted_chaos_leaves_a_whole_cloud(self):
        """Ctrl-C undoes the faults, and deletes the aggregates."""
        running = subprocess.Popen(
            [sys.executable, str(base.TOOL), '--directory',
             str(self.directory), 'chaos', '--faults', 'kill,swallow'],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        for line in running.stdout:
            # A fault that has not ended is named.
            if ' faults, ' in line:
                running.send_signal(signal.SIGINT)
                break
        out, err = running.communicate()
        self.assertEqual(130, running.returncode, out + err)
        self.assertIn('the cloud is whole', err)
        self.assertEqual(0, _tool(self.directory, 'status').returncode)
        listed = _tool(self.directory, 'exec', 'openstack', 'aggregate',
                       'list', '-f', 'value')
        self.assertEqual(('', 0), (listed.stdout, listed.returncode))


def _tool(directory: pathlib.Path, *argv: str
          ) -> 'subprocess.CompletedProcess[str]':
    return subprocess.run(
        [sys.executable, str(base.TOOL), '--directory', str(directory),
         *argv], capture_output=True, text=True, stdin=subprocess.DEVNULL)


@functools.cache
def _directory() -> tuple[pathlib.Path, str]:
    """Where the cloud is, or why there is none.

    :raises AssertionError: when it does not start, with what it said
    """
    directory = base.TOP / '.cloud-chaos'
    # What a run that was killed has left.
    _tool(directory, 'down')
    atexit.register(_tool, directory, 'down')
    # Its servers are killed: they must not be the machine's.
    done = _tool(directory, 'up', '--private', '--hosts', '3')
    if done.returncode == command.CANNOT_INSTALL:
        return directory, done.stderr[-500:]
    if done.returncode:
        raise AssertionError(f'up: {done.stdout[-2000:]}'
                             f'{done.stderr[-5000:]}')
    return directory, ''
