# SPDX-License-Identifier: Apache-2.0
"""The limits of nova's own waits for databases in a command."""

from oslo_config import cfg
from oslo_db import options as db_options
import testtools

from nova_aggregate_mirror.limits import engines


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
        engines.bound_nova(self.conf, 7.5)
        return self.conf[group].connection_parameters

    def test_no_connection_is_tried_for_minutes(self):
        self.bounds('sqlite://')
        for group in 'api_database', 'database':
            self.assertEqual(0, self.conf[group].max_retries)

    def test_driver_waits_as_long_as_for_a_cell(self):
        """Also where nova.conf has no connection to a cell."""
        for group in 'api_database', 'database':
            self.assertEqual(
                'connect_timeout=8&read_timeout=8&write_timeout=8',
                self.bounds('mysql+pymysql://nova@db/nova_api', group=group))
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
