# SPDX-License-Identifier: Apache-2.0
"""The options, their limits, and values of them that cannot be used."""

from importlib import metadata
import pathlib
import re

import fixtures
from oslo_config import cfg
from oslo_config import types
from oslo_db import options as db_options
import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import option_values
from tests.unit import doubles

OF_NOVA = (cfg.IntOpt('workers', min=1), cfg.FloatOpt('timeout'),
           cfg.IntOpt('pin', secret=True))


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


class TestValues(testtools.TestCase):

    def test_what_is_expected(self) -> None:
        """The option, its file, its value and what it has to be."""
        for group, name, text, expected in (
                ('aggregate_mirror', 'sync_interval', '1m',
                 'is "1m": set it to a number of seconds from 1 to 86400'),
                ('aggregate_mirror', 'max_call_age', '5',
                 'is "5": set it to a whole number of seconds from 500 to '
                 '86400'),
                ('aggregate_mirror', 'max_removed_share', '30%',
                 'is "30%": set it to a number from 0 to 1'),
                ('aggregate_mirror', 'prune', 'si',
                 'is "si": set it to true or false'),
                ('aggregate_mirror', 'mode', 'mirrors',
                 'is "mirrors": set it to one of mirror, observe'),
                ('aggregate_mirror', 'sync_interval', '',
                 'is empty: delete it; the default then applies'),
                ('aggregate_mirror', 'metrics_host', 'a b',
                 'is "a b" (a b is not a valid host address): correct it'),
                ('aggregate_mirror_database', 'max_pool_size', 'many',
                 'is "many": set it to a whole number')):
            options = self.read(group, name, text)
            self.assertEqual('[%s] %s in %s %s' % (
                group, name, options.config_file[0], expected),
                self.refusal(options))

    def test_options_of_nova(self) -> None:
        """The error of a value that was read has no section of its own.

        A secret is not shown, whatever it is.
        """
        for name, text, expected in (
                ('workers', '0', 'is "0": set it to a whole number from 1'),
                ('timeout', '1m', 'is "1m": set it to a number'),
                ('pin', '1234x', 'cannot be used: set it to a whole number')):
            for group in 'DEFAULT', 'placement':
                options = self.read(group, name, text)
                options.register_opts(
                    OF_NOVA, None if group == 'DEFAULT' else group)
                section = options if group == 'DEFAULT' else options[group]
                error = self.assertRaises(
                    cfg.ConfigFileValueError, getattr, section, name)
                self.assertEqual('[%s] %s in %s %s' % (
                    group, name, options.config_file[0], expected), str(
                        option_values.invalid_option(options, error)))

    def test_place(self) -> None:
        """The last file counts, and the environment more than any."""
        options = self.read('aggregate_mirror', 'sync_interval', '1m')
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in '1', '2':
            (directory / ('%s.conf' % name)).write_text(
                '[aggregate_mirror]\nsync_interval = %sh\n' % name)
        options(['--config-file', options.config_file[0],
                 '--config-dir', str(directory)])
        self.assertIn(' in %s/2.conf is "2h": ' % directory,
                      self.refusal(options))
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_AGGREGATE_MIRROR__SYNC_INTERVAL', '3h'))
        self.assertIn(
            '[aggregate_mirror] sync_interval in the environment '
            '(OS_AGGREGATE_MIRROR__SYNC_INTERVAL) is "3h": ',
            self.refusal(options))

    def test_name_that_is_no_option(self) -> None:
        """It is logged, with the option that was probably meant, if any."""
        for group, name, advice in (
                ('aggregate_mirror', 'sync_intervall',
                 ': rename it to sync_interval'),
                ('aggregate_mirror_database', 'colour', ': delete it'),
                ('placement', 'colour', None)):
            log = self.useFixture(fixtures.FakeLogger(format='%(message)s'))
            options = self.read(group, name, '10')
            option_values.check(options)
            text = 'Not used: [%s] in %s sets %s, which is no option%s' % (
                group, options.config_file[0], name, advice)
            self.assertEqual([text] if advice else [], log.output.splitlines())

    def refusal(self, options: cfg.ConfigOpts) -> str:
        options.clear_override('sync_interval', 'aggregate_mirror')
        return str(self.assertRaises(exceptions.InvalidConfiguration,
                                     option_values.check, options))

    def read(self, group, name, text):
        """Return the configuration of a file that sets one option."""
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
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
        empty = {'request_filters': [], 'mysql_sql_mode': ''}
        defaults = self.read('DEFAULT', 'debug', 'true')
        options = [*option_values.list_options()]
        for text in ('', '  ', 'nan', 'NaN', '-nan', 'inf', '-inf', '-0.0'):
            for group, option in options:
                is_number = isinstance(option.type, types.Number)
                if text.strip() and not is_number:
                    continue
                configured = self.read(group, option.name, text)
                default = defaults[group][option.dest]
                found = option_values.override_mistakes(configured)
                value = configured[group][option.dest]
                if not is_number and option.dest in empty:
                    self.assertEqual(({}, empty[option.dest]), (found, value))
                elif default not in (None, ''):
                    self.assertEqual(({(group, option.dest)}, default),
                                     (found.keys(), value), option.dest)

    def test_no_hook(self):
        """The error names the mode in which nova mirrors by itself."""
        error, = option_values.override_mistakes(
            self.read('aggregate_mirror', 'hooks', '')).values()
        self.assertIn('mode = observe', str(error))
