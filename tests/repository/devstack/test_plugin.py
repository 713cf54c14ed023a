# SPDX-License-Identifier: Apache-2.0
"""The plugin in the phases of a real DevStack, played offline."""

import configparser
import itertools
import os
import stat

import testtools

from tests.repository.devstack import sandbox

DEVSTACK_DIR = os.environ.get('DEVSTACK_DIR')
COMPUTE = 'ENABLED_SERVICES+=,n-cpu\nVIRT_DRIVER=fake'
VENV = 'opt/stack/data/venv'
MANAGE = ['%s/bin/nova-aggregate-mirror-manage' % VENV, 'db', 'sync']
CHECK = ['%s/bin/nova-aggregate-mirror-status' % VENV, 'upgrade', 'check']
SMOKE = ['opt/stack/nova-aggregate-mirror/devstack/smoke']
PHASES = ['stack pre-install', 'stack install', 'stack post-config',
          'stack extra', 'stack test-config']
UNIT = 'devstack@aggregate-mirror.service'
DISABLED = 'disable_service aggregate-mirror'
ARGUMENTS = ['uninstall', '-y', 'nova-aggregate-mirror']
UNINSTALL = ['%s/bin/pip' % VENV, *ARGUMENTS]
ASK = ['systemctl', 'is-enabled', UNIT]
STOP = [ASK, ['systemctl', 'stop', UNIT], ['systemctl', 'disable', UNIT]]


@testtools.skipUnless(
    DEVSTACK_DIR, 'DEVSTACK_DIR does not name a checkout of devstack')
class PluginTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.sandbox = self.useFixture(sandbox.Sandbox(DEVSTACK_DIR))

    def play(self, script='stack', localrc='', expected=0):
        played = self.sandbox.play(script, localrc)
        self.assertEqual(expected, played.returncode, played.output)
        return played

    def drop_in(self):
        """Return the options that nova-api and the agent read."""
        parser = configparser.RawConfigParser()
        parser.read(self.sandbox.drop_in)
        return {section: dict(parser[section])
                for section in parser.sections()}

    def databases(self, played, phase):
        """Return the SQL statements of a phase."""
        return [command[-1] for command in played.phases[phase]
                if command[0] == 'mysql']


class TestStack(PluginTest):

    def test_it_is_installed_where_nova_is(self):
        """Nova-api can load the package only from its own environment.

        A constraint would make pip refuse the checkout after a release.
        """
        constraints = self.sandbox.dest / 'requirements/upper-constraints.txt'
        self.sandbox.record(self.sandbox.path / 'bin', 'python3.99')
        for localrc, pip in (
                ('', ['%s/bin/pip' % VENV]),
                ('USE_VENV=True', ['opt/stack/nova.venv/bin/pip']),
                ('GLOBAL_VENV=False\nPYTHON3_VERSION=3.99',
                 ['python3.99', '-m', 'pip'])):
            played = self.play(localrc=localrc)
            self.assertEqual(
                [*pip, 'install', '-c', str(constraints), '-e',
                 '%s[agent,osc]' % self.sandbox.plugin],
                played.phases['stack install'][-1])
            self.assertEqual(['--', 'nova-aggregate-mirror'],
                             played.phases['stack install'][0][-2:])

    def test_the_agent_is_a_service_with_a_drop_in(self):
        """The drop-in has all that differs from nova."""
        played = self.play()
        self.assertEqual(
            {'aggregate_mirror': {'sync_interval': '10',
                                  'metrics_port': '9184'},
             'aggregate_mirror_database': {
                 'connection': 'mysql+pymysql://root:secret@127.0.0.1/'
                 'nova_aggregate_mirror?charset=utf8&plugin=dbcounter'}},
            self.drop_in())
        mode = self.sandbox.drop_in.stat().st_mode
        self.assertEqual(0o600, stat.S_IMODE(mode))
        systemctl = [command[1:] for command in played.phases['stack extra']
                     if command[0] == 'systemctl']
        self.assertEqual(
            [['daemon-reload'], ['enable', UNIT], ['start', UNIT]], systemctl)
        unit = configparser.RawConfigParser()
        unit.read(self.sandbox.unit)
        self.assertEqual(
            '%s/%s/bin/nova-aggregate-mirror-agent' % (
                self.sandbox.path, VENV),
            unit['Service']['ExecStart'])
        self.assertEqual('http://127.0.0.1:9184/healthz',
                         played.phases['stack extra'][-1][-1])

    def test_request_filters_come_with_their_host_filters(self):
        """The guard is in nova.conf, where DevStack sets nova's filters."""
        self.play(localrc='AGGREGATE_MIRROR_REQUEST_FILTERS='
                  'tenant_isolation,image_properties')
        lines = self.sandbox.drop_in.read_text().splitlines()
        for line in ('request_filters = tenant_isolation,image_properties',
                     'available_filters = nova.scheduler.filters.all_filters',
                     'available_filters = '
                     'nova_aggregate_mirror.scheduler.filters.all_filters'):
            self.assertEqual(1, lines.count(line), lines)
        lines = self.sandbox.nova_conf.read_text().splitlines()
        enabled, = [line for line in lines
                    if line.startswith('enabled_filters')]
        self.assertEqual(1, enabled.count('AggregateMembershipFilter'))
        self.assertIn('ComputeFilter', enabled)

    def test_the_journal_is_made_before_nova_api_starts(self):
        """Nova-api is started right after this phase."""
        # The connection has to be configured before the tables are created.
        self.sandbox.answer('nova-aggregate-mirror-manage',
                            'grep -q connection "%s"' % self.sandbox.drop_in)
        played = self.play()
        self.assertEqual(
            ['DROP DATABASE IF EXISTS nova_aggregate_mirror;',
             'CREATE DATABASE nova_aggregate_mirror CHARACTER SET utf8;'],
            self.databases(played, 'stack post-config'))
        self.assertEqual(MANAGE, played.phases['stack post-config'][-1])

    def test_it_is_checked_when_all_is_up(self):
        """The smoke test needs a compute host; a warning is no failure."""
        self.assertEqual([CHECK], self.play().phases['stack test-config'])
        self.sandbox.answer('nova-aggregate-mirror-status', 'exit 1')
        played = self.play(localrc=COMPUTE)
        self.assertEqual([CHECK, SMOKE], played.phases['stack test-config'])

    def test_a_second_stack_does_the_same(self):
        """In spite of what the first has left.

        Also with openstack-cli-server, which DevStack's jobs enable: the smoke
        test finds its client, which is called openstack.
        """
        first = self.play(localrc=COMPUTE)
        mine = list(self.sandbox.etc.rglob('*aggregate-mirror*'))
        self.assertEqual(2, len(mine))
        texts = [path.read_text() for path in mine]
        self.sandbox.answer(
            'smoke', 'type -P openstack > "$SANDBOX/found" || true')
        second = self.play(localrc=COMPUTE)
        self.assertEqual(texts, [path.read_text() for path in mine])
        third = self.play(
            localrc=COMPUTE + '\nenable_service openstack-cli-server')
        for phase in PHASES:
            self.assertEqual([first.phases[phase]] * 2,
                             [second.phases[phase], third.phases[phase]])
        self.assertEqual(
            '%s/devstack/files/openstack-cli-server/openstack\n'
            % self.sandbox.path, (self.sandbox.path / 'found').read_text())

    def test_what_a_local_conf_says_is_done(self):
        self.sandbox.answer('smoke', 'exit 1')
        played = self.play(localrc='\n'.join((
            COMPUTE, 'AGGREGATE_MIRROR_DB=journal',
            'AGGREGATE_MIRROR_SYNC_INTERVAL=3',
            'AGGREGATE_MIRROR_METRICS_PORT=9999',
            'AGGREGATE_MIRROR_SMOKE=False')))
        options = self.drop_in()
        self.assertEqual({'sync_interval': '3', 'metrics_port': '9999'},
                         options['aggregate_mirror'])
        self.assertIn('/journal?',
                      options['aggregate_mirror_database']['connection'])
        self.assertIn('CREATE DATABASE journal CHARACTER SET utf8;',
                      self.databases(played, 'stack post-config'))
        self.assertEqual('http://127.0.0.1:9999/healthz',
                         played.phases['stack extra'][-1][-1])
        # The smoke test asks the agent that was started.
        self.sandbox.answer(
            'smoke', 'test $AGGREGATE_MIRROR_AGENT = http://127.0.0.1:9999')
        self.play(localrc=COMPUTE + '\nAGGREGATE_MIRROR_METRICS_PORT=9999')

    def test_another_controller_keeps_the_journal(self):
        """Its database is on nova's database server, and is created there."""
        played = self.play(
            localrc='disable_service mysql\nDATABASE_TYPE=mysql\n'
            'DATABASE_HOST=192.0.2.2\nDATABASE_USER=root')
        self.assertEqual([MANAGE], played.phases['stack post-config'])
        self.assertIn('@192.0.2.2/', self.drop_in()[
            'aggregate_mirror_database']['connection'])


class TestFailure(PluginTest):
    """A failure ends stack.sh at once, with a message that names it."""

    def test_each(self):
        """The phases after it are not played."""
        for program, script, localrc, message, never in (
                ('nova-aggregate-mirror-manage', 'exit 255', '',
                 "the journal's tables could not be created", 'stack extra'),
                ('nova-aggregate-mirror-status', 'exit 2', COMPUTE,
                 'upgrade check returned 2', 'none'),
                ('smoke', 'exit 1', COMPUTE, 'the smoke test of '
                 'nova-aggregate-mirror failed', 'none'),
                ('curl', 'if [[ ${!#} == */healthz ]]; then echo 503; exec '
                 '/bin/sleep 1; fi; echo 200', 'SERVICE_TIMEOUT=2',
                 'nova-aggregate-mirror-agent did not start',
                 'stack test-config')):
            self.sandbox.answer(program, script)
            played = self.play(localrc=localrc, expected=1)
            self.assertIn(message, played.output)
            self.assertNotIn(never, played.phases)
            if program == 'nova-aggregate-mirror-status':
                self.assertEqual([CHECK], played.phases['stack test-config'])
            self.sandbox.answer(program, 'exit 0')


class TestAbsent(PluginTest):
    """Where the plugin is disabled, nothing of it is in nova."""

    def test_each_run(self):
        """It removes what an earlier run may have left."""
        self.sandbox.answer('systemctl', '[[ $1 != is-enabled ]]')
        for localrc, (script, phase, expected) in itertools.product(
                (DISABLED, 'disable_service n-api'), (
                    ('stack', 'stack install', [ASK, UNINSTALL]),
                    ('unstack', 'unstack', [ASK]),
                    ('clean', 'clean', [UNINSTALL]))):
            played = self.play(script, localrc)
            self.assertEqual({phase: expected}, {
                phase: commands for phase, commands in played.phases.items()
                if phase and commands})
            self.assertFalse(self.sandbox.drop_in.exists())
            self.assertFalse(self.sandbox.unit.exists())

    def test_service_disabled_after_it_was_stacked(self):
        """DevStack keeps nova's environment and its configuration."""
        for localrc, uninstall in (
                (DISABLED, UNINSTALL),
                (DISABLED + '\nUSE_VENV=True',
                 ['opt/stack/nova.venv/bin/pip', *ARGUMENTS])):
            self.play(localrc=COMPUTE)
            self.assertTrue(self.sandbox.drop_in.exists())
            played = self.play('stack', localrc)
            self.assertEqual([*STOP, uninstall],
                             played.phases['stack install'])
            self.assertFalse(self.sandbox.drop_in.exists())
            for phase in PHASES[2:]:
                self.assertEqual([], played.phases[phase])

    def test_service_disabled_before_unstack_and_clean(self):
        self.play(localrc=COMPUTE)
        self.assertEqual(
            STOP, self.play('unstack', DISABLED).phases['unstack'])
        self.assertEqual(
            [UNINSTALL], self.play('clean', DISABLED).phases['clean'])

    def test_clean_of_a_system_installation(self):
        """DevStack deletes its own environment, but not the system's."""
        self.sandbox.record(self.sandbox.path / 'bin', 'python3.99')
        played = self.play('clean', '\n'.join((
            DISABLED, 'GLOBAL_VENV=False', 'PYTHON3_VERSION=3.99')))
        self.assertEqual([['python3.99', '-m', 'pip', *ARGUMENTS]],
                         played.phases['clean'])

    def test_host_filters_are_not_enabled_without_the_package(self):
        """Nova-scheduler does not start with an unknown filter."""
        for localrc in (DISABLED, 'disable_service n-api'):
            self.play(localrc='AGGREGATE_MIRROR_REQUEST_FILTERS='
                      'tenant_isolation\n' + localrc)
            self.assertNotIn('AggregateMembershipFilter',
                             self.sandbox.nova_conf.read_text())


class TestUnstack(PluginTest):

    def test_the_agent_is_stopped(self):
        self.play()
        for _twice in range(2):
            played = self.play('unstack')
            self.assertEqual(STOP, played.phases['unstack'])

    def test_clean_leaves_nova_without_the_package(self):
        """An entry point without its module would stop nova-api."""
        for localrc, pip in (('', '%s/bin/pip' % VENV),
                             ('USE_VENV=True', 'opt/stack/nova.venv/bin/pip')):
            self.play(localrc=localrc)
            self.assertTrue(self.sandbox.completion.exists())
            for _twice in range(2):
                played = self.play('clean', localrc)
                self.assertEqual([[pip, *ARGUMENTS]], played.phases['clean'])
                # Stack.sh writes it, and nothing else would delete it.
                self.assertFalse(self.sandbox.completion.exists())
