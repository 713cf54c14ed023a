# SPDX-License-Identifier: Apache-2.0
"""The progress output of a full sync."""

import io

import testtools

from nova_aggregate_mirror.console import progress


class TestLines(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.out = io.StringIO()
        self.seconds = 0.0

    def sync(self, **options):
        """Complete three providers, one per second."""
        display = progress.Lines(self.out, lambda: self.seconds, **options)
        display.step('Reading', 3)
        for _each in range(3):
            self.seconds += 1
            display.advance()
        display.step('Writing')
        display.close()
        return self.out.getvalue()

    def test_numbers_of_a_log_are_rare(self):
        self.assertEqual('Reading\n2 of 3 providers done\nWriting\n',
                         self.sync(interval=2))

    def test_numbers_on_a_terminal_are_erased(self):
        """What stays on the screen are the steps."""
        shown = self.sync(interval=1, in_place=True)
        self.assertIn('Reading\n\r\x1b[K0 of 3 providers done', shown)
        self.assertIn('\r\x1b[K3 of 3 providers done\r\x1b[KWriting', shown)
        self.assertEqual(
            ['Reading', 'Writing', ''],
            [line.rpartition('\x1b[K')[2] for line in shown.split('\n')])

    def test_without_a_number_nothing_is_counted(self):
        display = progress.Lines(self.out, lambda: self.seconds, 0)
        display.advance()
        self.assertEqual('', self.out.getvalue())
