# SPDX-License-Identifier: Apache-2.0
"""The plugin's grenade scripts, with a real grenade's functions, offline."""

import os

import testtools

from tests.repository.devstack import sandbox

DEVSTACK_DIR = os.environ.get('DEVSTACK_DIR')
GRENADE_DIR = os.environ.get('GRENADE_DIR')
QUESTIONS = ('curl', 'id', 'ip', 'lsb_release', 'ps', 'sleep')
# Just enough of systemctl for a stopped service to be seen as stopped.
SYSTEMCTL = """\
running=$SANDBOX/running-${2%.service}
case $1 in
    start) touch "$running";;
    stop) rm -f "$running";;
    is-enabled|status) test -e "$running";;
esac
"""
DUMP = ['mysqldump', '--user=root', '--host=127.0.0.1', '--single-transaction',
        '--skip-comments', '--add-drop-database', '--databases',
        'nova_aggregate_mirror']
RESTORE = ['mysql', '--user=root', '--host=127.0.0.1']


@testtools.skipUnless(
    DEVSTACK_DIR and GRENADE_DIR,
    'DEVSTACK_DIR and GRENADE_DIR do not name checkouts of both')
class TestUpgrade(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.sandbox = self.useFixture(sandbox.Sandbox(DEVSTACK_DIR))
        self.sandbox.answer('systemctl', SYSTEMCTL)
        for program in ('ps', 'ss'):
            self.sandbox.record(self.sandbox.path / 'bin', program)
        for release in ('old', 'new'):
            directory = self.sandbox.dest / release
            directory.mkdir()
            (directory / 'devstack').symlink_to(self.sandbox.path / 'devstack')
            (directory / 'requirements').symlink_to(
                self.sandbox.dest / 'requirements')
        # Grenade.sh clones no plugin for the new release.
        (self.sandbox.dest / 'old' / sandbox.PLUGIN).symlink_to(
            self.sandbox.plugin)
        save = self.sandbox.dest / 'save'
        save.mkdir()
        self.saved = save / 'aggregate-mirror-journal.sql.old'
        played = self.sandbox.play('stack')
        self.assertEqual(0, played.returncode, played.output)
        # A database that its password opens.
        self.database = self.sandbox.path / 'database'
        self.database.write_text('uuid-of-aggregate')
        for program, action in (('mysql', 'cat >'), ('mysqldump', 'cat <')):
            self.sandbox.answer(
                program, '[[ $MYSQL_PWD == secret ]] && %s "%s"' % (
                    action, self.database))

    def run_script(self, *command, expected=0, localrc=''):
        """Run a script of the plugin."""
        script, *arguments = command
        played = self.sandbox.run(
            [self.sandbox.plugin / 'devstack/upgrade' / script, *arguments],
            localrc, GRENADE_DIR=GRENADE_DIR,
            STACK_ROOT=str(self.sandbox.dest))
        self.assertEqual(expected, played.returncode, played.output)
        self.assertNotIn('secret', played.output)
        return played

    def play(self, script):
        """Run a script of the plugin; return its commands, except queries."""
        played = self.run_script(script)
        return [
            command for command in played.phases['']
            if command[0] not in QUESTIONS
            and command[1] not in ('daemon-reload', 'is-enabled', 'status')]

    def test_shutdown_stops_the_agent_and_saves_the_journal(self):
        """Nova-api is stopped by nova's own script."""
        self.assertEqual(
            [['systemctl', 'stop', 'devstack@aggregate-mirror.service'],
             ['systemctl', 'disable', 'devstack@aggregate-mirror.service'],
             DUMP], self.play('shutdown.sh'))
        self.assertEqual('uuid-of-aggregate', self.saved.read_text())

    def test_journal_that_cannot_be_saved(self):
        self.sandbox.answer('mysqldump', 'exit 2')
        self.run_script('shutdown.sh', expected=2)

    def test_upgrade_ends_with_the_new_package_everywhere(self):
        """Nova-api is restarted: it loads the package only at its start.

        The upgrade starts from the saved journal.
        """
        self.play('shutdown.sh')
        self.database.write_text('another content')
        self.sandbox.answer('nova-aggregate-mirror-manage',
                            'cp "%s" "$SANDBOX/migrated"' % self.database)
        programs = 'opt/stack/data/venv/bin'
        commands = self.play('upgrade.sh')
        self.assertEqual(['-e', '%s[agent,osc]' % self.sandbox.plugin],
                         commands[1][-2:])
        self.assertEqual(
            [['systemctl', 'stop', 'devstack@n-api.service'],
             ['systemctl', 'disable', 'devstack@n-api.service'],
             RESTORE, DUMP,
             ['%s/nova-aggregate-mirror-manage' % programs, 'db', 'sync'],
             ['systemctl', 'enable', 'devstack@n-api.service'],
             ['systemctl', 'start', 'devstack@n-api.service'],
             ['systemctl', 'enable', 'devstack@aggregate-mirror.service'],
             ['systemctl', 'start', 'devstack@aggregate-mirror.service'],
             ['%s/nova-aggregate-mirror-status' % programs, 'upgrade',
              'check']], commands[2:])
        self.assertEqual('uuid-of-aggregate',
                         (self.sandbox.path / 'migrated').read_text())

    def test_journal_that_is_not_restored_completely(self):
        self.play('shutdown.sh')
        self.sandbox.answer('mysql', 'exit 0')
        self.database.write_text('part of it')
        played = self.run_script('upgrade.sh', expected=1)
        self.assertIn('the restored journal differs', played.output)
        self.assertNotIn('db sync', played.output)

    def test_what_cannot_be_verified(self):
        """The dump of a wrong or an empty database is one, too.

        Providers that cannot be listed are not gone: the removal is not
        verified.
        """
        self.play('shutdown.sh')
        (self.saved.parent / 'grenade_db.ini').write_text(
            '[aggregate_mirror]\nuuid = uuid-of-aggregate\nhost = h1\n')
        self.run_script('resources.sh', 'verify_noapi', 'pre-upgrade')
        self.saved.write_text('another content')
        played = self.run_script(
            'resources.sh', 'verify_noapi', 'pre-upgrade', expected=1)
        self.assertIn('does not have aggregate uuid-of-aggregate',
                      played.output)
        self.sandbox.record(self.sandbox.path / 'bin', 'openstack')
        self.sandbox.answer('openstack', '[[ "$*" != *provider* ]]')
        played = self.run_script('resources.sh', 'destroy', expected=1,
                                 localrc='SERVICE_TIMEOUT=0')
        self.assertIn('an unknown number of providers', played.output)
        self.assertNotIn('aggregate delete', played.output)
