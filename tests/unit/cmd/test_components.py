# SPDX-License-Identifier: Apache-2.0
"""The journal of the programs, and the examples in their help."""

import argparse

import fixtures
import testtools

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import manage
from nova_aggregate_mirror import exceptions
from tests.unit import doubles


class TestJournal(doubles.TestCase):

    def test_file_that_cannot_be_looked_up(self):
        """The error is that of a journal; the program prints it."""
        doubles.hide_journal(self.conf)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.cmd.components.CONF', self.conf))
        self.assertRaises(exceptions.JournalUnavailable, components.journal)


class TestCommands(testtools.TestCase):

    def test_every_example_is_accepted(self):
        """The parser of its command takes the arguments, and prints them."""
        parser = argparse.ArgumentParser(prog='manage')
        manage.add_commands(parser.add_subparsers(required=True))
        for command in manage.COMMANDS:
            words = [*command.words.split(), *command.example.split()]
            self.assertEqual(command.run, parser.parse_args(words).run)
