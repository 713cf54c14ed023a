# SPDX-License-Identifier: Apache-2.0
"""Version, help and journal of the programs."""

import argparse
import importlib.metadata
import json
import subprocess
import sys

import fixtures
import testtools

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import manage
from nova_aggregate_mirror import exceptions
from tests.unit import doubles

# The processes share an import of nova, which takes a second.
SCRIPT = """
import contextlib, io, json
from nova.conf import CONF
from nova_aggregate_mirror.cmd import agent, manage
answers = []
for program, *arguments in (
        (agent, '--version'), (manage, '--version'), (agent, '--help'),
        (manage, '--help'), (manage,)):
    CONF.reset()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            code = program.main(arguments)
        except SystemExit as exc:
            code = exc.code
    answers.append((code, out.getvalue()))
print(json.dumps(answers))
"""


class TestPrograms(testtools.TestCase):

    def test_version_and_help(self):
        """The version is not that of nova; the help lists the commands.

        Without arguments, the help is shown.
        """
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', SCRIPT],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=True)
        self.assertEqual('', done.stderr)
        statuses, texts = zip(*json.loads(done.stdout))
        self.assertEqual((0,) * 5, statuses)
        version = importlib.metadata.version('nova-aggregate-mirror') + '\n'
        self.assertEqual((version, version), texts[:2])
        agent_help, manage_help, shown = texts[2:]
        self.assertIn('SIGUSR2', agent_help)
        self.assertIn('\n    journal             list, forget\n', manage_help)
        self.assertEqual(manage_help, shown)


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
