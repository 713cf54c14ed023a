# SPDX-License-Identifier: Apache-2.0
"""What the agent repairs unasked, and how it behaves as a process."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import fixtures as base_fixtures
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import lease
from nova_aggregate_mirror import reconciler
from nova_aggregate_mirror import report
from nova_aggregate_mirror.source import database
from tests.cloud import processes
from tests import fixtures
from tests import placement_service

CONF = fixtures.CONF
FOREIGN = uuidutils.generate_uuid()
PATIENCE = 60
COMMAND = [sys.executable, '-W', 'ignore', '-c', 'import sys; '
           'from nova_aggregate_mirror.cmd import agent; '
           'sys.exit(agent.main())']
NOVA_CONF = """
[DEFAULT]
state_path = %(state)s
[api_database]
connection = %(api)s
[aggregate_mirror]
metrics_port = %(port)d
%(options)s
[placement]
%(placement)s
"""


class Figures:
    def __init__(self):
        self.refused = []

    def synced(self, *args, refused=False, **_kwargs):
        self.refused.append(refused or args[-1] is True)

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class AgentTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        self.placement = self.cloud.placement
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.rack = self.cloud.create_aggregate('rack')
        self.one = self.cloud.create_host('h1')
        self.many = self.cloud.create_host('h2', nodes=2)
        for host in (self.one, self.many):
            self.cloud.add_host(self.zone, host)


class TestSync(AgentTest):
    """One interval puts right what no operation has told of."""

    def setUp(self):
        super().setUp()
        self.clock = time.time()
        self.figures = Figures()
        self.journal = journal.Journal(CONF, now=lambda: self.clock)
        self.sync = agent.Sync(
            CONF, reconciler.Reconciler(
                self.journal, database.DatabaseSource(),
                report.ReportClient(CONF)),
            self.figures, now=lambda: self.clock)
        self.sync.step()

    def repaired(self):
        """Whether there was drift, and one sync later there is none."""
        self.assertNotEqual([], self.cloud.drift())
        self.clock += CONF.aggregate_mirror.sync_interval
        self.sync.step()
        self.assertEqual([], self.cloud.drift())

    def test_provider_that_is_recreated(self):
        """It comes back without aggregates when nova-compute restarts."""
        node = self.one.nodes[0]
        self.placement.set_aggregates(node, [])
        self.placement.delete_provider(node)
        self.cloud.create_providers(self.one)
        self.repaired()

    def test_new_ironic_node(self):
        """It belongs where its host does."""
        node = self.cloud.nova.create_node('h2', 2, 'cell1')
        self.placement.create_provider(node, 'a-new-node')
        self.repaired()

    def test_ironic_node_that_moves(self):
        """It leaves the aggregates of one host for those of the other."""
        self.cloud.remove_host(self.zone, self.one)
        with self.cloud.nova.in_cell('cell1') as context:
            node = objects.ComputeNode.get_by_uuid(
                context, self.many.nodes[0])
            node.host = 'h1'
            node.save()
        self.repaired()

    def test_cell_that_is_added(self):
        """Its hosts are mirrored by an agent that has long been running."""
        far = self.cloud.create_host('far', cell='cell2')
        self.cloud.add_host(self.zone, far)
        mapping = self.cloud.nova._cell('cell2')
        connection = mapping.database_connection
        objects.HostMapping.get_by_host(
            nova_context.get_admin_context(), 'far').destroy()
        mapping.destroy()
        self.placement.set_aggregates(far.nodes[0], [])
        self.clock += CONF.aggregate_mirror.sync_interval
        self.sync.step()
        self.assertEqual(set(), self.placement.aggregates(far.nodes[0]))
        objects.CellMapping(
            nova_context.get_admin_context(), name='cell2',
            uuid=uuidutils.generate_uuid(), transport_url='fake:/',
            database_connection=connection).create()
        self.repaired()

    def test_stale_write_of_another_tool(self):
        """Ours is pruned, and the other tool's own stays."""
        node = self.one.nodes[0]
        self.placement.set_aggregates(
            node, [self.zone.uuid, self.rack.uuid, FOREIGN])
        self.repaired()
        self.assertEqual({self.zone.uuid, FOREIGN},
                         self.placement.aggregates(node))

    def test_change_behind_a_nova_api_without_hooks(self):
        """Whoever wrote nova's database, it is the truth."""
        objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), self.rack.uuid).add_host('h1')
        self.repaired()

    def test_brake_trips_on_an_emptied_table(self):
        """Nothing is removed; the log, the figures and a person know."""
        with api_db.get_engine().begin() as connection:
            connection.exec_driver_sql('DELETE FROM aggregate_hosts')
        self.clock += CONF.aggregate_mirror.sync_interval
        result = self.sync.step()
        self.assertIn('3 associations would be removed', result.refused)
        for node in (*self.one.nodes, *self.many.nodes):
            self.assertEqual({self.zone.uuid},
                             self.placement.aggregates(node))
        self.assertTrue(self.figures.refused[-1])
        self.assertIn('nothing was removed',
                      ' '.join(self.cloud.warnings()))

    def test_deleted_aggregates_are_probed_many_to_a_query(self):
        """A cloud that makes an aggregate per lease stays as fast."""
        gone = {uuidutils.generate_uuid() for _number in range(200)}
        self.journal.remember(gone)
        del self.placement.requests[:]
        self.clock += CONF.aggregate_mirror.sync_interval
        self.sync.step()
        # The list, two aggregates that live, and fifty of the dead a time.
        self.assertEqual(1 + 2 + 4, len(self.placement.requests))
        self.assertLessEqual(gone, self.journal.ledger())
        self.clock += CONF.aggregate_mirror.forget_after + 1
        self.sync.step()
        self.assertEqual(set(), gone & self.journal.ledger())


class TestLease(AgentTest):
    """Of two agents one leads, and the other when that is gone."""

    def setUp(self):
        super().setUp()
        self.clock = 0.0
        self.ours = journal.Journal(CONF)
        self.lease = lease.Lease(self.ours, 'sync', 15,
                                 now=lambda: self.clock)

    def test_leader_on_this_host_is_killed(self):
        """Its lock tells, and nobody waits."""
        told, ready = os.pipe()
        child = os.fork()
        if not child:
            try:
                if lease.Lease(journal.Journal(CONF), 'sync', 15).step():
                    os.write(ready, b'.')
                signal.pause()
            finally:
                os._exit(1)
        self.assertEqual(b'.', os.read(told, 1))
        self.assertFalse(self.lease.step())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertTrue(self.lease.step())

    def test_leader_on_another_host_is_gone(self):
        """The lease runs out by this host's own clock."""
        elsewhere = type('Owner', (), {
            'token': lambda self: 'controller-2:0123:77-abc',
            'is_mine': lambda self, token: token == self.token()})()
        other = lease.Lease(
            journal.Journal(CONF, owner=elsewhere), 'sync', 15)
        self.assertTrue(other.step())
        for seconds, leads in ((0, False), (14, False), (2, True)):
            self.clock += seconds
            self.assertEqual(leads, self.lease.step())
        self.assertTrue(self.lease.step())


class TestProcess(AgentTest):
    """The agent as systemd runs it."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path)
        self.conf = self.directory / 'nova.conf'
        self.port, = processes.free_ports(1)
        self.write_conf()

    def write_conf(self, options='sync_interval = 1', placement=None,
                   api=None):
        conf.register_opts(CONF)
        self.conf.write_text(NOVA_CONF % {
            'state': CONF.state_path, 'port': self.port, 'options': options,
            'api': api_db.get_engine().url if api is None else api,
            'placement': 'auth_type = admin_token\nendpoint = %s\ntoken = %s'
            % (self.placement.url, placement_service.TOKEN)
            if placement is None else placement})

    def run_command(self, *argv):
        done = subprocess.run(
            [*COMMAND, '--config-file', str(self.conf), *argv],
            capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotIn('Traceback', done.stdout + done.stderr)
        return done

    def start(self):
        log = open(self.directory / 'log', 'wb')
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [*COMMAND, '--config-file', str(self.conf)], stdout=log,
            stderr=log)
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

    def drift_of_another_tool(self):
        self.placement.set_aggregates(
            self.one.nodes[0], [self.zone.uuid, self.rack.uuid])

    def test_life_of_an_agent(self):
        """It repairs, is well, reads its configuration again, and ends."""
        process = self.start()
        self.drift_of_another_tool()
        self.wait_for(lambda: not self.cloud.drift())
        # Then it finds everything right twice, which is one entry.
        self.wait_for(lambda: any(
            one.passes > 1 for one in journal.Journal(CONF).syncs()))
        last, *before = journal.Journal(CONF).syncs()
        self.assertEqual(('agent --prune', 0, 0, 0), (
            last.command, last.status, last.added, last.removed))
        self.assertLess(0, sum(one.added + one.removed for one in before))
        with urllib.request.urlopen(
                'http://127.0.0.1:%d/healthz' % self.port) as answer:
            self.assertEqual(200, answer.status)
        self.write_conf('sync_interval = 1\nprune = false')
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: 'SIGHUP' in self.log()
                      and self.log().count('does the full syncs') == 2)
        objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), self.rack.uuid).add_host('h2')
        self.drift_of_another_tool()
        # What lacks is added, and what is stale is not removed any more.
        self.wait_for(lambda: len(self.cloud.drift()) == 1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertNotIn('Traceback', self.log())
        self.assertNotIn(placement_service.TOKEN, self.log())

    def test_once(self):
        """It repairs, says what it did, and ends."""
        self.drift_of_another_tool()
        done = self.run_command('--once')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('| removed | h1   | %s | rack' % self.one.nodes[0],
                      done.stdout)
        self.assertEqual([], self.cloud.drift())
        entry, = journal.Journal(CONF).syncs()
        self.assertEqual('agent --once --prune', entry.command)

    def test_once_with_the_brake(self):
        """Exit 8, with the figures and what to do."""
        self.run_command('--once')
        with api_db.get_engine().begin() as connection:
            connection.exec_driver_sql('DELETE FROM aggregate_hosts')
        done = self.run_command('--once')
        self.assertEqual(8, done.returncode)
        self.assertIn('3 associations would be removed', done.stderr)
        self.assertIn('max_removed_share', done.stderr)

    def test_what_keeps_it_from_running(self):
        """One line that says what to do, and exit 255."""
        for changes, expected in (
                ({'options': 'sync_interval = soon'}, 'sync_interval'),
                ({'placement': ''}, 'auth_type'),
                ({'api': ''}, '[api_database]')):
            self.write_conf(**changes)
            done = self.run_command()
            self.assertEqual(255, done.returncode)
            line, = done.stderr.splitlines()
            self.assertIn(expected, line)

    def test_help(self):
        """What --once means can be read."""
        done = self.run_command('--help')
        self.assertEqual(0, done.returncode)
        self.assertIn('--once', done.stdout)
