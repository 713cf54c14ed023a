# SPDX-License-Identifier: Apache-2.0
"""What the openstack client loads of this package for every command."""

import configparser
import json
import pathlib
import subprocess
import sys

import testtools

SETUP = pathlib.Path(__file__).parents[3] / 'setup.cfg'

# The client loads the modules of all commands of all plugins.
LOAD = """
import json, pkgutil, sys
for name in json.loads(sys.argv[1]):
    pkgutil.resolve_name(name)
from nova_aggregate_mirror.cmd import start
print(*sorted({'nova', *start.EXTRA} & set(sys.modules)))
"""


def entry_points():
    """List what the entry points of the client name."""
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    return [line.partition(' = ')[2]
            for group, lines in setup['entry_points'].items()
            if group.startswith('openstack.')
            for line in lines.strip().splitlines()]


class TestImports(testtools.TestCase):

    def test_no_database_is_loaded(self):
        """The extra nova, which takes half a second, is left out."""
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', LOAD,
             json.dumps(entry_points())], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.assertEqual('\n', found.stdout)
