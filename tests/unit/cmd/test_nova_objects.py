# SPDX-License-Identifier: Apache-2.0
"""Limits of nova's own requests, in a process of their own."""

import subprocess
import sys

import testtools

SCRIPT = """
from nova.conf import CONF
from nova_aggregate_mirror.cmd import nova_objects
from nova_aggregate_mirror import conf
import sys
conf.register_opts(CONF)
CONF([], default_config_files=[], project='nova')
CONF.set_override('connection', 'sqlite://', 'api_database')
CONF.set_override('request_timeout', float(sys.argv[1]), 'aggregate_mirror')
nova_objects.prepare(CONF)
print(CONF.neutron.timeout, CONF.placement.timeout)
nova_objects.bound(CONF)
print(int(CONF.neutron.timeout), int(CONF.placement.timeout))
"""


class TestLimits(testtools.TestCase):

    def test_limits_of_nova(self):
        """Only a command sets them, rounded up to whole seconds.

        They would not follow a reload of the agent's configuration.
        """
        printed = subprocess.run(
            [sys.executable, '-c', SCRIPT, '1.5'], capture_output=True,
            text=True, check=True).stdout
        self.assertEqual(['None None', '2 2'], printed.splitlines())
