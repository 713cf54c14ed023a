# SPDX-License-Identifier: Apache-2.0
"""What the openstack client loads of this package for every command."""

import subprocess
import sys

import testtools

# The client loads the modules of all commands of all plugins.
LOAD = """
import importlib.metadata, sys
for one in importlib.metadata.distribution(
        'nova-aggregate-mirror').entry_points:
    if one.group.startswith('openstack.'):
        one.load()
print(*sorted({'nova', 'sqlalchemy'} & set(sys.modules)))
"""


class TestImports(testtools.TestCase):

    def test_no_database_is_loaded(self):
        """The imports of the journal take half a second: they are left out."""
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', LOAD], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.assertEqual('\n', found.stdout)
