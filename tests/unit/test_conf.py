# SPDX-License-Identifier: Apache-2.0
"""The options: their limits, and that nova's own options are unchanged."""

from importlib import metadata
import pathlib
import re

from oslo_db import options as db_options
import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import option_values
from tests.unit import doubles


class TestOptions(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = doubles.make_conf(self)
        self.options = self.conf.aggregate_mirror

    def test_registering_twice_changes_nothing(self):
        """nova-api may load the package by entry point and by paste filter."""
        self.conf.set_override('inline_timeout', 7, 'aggregate_mirror')
        conf.register_opts(self.conf)
        self.assertEqual(7, self.options.inline_timeout)

    def test_defaults_of_nova_databases_are_kept(self):
        """The default connection applies only to the journal."""
        connection, = (opt for opt in db_options.database_opts
                       if opt.name == 'connection')
        self.assertIsNone(connection.default)

    def test_defaults(self):
        """A crash is repaired, and drift found, within about a minute.

        The journal lies below nova's state directory. Without credentials,
        version 1 warns, and version 2 fails.
        """
        self.assertEqual(
            (10, 600, 5.0, 60.0, True),
            (self.options.leader_lease, self.options.max_call_age,
             self.options.inline_timeout, self.options.sync_interval,
             self.options.prune))
        option_values.check(self.conf)
        self.assertEqual('sqlite:///%s/aggregate_mirror/journal.sqlite'
                         % self.conf.state_path,
                         self.conf.aggregate_mirror_database.connection)
        major, _dot, _rest = metadata.version(conf.PACKAGE).partition('.')
        self.assertEqual('warn' if int(major) < 2 else 'fail',
                         self.options.missing_credentials)

    def test_call_age_suits_every_timeout(self):
        """Rule 2: no row may be closed while its own call still converges."""
        options = {option.name: option.type for option in conf.OPTS}
        self.assertGreater(options['max_call_age'].min,
                           4 * options['inline_timeout'].max)

    def test_every_option_is_read(self):
        """There is no option without an effect."""
        package = pathlib.Path(nova_aggregate_mirror.__file__).parent
        code = ''.join(path.read_text() for path in package.rglob('*.py')
                       if path.name != 'conf.py')
        for option in conf.OPTS:
            self.assertTrue(
                re.search(r'\.%s\b' % option.name, code), option.name)

    def test_every_option_is_listed(self):
        """The sample and the documentation list all options."""
        listed = {group.name: {option.name for option in options}
                  for group, options in conf.list_opts()}
        groups = 'aggregate_mirror', 'aggregate_mirror_database'
        self.assertEqual(
            {group: {*self.conf[group]} for group in groups}, listed)
