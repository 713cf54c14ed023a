# SPDX-License-Identifier: Apache-2.0
"""``--version`` and ``--help`` of the programs."""

import argparse
import functools
import importlib.metadata
import json
import re
import subprocess
import sys

import testtools

from nova_aggregate_mirror.cmd import manage
from nova_aggregate_mirror.cmd import manuals

MANUALS = {'agent': manuals.AGENT, 'manage': manuals.MANAGE,
           'status': manuals.STATUS}


SUBCOMMAND = ['placement', 'sync_aggregates', '--help']

# Each process would import nova, which takes a second.
SCRIPT = """
import contextlib, importlib, io, json, sys
from nova.conf import CONF
found = []
for name, argv in json.loads(sys.argv[1]):
    program = importlib.import_module('nova_aggregate_mirror.cmd.' + name)
    CONF.reset()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            status = program.main(argv)
        except SystemExit as exc:
            status = exc.code
    found.append((status, out.getvalue()))
print(json.dumps(found))
"""


@functools.cache
def answers():
    """Return exit status and output for each program and argument."""
    asked = [(name, [argument]) for name in MANUALS
             for argument in ('--version', '--help')]
    asked.append(('manage', SUBCOMMAND))
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', SCRIPT, json.dumps(asked)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        check=True)
    return {(name, argv[-2] if argv[1:] else argv[0]): tuple(found)
            for (name, argv), found in zip(asked, json.loads(done.stdout))}


class TestCommandLine(testtools.TestCase):

    def test_version_is_that_of_this_package(self):
        """Nova's release would mislead whoever reports a defect."""
        for name in MANUALS:
            self.assertEqual(
                (0, importlib.metadata.version('nova-aggregate-mirror')
                 + '\n'), answers()[name, '--version'])

    def test_help_shows_commands_first_and_the_log_last(self):
        for name, text in MANUALS.items():
            status, shown = answers()[name, '--help']
            self.assertEqual(0, status)
            manual, _title, options = shown.partition('\nOptions:\n')
            self.assertEqual(text, manual)
            own, _title, of_log = options.partition(
                '\nOptions of the log (oslo.log):\n')
            self.assertIn('\n  --config-file ', own)
            self.assertNotIn('--log-', own)
            if name != 'status':
                self.assertIn('\n  --log-file', of_log)

    def test_help_of_a_command_has_its_arguments(self):
        """It is not that of the program."""
        status, shown = answers()['manage', 'sync_aggregates']
        self.assertEqual(0, status)
        self.assertIn('--dry-run', shown)
        self.assertNotIn('Commands:', shown)

    def test_each_command_has_an_example(self):
        """It begins with the command that it is an example of."""
        for name in ('manage', 'status'):
            found = re.findall(
                r'^  (\w+(?: \w+)?)  .*\n      (\S+) (.*)$', MANUALS[name],
                re.MULTILINE)
            self.assertEqual({'manage': 10, 'status': 1}[name], len(found))
            for command, example, arguments in found:
                self.assertEqual('nova-aggregate-mirror-' + name, example)
                self.assertTrue((arguments + ' ').startswith(command + ' '))

    def test_every_example_is_accepted(self):
        """The parser of its command takes the arguments."""
        parser = argparse.ArgumentParser()
        manage.add_commands(parser.add_subparsers(required=True))
        for command in re.findall(
                r'^      nova-aggregate-mirror-manage (.*)$',
                manuals.MANAGE.replace('\\\n', ''), re.MULTILINE):
            parser.parse_args(command.split())
