# SPDX-License-Identifier: Apache-2.0
"""The agent as a process."""

import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import fixtures as base_fixtures
from prometheus_client import parser
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import store
from tests.cloud import loopback
from tests import commands

from tests import fixtures
from tests import import_guard
from tests import patience
from tests import placed
from tests import placement_service

CONF = fixtures.CONF
PATIENCE = patience.seconds(300)
PASSWORD = 'correct-horse'
# It reports imports in its threads that may patch them.
COMMAND = [sys.executable, '-W', 'ignore', '-c', '''
import atexit, gc, sys
from tests import import_guard
import_guard.install()
from nova_aggregate_mirror.cmd import agent
atexit.register(lambda: print('Frozen objects:', gc.get_freeze_count()))
sys.exit(agent.main())
''']
# Its syncs hang in a thread, which the interpreter would wait for, too.
HANGING = [*COMMAND[:-1], '''
import threading
from nova_aggregate_mirror.cmd import agent
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import survey

def hang(_item):
    print('A thread hangs', flush=True)
    threading.Event().wait()

agent._longest_step = lambda: 1.0
survey.read_memberships = (
    lambda *_args: workers.in_threads(2)(hang, range(2)))
''' + COMMAND[-1]]


class TestProcess(testtools.TestCase):
    """The agent as systemd runs it."""

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        self.placement = self.cloud.placement
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.rack = self.cloud.create_aggregate('rack')
        self.one = self.cloud.create_host('h1')
        for host in (self.one, self.cloud.create_host('h2', nodes=2)):
            self.cloud.add_host(self.zone, host)
        self.directory = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path)
        self.conf = self.directory / 'nova.conf'
        self.port, = loopback.free_ports(1)
        self.write_conf()

    def write_conf(self, options='sync_interval = 1'):
        conf.register_opts(CONF)
        self.conf.write_text(self.cloud.nova_conf(
            '[aggregate_mirror]\nmetrics_port = %d\n%s' % (
                self.port, options)))

    def start(self):
        """Start an agent in a process that has imported its modules."""
        return self.stop_after_test(commands.start(
            commands.AGENT, ['--config-file', str(self.conf)],
            str(self.directory / 'log')))

    def import_and_start(self, command=COMMAND):
        """Start an agent, which may not import nova in a thread."""
        self.addCleanup(lambda: self.assertNotIn(
            import_guard.REPORT, self.log()))
        with open(self.directory / 'log', 'wb') as log:
            return self.stop_after_test(subprocess.Popen(
                [*command, '--config-file', str(self.conf)], stdout=log,
                stderr=log))

    def stop_after_test(self, process):
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def log(self):
        return (self.directory / 'log').read_text()

    def wait_for(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, self.log())
            time.sleep(0.05)

    def wait_for_start(self, count, text=''):
        """Wait until the agent begins to sync again, and logs a text."""
        self.wait_for(lambda: text in self.log())
        self.wait_for(
            lambda: self.log().count('runs the full syncs') == count)

    def wait_for_second_pass(self, past):
        """Wait until the same sync has run twice."""
        def is_repeated():
            return any(one.passes > 1 for one in full_syncs.newest(past))

        self.wait_for(is_repeated)

    def wait_for_aggregates(self, host, *aggregates):
        """Wait until placement has the first node of a host in these."""
        expected = {aggregate.uuid for aggregate in aggregates}
        node = host.nodes[0]
        self.wait_for(lambda: self.placement.aggregates(node) == expected)

    def reload(self, process):
        """Send SIGHUP; wait until the new agent leads."""
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.log().count('is the leader') == 2)
        self.wait_for(lambda: self.figure('leader'))

    def drift_of_another_tool(self):
        self.placement.set_aggregates(
            self.one.nodes[0], [self.zone.uuid, self.rack.uuid])

    def test_life_of_an_agent(self):
        """It repairs, reports health, reloads its configuration and stops."""
        process = self.import_and_start()
        self.drift_of_another_tool()
        self.wait_for(lambda: not self.cloud.drift())
        # Then it finds no drift twice, which makes a single entry.
        past = store.Journal(CONF).database
        self.wait_for_second_pass(past)
        last, *before = full_syncs.newest(past)
        self.assertEqual(('agent --prune', 0, 0, 0), (
            last.command, last.status, last.added, last.removed))
        self.assertLess(0, sum(one.added + one.removed for one in before))
        with urllib.request.urlopen(
                'http://127.0.0.1:%d/healthz' % self.port) as answer:
            self.assertEqual(200, answer.status)
        self.assertEqual(set(), self.unblocked(process))
        self.write_conf('sync_interval = 1\nprune = false')
        process.send_signal(signal.SIGHUP)
        self.wait_for_start(2, 'SIGHUP')
        self.cloud.nova.add_member(self.rack.uuid, 'h2')
        self.drift_of_another_tool()
        # Missing associations are added; stale associations are kept now.
        self.wait_for(lambda: len(self.cloud.drift()) == 1)
        # They are kept, too, after a mistake in the file.
        self.write_conf('sync_interval = 1\nprune = flase')
        process.send_signal(signal.SIGHUP)
        self.wait_for_start(3, 'cannot be used')
        self.placement.set_aggregates(self.one.nodes[0], [self.rack.uuid])
        self.wait_for_aggregates(self.one, self.zone, self.rack)
        # A file that cannot be read changes nothing.
        self.conf.write_bytes(b'# \xfc')
        process.send_signal(signal.SIGHUP)
        self.wait_for_start(4, 'cannot be read')
        # Credentials that cannot be used are not said to be left alone.
        self.write_conf('[placement]\nauth_type = nonsense')
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: 'Placement cannot be used: ' in self.log())
        self.assertNotIn('previous values: [placement]', self.log())
        self.assertNotIn('InvalidConfiguration: ', self.log())
        self.assertEqual(set(), self.unblocked(process))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())
        self.assertNotIn(placement_service.TOKEN, self.log())

    def test_observing(self):
        """It finds the drift and only sends GET, until it is to mirror."""
        self.drift_of_another_tool()
        del self.placement.requests[:]
        self.write_conf('sync_interval = 1\nmode = observe')
        process = self.start()
        kept = store.Journal(CONF)
        past = kept.database
        self.wait_for_second_pass(past)
        self.assertEqual({'GET'}, {
            request.method for request in self.placement.requests})
        self.assertEqual(1, len(self.cloud.drift()))
        self.assertEqual([(True, False, 0, 1)], [
            (one.observed, one.compared, one.added, one.removed)
            for one in full_syncs.newest(past)])
        self.assertEqual(
            {self.zone.uuid, self.rack.uuid}, kept.ledger.entries().keys())
        for name, labels, value in (
                ('drift_associations', {'zone': '', 'direction': 'stale'}, 1),
                ('associations_removed_total', {'loop': 'sync'}, 0),
                ('observing', {}, 1), ('leader', {}, 0)):
            self.assertEqual(value, self.figure(name, **labels), name)
        self.assertIn('Full sync, observed only. Placement differs from nova: '
                      '1 association to remove.', self.log())
        self.write_conf()
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: not self.cloud.drift())
        self.assertEqual((0, 1), (
            self.figure('observing'), self.figure('leader')))

    def test_short_timeout_of_users_requests(self):
        """The drain gets an answer that takes longer than a user waits."""
        self.write_conf('inline_timeout = 0.1\nsync_interval = 3600')
        self.start()
        past = store.Journal(CONF).database
        self.wait_for_start(1)
        self.wait_for(lambda: full_syncs.newest(past))
        self.placement.refuse()
        self.cloud.add_host(self.rack, self.one)
        # While it refuses: the agent is quick.
        self.assertEqual(1, len(self.cloud.drift()))
        self.placement.recover()
        self.placement.slow(0.2)
        self.wait_for(lambda: not self.cloud.drift())

    def test_template_of_a_cell(self):
        """All that it and an audit need of nova is imported before them."""
        far = self.cloud.create_host('far', cell='cell2')
        self.write_conf(
            'sync_interval = 1\naudit_interval = 1\n'
            'request_filters = tenant_isolation\n'
            '[database]\nconnection = sqlite://')
        process = self.import_and_start()
        self.wait_for(lambda: self.figure('leader'))
        mapping = self.cloud.nova.cell('cell2')
        mapping.database_connection = mapping.database_connection.replace(
            'sqlite:', '{scheme}:')
        mapping.save()
        self.cloud.nova.add_member(self.rack.uuid, 'far')
        self.wait_for_aggregates(far, self.rack)
        self.wait_for(lambda: self.figure(
            'last_success_timestamp_seconds', loop='audit'))
        self.reload(process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())
        # What the agent has imported lives as long as it does.
        frozen, = re.findall(r'Frozen objects: (\d+)', self.log())
        self.assertGreater(int(frozen), 100000)

    def test_loop_that_hangs(self):
        """It keeps neither a new agent from leading nor the process."""
        self.write_conf('leader_lease = 3')
        process = self.import_and_start(HANGING)
        self.wait_for(lambda: 'A thread hangs' in self.log())
        self.reload(process)
        self.assertIn('After 1 s these loops have not ended: sync.',
                      self.log())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())

    def unblocked(self, process):
        """Return the signals that end the process in another thread."""
        signals = set()
        for task in pathlib.Path('/proc/%d/task' % process.pid).iterdir():
            try:
                status = (task / 'status').read_text()
            except (FileNotFoundError, ProcessLookupError):
                # A thread that has ended takes no signal.
                continue
            blocked, = re.findall(r'SigBlk:\s*(\w+)', status)
            if task.name == str(process.pid):
                continue
            for number in signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2:
                if not int(blocked, 16) >> number - 1 & 1:
                    signals.add(number)
        return signals

    def test_guru_meditation_report(self):
        """SIGUSR2 shows what each thread does, without secrets."""
        self.write_conf(
            'sync_interval = 1\n[oslo_reports]\nlog_dir = %s\n'
            '[vmware]\nhost_password = %s' % (self.directory, PASSWORD))
        process = self.start()
        self.wait_for(lambda: 'is the leader' in self.log())
        process.send_signal(signal.SIGUSR2)
        self.wait_for(lambda: ' token = ***' in self.report())
        text = self.report()
        for part in ('product = nova-aggregate-mirror', 'in _loop',
                     'inline_timeout = '):
            self.assertIn(part, text)
        self.assertNotIn(PASSWORD, text)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())

    def report(self):
        """Return the only report, or '' if there is none yet."""
        reports = self.directory.glob(
            'nova-aggregate-mirror-agent_gurumeditation_*')
        text, = [path.read_text() for path in reports] or ['']
        return text

    def test_audits(self):
        """Servers in the wrong zone are counted, from 0 on, and logged."""
        self.cloud.create_host('far', cell='cell2')
        flavor = placed.create_flavor()
        placed.create_server(self.cloud.nova, flavor, 'h1')
        self.write_conf('audit_interval = 1')
        self.start()
        self.wait_for(
            lambda: self.figure('misplaced_servers', rule='zone') == 0.0)
        placed.create_server(self.cloud.nova, flavor, 'far', 'cell2')
        self.wait_for(
            lambda: self.figure('misplaced_servers', rule='zone') == 1.0)
        self.wait_for(lambda: 'Audit: 1 server is on a host' in self.log())

    def test_audits_that_cannot_run(self):
        """The agent mirrors and is healthy."""
        self.write_conf('sync_interval = 1\naudit_interval = 1\n'
                        '[DEFAULT]\ntransport_url = nonsense://h/')
        self.start()
        self.wait_for(lambda: 'The servers are not audited' in self.log())
        self.drift_of_another_tool()
        self.wait_for(lambda: not self.cloud.drift())
        with urllib.request.urlopen(
                'http://127.0.0.1:%d/healthz' % self.port) as answer:
            self.assertEqual(200, answer.status)

    def figure(self, name, **labels):
        """Return the metric, or None before the agent serves it."""
        try:
            with urllib.request.urlopen(
                    'http://127.0.0.1:%d/metrics' % self.port) as answer:
                text = answer.read().decode()
        except urllib.error.URLError:
            return None
        return next((
            sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == 'nova_aggregate_mirror_' + name
            and sample.labels == {**labels, 'region': ''}), None)
