# SPDX-License-Identifier: Apache-2.0
"""The second Ctrl-C, after which the process ends without unwinding."""

import os
import signal

import fixtures
import testtools

from nova_aggregate_mirror.console import interruption


class TestInterruption(testtools.TestCase):

    def test_second_signal(self):
        """It ends the process at once, with the status of the first."""
        exits, shouts = [], []
        self.useFixture(fixtures.MonkeyPatch('os._exit', exits.append))
        self.useFixture(fixtures.MonkeyPatch(
            'os.write', lambda _file, text: shouts.append(text)))
        with interruption.Interruption().watched():
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertEqual([], exits)
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual([143], exits)
        self.assertEqual(
            '\n%s\n' % interruption.ABANDONED, shouts[1].decode())
