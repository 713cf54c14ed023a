# SPDX-License-Identifier: Apache-2.0
"""The options: their limits, and that nova's own options are unchanged."""

from importlib import metadata
import pathlib
import re

from oslo_config import cfg
from oslo_config import types
from oslo_db import options as db_options
import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
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

    def test_value_out_of_range_is_refused(self):
        """Every option has limits or choices."""
        for name, value in (('inline_timeout', '0'), ('inline_backoff', '-1'),
                            ('request_timeout', 'soon'),
                            ('cell_timeout', '0'), ('max_call_age', '5'),
                            ('missing_credentials', 'ignore')):
            options = self.read('aggregate_mirror', name, value)
            self.assertRaises(cfg.ConfigFileValueError, getattr,
                              options.aggregate_mirror, name)

    def read(self, group, name, text):
        """Return the configuration of a file that sets one option."""
        path = pathlib.Path(
            self.useFixture(doubles.fixtures.TempDir()).path, 'nova.conf')
        path.write_text('[%s]\n%s = %s\n' % (group, name, text))
        options = cfg.ConfigOpts()
        options.register_opt(cfg.StrOpt('state_path', default='/state'))
        conf.register_opts(options)
        options(['--config-file', str(path)])
        return options

    def test_value_without_a_meaning(self):
        """Every option that a template leaves empty is named, and harmless.

        So is a number that no limit excludes, because it compares as neither
        smaller nor greater. The default applies.
        """
        empty = {('aggregate_mirror', 'request_filters'): [],
                 ('aggregate_mirror_database', 'mysql_sql_mode'): ''}
        for text in ('', '  ', 'nan', 'NaN', '-nan', 'inf', '-inf', '-0.0'):
            for group, options in conf.list_opts():
                for option in options:
                    key = group.name, option.dest
                    if text.strip() and not isinstance(
                            option.type, types.Number):
                        continue
                    configured = self.read(group.name, option.name, text)
                    default = self.read(
                        'DEFAULT', 'debug', 'true')[group.name][option.dest]
                    found = conf.override_mistakes(configured)
                    value = configured[group.name][option.dest]
                    if not text.strip() and key in empty:
                        self.assertEqual(({}, empty[key]), (found, value))
                    elif default not in (None, ''):
                        self.assertEqual(({key}, default),
                                         (found.keys(), value), (key, text))

    def test_no_hook(self):
        """The error names the mode in which nova mirrors by itself."""
        reason, = conf.override_mistakes(
            self.read('aggregate_mirror', 'hooks', '')).values()
        self.assertIn('mode = observe', reason)

    def test_reload_with_a_value_without_a_meaning(self):
        """The previous value stays, and the brake with it."""
        for text in '', 'nan', '-0.0':
            options = self.read('aggregate_mirror', 'max_removed_share', text)
            before = {**conf.values(options),
                      ('aggregate_mirror', 'max_removed_share'): 0.2}
            error = self.assertRaises(exceptions.InvalidConfiguration,
                                      conf.check, options, before)
            self.assertIn('[aggregate_mirror] max_removed_share: ', str(error))
            self.assertEqual(0.2, options.aggregate_mirror.max_removed_share)

    def test_defaults(self):
        """A crash is repaired, and drift found, within about a minute."""
        options = doubles.make_conf(self).aggregate_mirror
        self.assertEqual(
            (10, 600, 5.0, 60.0, True),
            (options.leader_lease, options.max_call_age,
             options.inline_timeout, options.sync_interval, options.prune))
        conf.check(doubles.make_conf(self))

    def test_missing_credentials(self):
        """Version 1 warns, and version 2 fails."""
        for version, expected in (('0.0.1.dev9', 'warn'), ('1.0.0', 'warn'),
                                  ('1.12.1', 'warn'), ('2.0.0.0rc1', 'fail'),
                                  ('2.0.0', 'fail'), ('10.1.0', 'fail')):
            self.assertEqual(expected, conf.missing_credentials(version))
        self.assertEqual(
            conf.missing_credentials(metadata.version(conf.PACKAGE)),
            doubles.make_conf(self).aggregate_mirror.missing_credentials)

    def test_call_age_suits_every_timeout(self):
        """Rule 2: no row may be closed while its own call still converges."""
        options = {option.name: option.type for option in conf.OPTS}
        self.assertGreater(options['max_call_age'].min,
                           4 * options['inline_timeout'].max)

    def test_reload_with_an_invalid_value(self):
        """The previous value stays, not the default: prune must not begin."""
        options = self.read('aggregate_mirror', 'prune', 'false')
        path = pathlib.Path(options.config_file[0])
        before = conf.values(options)
        for text, expected in (('flase', False), ('', False), ('true', True)):
            path.write_text('[aggregate_mirror]\nprune = %s\n' % text)
            options.reload_config_files()
            conf.forget_mistakes(options)
            found = conf.override_mistakes(options, before)
            self.assertEqual(expected, options.aggregate_mirror.prune)
            self.assertEqual(not expected, bool(found))

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
