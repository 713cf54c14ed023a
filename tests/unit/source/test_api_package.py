# SPDX-License-Identifier: Apache-2.0
"""The client of the compute API without its package."""

import sys

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import api


class TestMissingPackage(testtools.TestCase):

    def test_missing_package_names_what_to_install(self):
        """Nova's environment has no python-novaclient."""
        self.useFixture(fixtures.MonkeyPatch('sys.modules', {
            **{name: module for name, module in sys.modules.items()
               if not name.startswith('novaclient')}, 'novaclient': None}))
        raised = self.assertRaises(exceptions.MissingPackage, api.connect)
        self.assertIn('pip install python-novaclient', str(raised))
