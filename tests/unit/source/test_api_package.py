# SPDX-License-Identifier: Apache-2.0
"""The client of the compute API without its package."""

import sys
from unittest import mock

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import api


class TestMissingPackage(testtools.TestCase):

    def test_missing_package_names_what_to_install(self):
        """Nova's environment has no python-novaclient."""
        # Another test of this process may have imported it.
        hidden = mock.patch.dict(sys.modules, {'novaclient': None})
        self.addCleanup(hidden.stop)
        hidden.start()
        raised = self.assertRaises(exceptions.MissingPackage, api.connect)
        self.assertIn('pip install python-novaclient', str(raised))
