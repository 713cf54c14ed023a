# SPDX-License-Identifier: Apache-2.0
"""Limits of nova's own requests, and of its waits for databases."""

import subprocess
import sys

from oslo_config import cfg
from oslo_db import options as db_options
import testtools

from nova_aggregate_mirror.cmd import nova_objects

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


class TestBoundNova(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([])
        for group in 'api_database', 'database':
            self.conf.register_opts(db_options.database_opts, group)

    def bounds(self, connection, parameters='', group='database'):
        self.conf.set_override('connection', connection, 'api_database')
        self.conf.set_override('connection_parameters', parameters, group)
        nova_objects.bound_databases(self.conf, 7.5)
        return self.conf[group].connection_parameters

    def test_driver_waits_as_long_as_for_a_cell(self):
        """Once, and also where nova.conf has no connection to a cell."""
        for group in 'api_database', 'database':
            self.assertEqual(
                'connect_timeout=8&read_timeout=8&write_timeout=8',
                self.bounds('mysql+pymysql://nova@db/nova_api', group=group))
            self.assertEqual(0, self.conf[group].max_retries)
        self.assertEqual('', self.bounds('sqlite://'))

    def test_limits_of_the_operator(self):
        """They are kept, in either place."""
        self.assertEqual(
            'charset=utf8&read_timeout=3&connect_timeout=8&write_timeout=8',
            self.bounds('mysql+pymysql://nova@db/nova_api',
                        'charset=utf8&read_timeout=3'))
        self.assertEqual(
            'connect_timeout=8&write_timeout=8',
            self.bounds('mysql+pymysql://nova@db/nova_api?read_timeout=3'))
