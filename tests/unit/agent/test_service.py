# SPDX-License-Identifier: Apache-2.0
"""The loops of an agent, and its lease."""

import logging
import threading

import fixtures

from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror.agent import service
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease
from tests.unit.agent import case
from tests.unit import doubles

REFUSED = case.REFUSED


class TestAgent(case.AgentTest):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.agent.service.DRAIN_INTERVAL', 0.01))
        self.messages = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        self.hand_over('h1')

    def start(self, journal=None):
        kept = journal or self.journal
        self.running = service.Agent(
            self.drain, periodic_sync.PeriodicSync(
                self.conf, self.reconciler, self.figures),
            lease.Lease(kept.database, self.options.leader_lease,
                        now=lambda: self.clock),
            binding.Binding(kept.database, self.nova), self.figures,
            threading.Event())
        self.running.start()
        self.addCleanup(self.running.stop)

    def wait_for_loops(self):
        """Wait until each loop has completed a step."""
        beats = [('beat', loop) for loop in ('drain', 'lease', 'sync')]
        for _step in range(2):
            self.figures.wait_for(*beats)

    def assert_idle(self):
        self.wait_for_loops()
        self.assertNotIn(('leading', True), self.figures.calls)
        self.assertEqual([], self.log)
        self.assertEqual(1, len(self.left()))

    def holder(self):
        return lease.read(self.journal.database)[0]

    def test_agent_that_leads(self):
        """It drains and syncs, and releases the lease when it stops."""
        self.start()
        self.wait_for_loops()
        self.wait_for_loops()
        self.assertNotEqual('', self.holder())
        self.running.stop()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual([], self.left())
        self.assertEqual('', self.holder())
        self.assertIn(('leading', True), self.figures.calls)

    def test_agent_that_does_not_lead(self):
        """It neither drains nor syncs until the leader's lease has expired."""
        leader = lease.Lease(self.open_journal().database,
                             self.options.leader_lease)
        self.assertTrue(leader.step())
        self.start()
        self.assert_idle()
        self.clock += self.options.leader_lease
        self.wait_for_loops()
        self.wait_for_loops()
        self.assertEqual([], self.left())
        self.assertFalse(leader.step())

    def test_agent_of_another_nova(self):
        """Rule 13: it does nothing, and logs the reason once."""
        other = doubles.Nova([])
        other.mapped = {'other': 'cell1 (other)'}
        binding.Binding(self.journal.database, other).bind()
        self.start()
        self.assert_idle()
        self.assertIsNone(lease.read(self.journal.database))
        error, = self.messages.output.splitlines()
        self.assertIn(
            'the journal belongs to another nova, with the cells other; this '
            'nova has the cells cell1 (%s)' % doubles.CELL, error)

    def test_journal_that_is_unavailable_for_a_while(self):
        """It is logged once, and the agent leads as soon as possible."""
        working = self.conf.aggregate_mirror_database.connection
        self.conf.set_override('connection', 'sqlite:////proc/no/where',
                               'aggregate_mirror_database')
        self.start(self.open_journal())
        self.wait_for_loops()
        self.conf.set_override('connection', working,
                               'aggregate_mirror_database')
        self.figures.wait_for(('leading', True))
        self.running.stop()
        lines = self.messages.output.splitlines()
        self.assertEqual(1, len([line for line in lines
                                 if 'cannot be processed' in line]))
        self.assertIn('The journal can be processed again', lines)

    def test_unexpected_error_does_not_end_a_loop(self):
        """The agent continues with the next step."""
        def fail():
            raise ZeroDivisionError('unexpected')

        self.drain.step = fail
        self.start()
        self.wait_for_loops()
        self.wait_for_loops()
        self.assertIn('The drain loop failed and will be retried',
                      self.messages.output)
