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

    def test_registering_twice_changes_nothing(self):
        """nova-api may load the package by entry point and by paste filter."""
        options = doubles.make_conf(self)
        options.set_override('inline_timeout', 7, 'aggregate_mirror')
        conf.register_opts(options)
        self.assertEqual(7, options.aggregate_mirror.inline_timeout)

    def test_defaults_of_nova_databases_are_kept(self):
        """The default connection applies only to the journal."""
        doubles.make_conf(self)
        connection, = (opt for opt in db_options.database_opts
                       if opt.name == 'connection')
        self.assertIsNone(connection.default)

    def test_journal_lies_below_the_state_path(self):
        """By default the journal is in nova's state directory."""
        options = doubles.make_conf(self)
        self.assertEqual(
            'sqlite:///%s/aggregate_mirror/journal.sqlite'
            % options.state_path,
            options.aggregate_mirror_database.connection)

    def test_defaults(self):
        """A crash is repaired, and drift found, within about a minute."""
        options = doubles.make_conf(self).aggregate_mirror
        self.assertEqual(
            (10, 600, 5.0, 60.0, True),
            (options.leader_lease, options.max_call_age,
             options.inline_timeout, options.sync_interval, options.prune))
        option_values.check(doubles.make_conf(self))

    def test_missing_credentials(self):
        """Version 1 warns, and version 2 fails."""
        major, _dot, _rest = metadata.version(conf.PACKAGE).partition('.')
        self.assertEqual(
            'warn' if int(major) < 2 else 'fail',
            doubles.make_conf(self).aggregate_mirror.missing_credentials)

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
        unread = [opt.name for opt in conf.OPTS
                  if not re.search(r'\.%s\b' % opt.name, code)]
        self.assertEqual([], unread)

    def test_every_option_is_listed(self):
        """The sample and the documentation list all options."""
        listed = {group.name: {opt.name for opt in opts}
                  for group, opts in conf.list_opts()}
        options = doubles.make_conf(self)
        self.assertEqual(set(options.aggregate_mirror),
                         listed['aggregate_mirror'])
        self.assertEqual(set(options.aggregate_mirror_database),
                         listed['aggregate_mirror_database'])
