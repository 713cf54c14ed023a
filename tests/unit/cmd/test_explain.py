# SPDX-License-Identifier: Apache-2.0
"""Arguments of ``scheduling explain`` that depend on each other."""

import argparse
import contextlib
import io

import testtools

from nova_aggregate_mirror.cmd import explain
from nova_aggregate_mirror import exceptions

SERVER = ['--server', '1d9b1dca-0b0a-4d8a-8b5f-2a4e9a3c9a55']
FLAVOR = ['--flavor', 'm1.small']
HOST = ['--servers-of', 'h1']


def parse(*arguments):
    parser = argparse.ArgumentParser()
    explain.add_arguments(parser)
    return parser.parse_args(arguments)


class TestArguments(testtools.TestCase):

    def test_operations(self):
        """A resize has a flavor; a rebuild may have an image."""
        for operation, flavor, arguments in (
                ('', '', []), ('migrate', '', ['--for', 'migrate']),
                ('resize', 'm1', ['--for', 'resize', 'm1']),
                ('rebuild', '', ['--for', 'rebuild', '--image', 'name']),
                ('unshelve', '', ['--for', 'unshelve', '--zone', 'name'])):
            options = parse(*SERVER, *arguments)
            explain.check(options)
            self.assertEqual((operation, flavor),
                             (options.operation, options.new_flavor))

    def test_refused(self):
        """The error names the argument, and what to do."""
        for arguments, said in (
                ([*SERVER, '--for', 'reboot'], '--for reboot'),
                ([*SERVER, '--for', 'resize'], 'the new flavor'),
                ([*SERVER, '--for', 'resize', 'm1', 'm2'], 'value: m2'),
                ([*SERVER, '--for', 'migrate', 'h1'], 'no further value: h1'),
                ([*FLAVOR, '--for', 'migrate'], '--flavor: use one of create'),
                ([*HOST, '--for', 'rebuild'], '--servers-of: use one of '
                 'live-migrate, migrate, evacuate'),
                ([*HOST, '--host', 'h2'], '--host does not apply'),
                ([*HOST, '--count', 'all'], '--count needs --flavor'),
                ([*FLAVOR, '--order', 'name'], '--order needs --servers-of'),
                ([*SERVER, '--zone', 'z'], '--zone needs --flavor'),
                ([*SERVER, '--volume'], '--volume needs --flavor'),
                ([*SERVER, '--hint', 'a=b'], '--hint needs --flavor'),
                ([*FLAVOR, '--hint', '_nova_check_type=rebuild'],
                 '_nova are reserved for nova'),
                ([*SERVER, '--image-property', 'a=b'], '--image-property '),
                ([*SERVER, '--count', '2'], '--count needs --flavor')):
            error = self.assertRaises(
                exceptions.InvalidConfiguration, explain.check,
                parse(*arguments))
            self.assertIn(said, str(error))

    def test_not_parsed(self):
        """One of server and flavor is required, in the right form."""
        for arguments in ([], [*SERVER, *FLAVOR],
                          [*FLAVOR, '--hint', 'group'],
                          [*FLAVOR, '--hint', '=x'],
                          [*FLAVOR, '--count', '0'],
                          [*FLAVOR, '--html', 'page', '-f', 'json']):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertRaises(SystemExit, parse, *arguments)
