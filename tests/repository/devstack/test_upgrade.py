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
            (directory / sandbox.PLUGIN).symlink_to(self.sandbox.plugin)
        played = self.sandbox.play('stack')
        self.assertEqual(0, played.returncode, played.output)

    def play(self, script):
        """Run a script of the plugin; return its commands, except queries."""
        played = self.sandbox.run(
            [self.sandbox.plugin / 'devstack' / 'upgrade' / script],
            GRENADE_DIR=GRENADE_DIR, STACK_ROOT=str(self.sandbox.dest))
        self.assertEqual(0, played.returncode, played.output)
        return [
            command for command in played.phases['']
            if command[0] not in QUESTIONS
            and command[1] not in ('daemon-reload', 'is-enabled', 'status')]

    def test_shutdown_stops_the_agent_alone(self):
        """Nova-api is stopped by nova's own script."""
        self.assertEqual(
            [['systemctl', 'stop', 'devstack@aggregate-mirror.service'],
             ['systemctl', 'disable', 'devstack@aggregate-mirror.service']],
            self.play('shutdown.sh'))

    def test_upgrade_ends_with_the_new_package_everywhere(self):
        """Nova-api is restarted: it loads the package only at its start."""
        self.play('shutdown.sh')
        new = self.sandbox.dest / 'new' / sandbox.PLUGIN
        programs = 'opt/stack/data/venv/bin'
        commands = self.play('upgrade.sh')
        self.assertEqual(['-e', '%s[agent]' % new], commands[1][-2:])
        self.assertEqual(
            [['%s/nova-aggregate-mirror-manage' % programs, 'db', 'sync'],
             ['systemctl', 'stop', 'devstack@n-api.service'],
             ['systemctl', 'disable', 'devstack@n-api.service'],
             ['systemctl', 'enable', 'devstack@n-api.service'],
             ['systemctl', 'start', 'devstack@n-api.service'],
             ['systemctl', 'enable', 'devstack@aggregate-mirror.service'],
             ['systemctl', 'start', 'devstack@aggregate-mirror.service'],
             ['%s/nova-aggregate-mirror-status' % programs, 'upgrade',
              'check']], commands[2:])
