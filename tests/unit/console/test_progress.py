# SPDX-License-Identifier: Apache-2.0
"""The progress output of a command."""

import contextlib
import io
import os

import testtools

from nova_aggregate_mirror.console import progress


class TestLines(testtools.TestCase):

    def sync(self, providers):
        """Complete four providers, each in two seconds."""
        seconds = iter(range(0, 100, 2))
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            display = progress.Lines(lambda: next(seconds))
            display.step('Reading', providers)
            for _provider in range(4):
                display.advance()
            display.step('Writing')
        return output.getvalue()

    def test_a_number_every_few_seconds(self):
        self.assertEqual('Reading\n2 of 4 providers done\n'
                         '4 of 4 providers done\nWriting\n',
                         self.sync(4))

    def test_reader_that_has_ended(self):
        """The command goes on."""
        reader, writer = os.pipe()
        os.close(reader)
        pipe = open(writer, 'w')
        with contextlib.redirect_stderr(pipe):
            progress.Lines().step('Reading')
        # It may still have the line.
        with contextlib.suppress(BrokenPipeError):
            pipe.close()

    def test_without_a_number_nothing_is_counted(self):
        self.assertEqual('Reading\nWriting\n', self.sync(0))
