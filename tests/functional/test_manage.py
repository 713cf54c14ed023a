# SPDX-License-Identifier: Apache-2.0
"""The manage command as an operator runs it: output and exit status."""

import pathlib
import signal
import subprocess

import fixtures as base_fixtures
import testtools

from tests import commands
from tests import fixtures
from tests import patience
from tests import placement_service
from tests import processes


class ManageTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.conf = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'nova.conf')
        self.write_conf()
        self.zone = self.cloud.create_aggregate('zone', 'az1')

    def write_conf(self, more=''):
        self.conf.write_text(self.cloud.nova_conf(more))

    def host(self, name, **kwargs):
        """Add a member host without associations in placement."""
        host = self.cloud.create_host(name, **kwargs)
        self.cloud.nova.add_member(self.zone.uuid, name)
        return host

    def run_command(self, *argv):
        done = commands.run(
            commands.MANAGE, ['--config-file', str(self.conf), *argv])
        self.assertNotIn('Traceback', done.stdout + done.stderr)
        self.assertNotIn(placement_service.TOKEN, done.stdout + done.stderr)
        return done

    def start(self, *argv):
        """Start a command, which the test kills if it runs until its end."""
        process = subprocess.Popen(
            [commands.script(commands.MANAGE), '--config-file',
             str(self.conf), *argv], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def sync(self, *argv):
        return self.run_command('placement', 'sync_aggregates', *argv)


class TestCommands(ManageTest):

    def test_what_could_not_run(self):
        """It exits with 255 and names what to correct."""
        for content, text in (
                ('[DEFAULT]\ndebug = maybe', 'argument --debug: Invalid '
                 'Boolean value: maybe\nnova-aggregate-mirror-manage: that '
                 'value cannot be used: correct the argument, or the option '
                 'of its name in nova.conf\n'),
                ('[DEFAULT]\nlog_file = /none/log', 'the log cannot be set '
                 'up: [Errno 2] No such file or directory: \'/none/log\'; '
                 'run the command as the user of nova-api, '),
                ('', '--config-file')):
            self.conf.write_text(content)
            done = self.sync()
            self.assertEqual(255, done.returncode, text)
            self.assertIn(text, done.stderr)
        for argv in ((), ('placement',), ('placement', 'sink')):
            done = self.run_command(*argv)
            self.assertEqual(2, done.returncode)
            self.assertIn('usage:', done.stderr)

    def test_journal_that_cannot_be_created(self):
        """A dry run has its result, and a line; a sync does not begin."""
        self.write_conf('[aggregate_mirror_database]\nconnection = '
                        'sqlite:////proc/nowhere/journal.sqlite\n')
        trouble = 'the journal cannot use /proc/n'
        self.host('h1')
        done = self.sync('--dry-run', '--quiet')
        self.assertEqual(7, done.returncode)
        self.assertIn('Placement differs from nova: 1 ', done.stdout)
        self.assertIn('Without --dry-run, this cannot begin: ' + trouble,
                      done.stderr)
        done = self.sync()
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        self.assertIn(trouble, done.stderr)

    def begin(self):
        """Start the command for h1; return it when it waits for the zone."""
        process = self.start('placement', 'wait', '--host', 'h1')
        processes.hear(process.stderr, 'aggregate zone (%s)' % self.zone.uuid)
        return process

    def test_host_that_is_mirrored_meanwhile(self):
        """It exits with 0 then, and has written nothing."""
        host = self.host('h1')
        process = self.begin()
        self.cloud.placement.set_aggregates(host.nodes[0], [self.zone.uuid])
        output, errors = process.communicate(timeout=commands.TIMEOUT)
        self.assertEqual((0, ''), (process.returncode, errors))
        self.assertRegex(
            output, r'^Host h1: placement has it in 1 aggregate after \d+ s: '
            r'zone \(%s\)\nIf it is disabled: openstack compute service set '
            r'--enable h1 nova-compute\n$' % self.zone.uuid)
        self.assertEqual({'GET'}, {
            request.method for request in self.cloud.placement.requests})
        self.assertFalse(pathlib.Path(
            fixtures.CONF.state_path, 'aggregate_mirror').exists())

    def test_interrupted(self):
        """Ctrl-C ends it immediately, with 130."""
        self.host('h1')
        process = self.begin()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=commands.TIMEOUT)
        self.assertEqual(
            (130, '', 'nova-aggregate-mirror-manage: interrupted\n'),
            (process.returncode, output, errors))

    def test_timeout(self):
        """It exits with 7 and names what is missing, with a step."""
        host = self.host('h1')
        done = self.run_command('placement', 'wait', '--host', 'h1',
                                '--timeout', str(patience.seconds(2)))
        self.assertEqual((7, ''), (done.returncode, done.stdout))
        self.assertIn(
            'Missing: host h1 (provider %s): aggregate zone (%s): run "nova-'
            'aggregate-mirror-manage placement sync_aggregates --host h1"' % (
                host.nodes[0], self.zone.uuid), done.stderr)

    def test_missing_journal_is_not_created(self):
        """Without nova-api's configuration it is an error."""
        self.conf.write_text('[DEFAULT]\nstate_path = %s\n'
                             % fixtures.CONF.state_path)
        done = self.run_command('journal', 'forget', 'unknown')
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        self.assertIn('the configuration has no [api_database] connection',
                      done.stderr)
        self.assertFalse(pathlib.Path(
            fixtures.CONF.state_path, 'aggregate_mirror').exists())
