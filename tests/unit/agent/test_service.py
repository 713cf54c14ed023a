# SPDX-License-Identifier: Apache-2.0
"""The loops of an agent, and its lease."""

import functools
import importlib.util
import logging
import socket
import threading
import types

import fixtures
import sqlalchemy as sa

from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror.agent import service
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.reconcile import sync_history
from tests import statements
from tests.unit.agent import case
from tests.unit import doubles

LOOPS = ('drain', 'lease', 'sync')


class Impatient(threading.Event):
    """An event that nobody waits for longer than a moment."""

    def wait(self, timeout=None):
        return super().wait(min(timeout, 0.01))


class Clock(threading.Event):
    """The clock of a test: the loop whose wait ends first goes on alone."""

    def __init__(self, test):
        super().__init__()
        self._test = test
        self._changed = threading.Condition()
        self._wakes = {}

    def wait(self, timeout=None):
        name = threading.current_thread().name
        with self._changed:
            self._wakes[name] = self._test.clock + timeout
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self.is_set() or name not in self._wakes)
        return self.is_set()

    def set(self):
        with self._changed:
            super().set()
            self._changed.notify_all()

    def advance(self, until):
        """Let the loops run until this time."""
        with self._changed:
            while True:
                if not self._changed.wait_for(
                        lambda: len(self._wakes) == len(LOOPS), case.TIMEOUT):
                    raise AssertionError('a loop does not wait')
                name = min(self._wakes, key=lambda name: (
                    self._wakes[name], name))
                if self._wakes[name] > until:
                    break
                self._test.clock = self._wakes.pop(name)
                self._changed.notify_all()
        self._test.clock = until


class ServiceTest(case.AgentTest):

    def start(self, stop=None, journal=None, audit=None):
        database = (journal or self.journal).database

        def now():
            return self.clock

        self.sync = periodic_sync.PeriodicSync(
            self.conf, self.reconciler, self.figures, now=now,
            note=functools.partial(
                sync_history.note, self.journal.database, 'agent'))
        self.lease = lease.Lease(
            database, self.options.leader_lease, clock=now)
        self.running = service.Agent(
            self.drain, self.sync, self.lease,
            binding.Binding(
                database, self.nova.cell_mappings, self.nova.aggregates),
            self.figures, stop or Impatient(), audit)
        self.running.start()
        self.addCleanup(self.running.stop, case.TIMEOUT)


class TestAgent(ServiceTest):

    def setUp(self):
        super().setUp()
        self.messages = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        self.hand_over('h1')

    def wait_for_loops(self, steps=1):
        """Wait until each loop has completed so many steps."""
        beats = [('beat', loop) for loop in LOOPS]
        for _step in range(2 * steps):
            self.figures.wait_for(*beats)

    def foreign_journal(self):
        """Let the journal belong to a nova without the aggregate a."""
        binding.replace(self.journal.database, {'other': ''})
        change = sa.update(models.ledger).values(aggregate_uuid='of other')
        self.journal.database.run(
            lambda connection: connection.execute(change))

    def assert_idle(self):
        self.wait_for_loops()
        self.assertNotIn(('set_leader', True), self.figures.calls)
        self.assertEqual([], self.log)
        self.assertEqual(1, len(self.left()))

    def holder(self):
        return lease.read(self.journal.database)[0]

    def test_agent_that_leads(self):
        """It drains and syncs, and releases the lease when it stops.

        After an unexpected error a loop continues with the next step.
        """
        with fixtures.MockPatchObject(
                self.drain, 'step', side_effect=ZeroDivisionError):
            self.start()
            self.wait_for_loops(2)
        self.assertIn('The drain loop failed and will be retried',
                      self.messages.output)
        self.wait_for_loops(2)
        self.assertNotEqual('', self.holder())
        self.running.stop(case.TIMEOUT)
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual([], self.left())
        self.assertEqual('', self.holder())
        self.assertIn(('set_leader', True), self.figures.calls)

    def test_agent_that_does_not_lead(self):
        """It neither drains nor syncs until the leader's lease has expired.

        It logs for whom and for what it waits, once.
        """
        leader = lease.Lease(self.open_journal().database,
                             self.options.leader_lease)
        self.assertTrue(leader.step())
        self.start()
        self.assert_idle()
        self.assertTrue(leader.step())
        self.wait_for_loops()
        self.assertEqual(
            'This agent stands by: the agent on %s holds the lease; this one '
            'takes over when that releases it, or does not renew it for 10 '
            'seconds\n' % socket.gethostname(), self.messages.output)
        self.clock += self.options.leader_lease
        self.wait_for_loops(2)
        self.assertEqual([], self.left())
        self.assertFalse(leader.step())
        self.assertIn('This agent is the leader: ',
                      self.messages.output.splitlines()[1])

    def test_agent_of_another_nova(self):
        """Rule 13: it does nothing, and logs the reason once."""
        self.foreign_journal()
        self.start()
        self.assert_idle()
        self.assertIsNone(lease.read(self.journal.database))
        error, = self.messages.output.splitlines()
        self.assertIn(
            'the journal belongs to another nova, with the cells other; this '
            'nova has the cells cell1 (%s)' % doubles.CELL, error)

    def test_journal_that_another_nova_gets_meanwhile(self):
        """An agent on standby, which was bound, does not lead then."""
        leader = lease.Lease(self.open_journal().database,
                             self.options.leader_lease)
        self.assertTrue(leader.step())
        self.start()
        self.assert_idle()
        self.foreign_journal()
        self.clock += self.options.leader_lease
        self.assert_idle()
        self.assertIn('the journal belongs to another nova',
                      self.messages.output)
        # The next agent need not wait for the lease, which this one has.
        self.assertNotEqual('', self.holder())
        self.running.stop(case.TIMEOUT)
        self.assertEqual('', self.holder())

    def test_journal_that_is_unavailable_for_a_while(self):
        """It is logged once, and the agent leads as soon as possible."""
        working = self.conf.aggregate_mirror_database.connection
        self.conf.set_override('connection', 'sqlite:////proc/no/where',
                               'aggregate_mirror_database')
        self.start(journal=self.open_journal())
        self.wait_for_loops()
        self.conf.set_override('connection', working,
                               'aggregate_mirror_database')
        self.figures.wait_for(('set_leader', True))
        self.running.stop(case.TIMEOUT)
        lines = self.messages.output.splitlines()
        self.assertEqual(1, len([line for line in lines
                                 if 'cannot be processed' in line]))
        self.assertIn('The journal can be processed again', lines)

    def test_figures_after_a_failure_of_the_journal(self):
        """They were reset with the lease, and are compared at once."""
        self.start()
        self.wait_for_loops()
        with fixtures.MockPatchObject(
                self.lease, 'step',
                side_effect=exceptions.JournalUnavailable('closed')):
            self.figures.wait_for(('set_leader', False))
        self.figures.wait_for(('set_leader', True))
        self.wait_for_loops()
        names = [name for name, *_arguments in self.figures.calls]
        self.assertLess(1, names.count('observe_sync'))

    def test_audit_that_hangs(self):
        """It holds up neither a stop nor the agent after a reload."""
        audit = types.SimpleNamespace(step=lambda: None)
        self.start(audit=lambda _stopping: audit.step())
        self.hang(audit)
        # It is the only loop that has not ended.
        self.assertFalse(self.running.stop(case.TIMEOUT))
        self.assertNotIn('not ended', self.messages.output)
        self.assertEqual('', self.holder())
        self.hand_over('h2')
        self.start()
        self.wait_for_loops(2)
        self.assertEqual([], self.left())

    def hang(self, worker, answer=None):
        """Let the next step hang; return what lets it go on."""
        began, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def step():
            began.set()
            release.wait()
            return answer

        worker.step = step
        self.assertTrue(began.wait(case.TIMEOUT))
        return release

    def test_loop_that_does_not_end(self):
        """It keeps no stop waiting; as it may write, the lease is kept.

        The agent after a reload works beside it, once the lease has expired.
        """
        self.start()
        self.figures.wait_for(('set_leader', True))
        release = self.hang(self.sync)
        holder = self.holder()
        self.assertFalse(self.running.stop(0.5))
        self.assertRegex(
            self.messages.output, 'loops have not ended: .*sync. The lease is '
            'not released')
        self.assertEqual(holder, self.holder())
        self.hand_over('h2')
        hanging = self.running
        self.start()
        self.wait_for_loops()
        self.clock += self.options.leader_lease
        self.figures.wait_for(('set_leader', True))
        self.wait_for_loops(2)
        self.assertEqual([], self.left())
        release.set()
        self.assertTrue(hanging.stop(case.TIMEOUT))
        self.assertNotEqual('', self.holder())

    def test_thread_that_cannot_be_joined(self):
        """It has executed a copy of threading, as eventlet does."""
        executed = threading.Event()

        def step():
            spec = importlib.util.find_spec('threading')
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            executed.set()

        self.start()
        self.figures.wait_for(('set_leader', True))
        self.sync.step = step
        self.assertTrue(executed.wait(case.TIMEOUT))
        self.assertTrue(self.running.stop(case.TIMEOUT))
        self.assertEqual('', self.holder())

    def test_stop_of_the_leader(self):
        """The metrics say so at once; no loop takes that back."""
        self.start()
        self.figures.wait_for(('set_leader', True))
        release = self.hang(self.lease, answer=True)
        del self.figures.calls[:]
        self.assertFalse(self.running.stop(0.0))
        self.assertIn(('set_leader', False), self.figures.calls)
        release.set()
        self.running.stop(case.TIMEOUT)
        self.assertNotIn(('set_leader', True), self.figures.calls)


class TestIdle(ServiceTest):
    """What an agent costs the journal's database.

    Each COMMIT of a write is a write-set of a Galera cluster.
    """

    def setUp(self):
        super().setUp()
        self.assertEqual((10, 60), (self.options.leader_lease,
                                    self.options.sync_interval))
        self.time = Clock(self)
        self.start(stop=self.time)
        self.time.advance(65)

    def test_transactions_of_an_idle_minute(self):
        """At most 60, of which at most 22 write; one sync is among them."""
        del self.figures.calls[:]
        with statements.transactions() as committed:
            self.time.advance(125)
        self.assertEqual('success', self.figures.last('observe_sync')[0])
        self.assertLessEqual(len(committed), 60)
        self.assertLessEqual(sum(committed), 22)

    def test_leader_keeps_its_lease(self):
        """It renews it three times while it would expire."""
        other = lease.Lease(self.open_journal().database, 10,
                            clock=lambda: self.clock)
        for second in range(70, 130):
            self.time.advance(second)
            self.assertFalse(other.step())

    def test_row_that_is_handed_over(self):
        """An idle agent tries it at most 2.5 seconds later.

        While a row of a call waits, the agent looks every second.
        """
        for _number in range(8):
            start = self.clock + 1.7
            self.time.advance(start)
            self.hand_over('h1')
            self.time.advance(start + 2.5)
            self.assertEqual([], self.left())
        row, start = self.record('h1'), self.clock + 5
        self.time.advance(start)
        self.journal.rows.hand_over(row, 'refused')
        self.time.advance(start + 1.5)
        self.assertEqual([], self.left())
