# SPDX-License-Identifier: Apache-2.0
"""The second Ctrl-C, after which the process ends without unwinding."""

import os
import signal

import fixtures
import testtools

from nova_aggregate_mirror.console import sync_run


class TestInterruption(testtools.TestCase):

    def test_reader_that_was_interrupted_as_well(self):
        """As with ``2>&1 | tee``: what is in flight is completed."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.console.sync_run.STDERR', writer))
        with sync_run.interruptible() as received:
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual([signal.SIGINT], received)

    def test_second_signal(self):
        """The process ends without waiting for what is in flight."""
        exits, shouts = [], []
        self.useFixture(fixtures.MonkeyPatch('os._exit', exits.append))
        self.useFixture(fixtures.MonkeyPatch(
            'os.write', lambda _file, text: shouts.append(text)))
        with sync_run.interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertEqual([], exits)
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual([143], exits)
        self.assertEqual(
            '\n%s\n' % sync_run.ABANDONED, shouts[1].decode())
