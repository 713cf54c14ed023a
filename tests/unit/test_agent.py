# SPDX-License-Identifier: Apache-2.0
"""The agent's steps and loops, with in-memory nova and placement."""

import contextlib
import logging
import threading

import fixtures

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit import ends

REFUSED = exceptions.PlacementUnreachable('refused')
TIMEOUT = 60


class Recorder:
    """Keeps the figures that an agent leaves."""

    def __init__(self):
        self.calls = []
        self._changed = threading.Condition()

    def __getattr__(self, name):
        def call(*args, **kwargs):
            with self._changed:
                self.calls.append((name, *args, *kwargs.values()))
                self._changed.notify_all()

        return call

    def last(self, name):
        return [call[1:] for call in self.calls if call[0] == name][-1]

    def wait_for(self, *expected):
        """Wait until these calls were made, in any order, from now on."""
        with self._changed:
            start = len(self.calls)
            if not self._changed.wait_for(
                    lambda: set(expected) <= set(self.calls[start:]),
                    TIMEOUT):
                raise AssertionError('%s are not in %s' % (
                    expected, self.calls[start:]))


class AgentTest(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.figures = Recorder()
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.options = self.conf.aggregate_mirror
        self.drain = self.new_drain()

    def new_drain(self, **kwargs):
        return agent.Drain(
            self.conf, self.journal.rows, self.reconciler, self.nova,
            self.placement, self.figures, now=lambda: self.clock, **kwargs)

    def break_all(self, error=REFUSED):
        for node in self.nova.nodes:
            self.placement.broken['GET', node] = error
        self.placement.broken['PROBE', ''] = error

    def left(self):
        return self.journal.rows.all()


class TestDrain(AgentTest):

    def test_handed_over_row_is_mirrored_and_closed(self):
        """No operator has to act."""
        self.hand_over('h1')
        self.assertFalse(self.drain.step())
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([], self.left())
        self.assertEqual(('success', 0.0, 1, 0), self.figures.last('drained'))

    def test_full_batch_is_followed_by_the_next_at_once(self):
        """A long journal is not drained at one batch per second."""
        for _number in range(agent.BATCH + 1):
            self.hand_over('h1')
        self.assertTrue(self.drain.step())
        self.assertFalse(self.drain.step())
        self.assertEqual([], self.left())

    def test_backlog(self):
        """It is shown before the batch, as this agent has seen it."""
        self.hand_over('h1')
        self.break_all()
        self.drain.step()
        self.clock += 30
        self.drain.step()
        self.assertEqual((journal.Backlog(1, 0, 30.0),),
                         self.figures.last('backlog'))

    def test_second_agent_that_drains_meanwhile(self):
        """Duplicate work is harmless, as when the lease changed hands."""
        self.hand_over('h1')
        other = self.new_drain()
        self.placement.before_put = lambda provider: (
            setattr(self.placement, 'before_put', lambda provider: None),
            other.step())
        self.assertFalse(self.drain.step())
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([], self.left())
        self.assertEqual('success', self.figures.last('drained')[0])

    def test_stopping_agent_leaves_the_rest_as_it_was(self):
        """The next agent finds each row due, and nothing half done."""
        self.hand_over('h1')
        stopping = reconciler.Reconciler(
            self.journal.ledger, self.nova, self.placement, self.journal.rows,
            stopping=lambda: True)
        drain = agent.Drain(
            self.conf, self.journal.rows, stopping, self.nova, self.placement,
            self.figures, stopping=lambda: True)
        before = self.left()
        self.assertFalse(drain.step())
        self.assertEqual(before, self.left())
        self.assertEqual([], self.log)

    def test_unavailable_journal_is_an_error_for_the_loop(self):
        """The loop reports it once, and continues."""
        self.conf.set_override('connection', 'sqlite:////proc/no/where',
                               'aggregate_mirror_database')
        self.assertRaises(exceptions.JournalUnavailable, self.drain.step)


class TestRunning(AgentTest):
    """Rule 2: rows of operations that may still run."""

    def setUp(self):
        super().setUp()
        self.overdue = 2 * self.options.inline_timeout
        self.row = self.record('h1', ['n1'])
        self.drain.step()

    def pass_time(self, seconds):
        self.clock += seconds
        self.now += seconds
        self.log.clear()
        self.drain.step()

    def puts(self):
        return self.log.count(('PUT', 'n1'))

    def test_operation_has_its_time(self):
        """Until it is overdue, its own call mirrors it."""
        self.pass_time(self.overdue - 0.1)
        self.assertEqual([], self.log)
        self.assertEqual([self.row], self.left())

    def test_overdue_row_is_mirrored_and_kept(self):
        """It is right soon after a crash, and is not pending any more."""
        self.pass_time(self.overdue)
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        row, = self.left()
        self.assertEqual((True, self.now), (row.running, row.mirrored_at))
        self.assertEqual((1, 0), (self.journal.rows.backlog().waiting,
                                  self.journal.rows.backlog().pending))

    def test_overdue_row_is_converged_again(self):
        """Its call may yet change nova; only a difference is written."""
        self.pass_time(self.overdue)
        self.pass_time(self.overdue - 0.1)
        self.assertEqual([], self.log)
        self.pass_time(0.1)
        self.assertEqual([('GET', 'n1'), ('TRUTH', '')], self.log)
        self.nova.hosts_of['a'].discard('h1')
        self.pass_time(self.overdue)
        self.assertEqual(set(), self.placement.aggregates['n1'])
        self.assertEqual(1, len(self.left()))

    def test_row_that_no_call_can_have_is_closed(self):
        """After max_call_age, with a write that ends all older ones."""
        self.pass_time(self.overdue)
        while self.clock + self.overdue < self.options.max_call_age:
            self.pass_time(self.overdue)
            self.assertEqual(0, self.puts())
        self.assertEqual(1, len(self.left()))
        self.pass_time(self.overdue)
        self.assertEqual(1, self.puts())
        self.assertEqual([], self.left())

    def test_time_counts_from_when_this_agent_saw_the_row(self):
        """A new leader does not rely on the clocks of other hosts."""
        self.now += 100 * self.options.max_call_age
        self.clock += self.options.max_call_age
        new = self.new_drain()
        self.log.clear()
        new.step()
        self.assertEqual([], self.log)
        self.clock += self.overdue
        new.step()
        self.assertEqual(1, len(self.left()))

    def test_row_that_is_handed_over_late(self):
        """It is closed by the next step."""
        self.pass_time(self.overdue)
        self.journal.rows.hand_over(self.row, 'refused')
        self.pass_time(0)
        self.assertEqual(1, self.puts())
        self.assertEqual([], self.left())

    def test_failure_makes_it_pending_again(self):
        """Until it is mirrored the next time."""
        self.pass_time(self.overdue)
        self.nova.hosts_of['a'].discard('h1')
        self.placement.broken['PUT', 'n1'] = exceptions.PlacementFailed('500')
        self.pass_time(self.overdue)
        row, = self.left()
        self.assertEqual((True, 1, '500', None), (
            row.running, row.attempts, row.last_error, row.mirrored_at))
        self.placement.broken.clear()
        self.pass_time(self.overdue)
        self.assertEqual((set(), 0), (self.placement.aggregates['n1'],
                                      self.journal.rows.backlog().pending))


class TestOutage(AgentTest):

    def test_it_counts_no_attempts_and_costs_one_request(self):
        """In whatever way it fails; the rows are tried at once after it."""
        for error in (REFUSED, exceptions.PlacementFailed('500'),
                      exceptions.MalformedAnswer('HTML'),
                      exceptions.NotAuthorized('401')):
            self.hand_over('h1')
            self.hand_over('h2')
            before = self.left()
            self.break_all(error)
            self.drain.step()
            self.log.clear()
            self.assertFalse(self.drain.step())
            self.assertEqual([('PROBE', '')], self.log)
            self.assertEqual(before, self.left())
            self.placement.broken.clear()
            self.drain.step()
            self.assertEqual([], self.left())

    def test_it_is_not_noticed_while_there_is_nothing_to_do(self):
        """An empty journal costs placement no request."""
        self.break_all()
        self.drain.step()
        self.assertEqual([], self.log)

    def test_unavailable_nova_database_counts_no_attempts(self):
        """No row is to blame for it either."""
        self.hand_over('h1')
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.drain.step()
        self.assertEqual(1, self.left()[0].attempts)
        self.nova.broken = None
        self.drain.step()
        self.assertEqual([], self.left())

    def assert_waits(self, error, *waits):
        """Assert how long a row waits that alone fails, attempt by attempt."""
        self.hand_over('h1')
        self.hand_over('h2')
        self.placement.broken['PUT', 'n1'] = error
        self.drain.step()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        for wait in waits:
            self.log.clear()
            self.clock += wait - 0.01
            self.drain.step()
            self.assertEqual([], self.log)
            self.clock += 0.01
            self.drain.step()
            self.assertIn(('PUT', 'n1'), self.log)
        row, = self.left()
        self.assertEqual((str(error), len(waits) + 2),
                         (row.last_error, row.attempts))

    def test_row_that_raises_an_unexpected_error(self):
        """The loop logs it, and the other rows are mirrored meanwhile."""
        self.hand_over('h1')
        self.hand_over('h2')
        self.placement.broken['GET', 'n1'] = ZeroDivisionError()
        self.assertRaises(ZeroDivisionError, self.drain.step)
        self.clock += agent.LONGEST_BACKOFF
        # One row each, in whichever order their IDs are.
        for _step in range(2):
            with contextlib.suppress(ZeroDivisionError):
                self.drain.step()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual(['h1'], [row.dirty.host for row in self.left()])

    def test_row_that_fails_alone_waits_longer_each_time(self):
        """Up to a limit, while the others are mirrored."""
        self.assert_waits(exceptions.RequestRejected('400'),
                          2, 4, 8, 16, 30, 30)

    def test_row_whose_failure_may_end_is_tried_again_soon(self):
        """Within five seconds, however long the failure lasted."""
        self.assert_waits(exceptions.PlacementFailed('500'), 2, 4, 4, 4)

    def test_row_that_an_operator_retries(self):
        """It is tried by the next step, whatever it would have waited for."""
        self.assert_waits(exceptions.RequestRejected('400'), 2, 4, 8)
        self.placement.broken.clear()
        self.journal.rows.retry([row.id for row in self.left()])
        self.drain.step()
        self.assertEqual([], self.left())

    def test_outage_of_writes_alone_is_tried_with_one_row(self):
        """The probe only reads, and succeeds."""
        for host in ('h1', 'h2', 'h1', 'h2'):
            self.hand_over(host)
        for node in self.nova.nodes:
            self.placement.broken['PUT', node] = REFUSED
        self.drain.step()
        self.clock += 10
        self.log.clear()
        self.drain.step()
        self.assertEqual(1, len([entry for entry in self.log
                                 if entry[0] == 'PUT']))
        self.placement.broken.clear()
        self.clock += 10
        self.assertTrue(self.drain.step())
        self.drain.step()
        self.assertEqual([], self.left())


class TestSync(AgentTest):

    def setUp(self):
        super().setUp()
        self.noted, self.unnoted = [], ''
        self.sync = self.new_sync()

    def new_sync(self, **kwargs):
        return agent.Sync(
            self.conf, reconciler.Reconciler(
                self.journal.ledger, self.nova, self.placement,
                self.journal.rows, **kwargs),
            self.figures, now=lambda: self.clock, note=self.note)

    def note(self, request, seconds, became):
        self.noted.append(became)
        if self.unnoted:
            raise exceptions.JournalUnavailable(self.unnoted)

    def test_it_runs_when_it_is_due(self):
        """At once, and then every interval."""
        self.assertIsNotNone(self.sync.step())
        self.clock += self.options.sync_interval - 0.1
        self.assertIsNone(self.sync.step())
        self.clock += 0.1
        self.assertIsNotNone(self.sync.step())
        self.assertEqual(2, len(self.noted))

    def test_drift_is_repaired_both_ways(self):
        """What is missing is added, what is stale and ours is removed."""
        self.placement.create('n3', 'a', 'foreign')
        self.sync.step()
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}, 'n3': {'foreign'}},
                         self.placement.aggregates)
        self.assertEqual(('success', 0.0, 2, 1, 3, False),
                         self.figures.last('synced'))

    def test_without_prune_it_only_adds(self):
        """An operator may want to look first."""
        self.conf.set_override('prune', False, 'aggregate_mirror')
        self.placement.create('n3', 'a')
        self.sync.step()
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}, 'n3': {'a'}},
                         self.placement.aggregates)

    def test_brake(self):
        """An emptied nova removes nothing, and is visible in the figures."""
        self.sync.step()
        self.clock += self.options.sync_interval
        self.nova.hosts_of = {}
        result = self.sync.step()
        self.assertIn('2 associations would be removed', str(result.refused))
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}, 'n3': set()},
                         self.placement.aggregates)
        self.assertEqual(('success', 0.0, 0, 0, 2, True),
                         self.figures.last('synced'))

    def test_unavailable_placement_is_a_failure(self):
        """The next interval tries again."""
        self.placement.broken['LIST', ''] = REFUSED
        self.assertIsNone(self.sync.step())
        self.assertEqual(('failure', 0.0), self.figures.last('synced'))
        self.placement.broken.clear()
        self.clock += self.options.sync_interval
        result = self.sync.step()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([REFUSED, result], self.noted)

    def test_sync_that_is_interrupted(self):
        """It is neither a success nor a failure, and not in the history."""
        self.assertIsNone(self.new_sync(stopping=lambda: True).step())
        self.assertEqual([], self.noted)
        self.assertEqual([], [call for call in self.figures.calls
                              if call[0] == 'synced'])

    def test_history_that_cannot_be_written(self):
        """It is logged once, and again when it happens again."""
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        for self.unnoted in ('full', 'full', '', 'full'):
            self.assertIsNotNone(self.sync.step())
            self.clock += self.options.sync_interval
        self.assertEqual(['The history of syncs lacks this one: full'] * 2,
                         log.output.splitlines())


class TestAgent(AgentTest):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.agent.DRAIN_INTERVAL', 0.01))
        self.messages = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        self.hand_over('h1')

    def start(self, journal=None):
        kept = journal or self.journal
        self.running = agent.Agent(
            self.drain, agent.Sync(self.conf, self.reconciler, self.figures),
            lease.Lease(kept.database, self.options.leader_lease,
                        now=lambda: self.clock),
            binding.Binding(kept.database, self.nova), self.figures,
            threading.Event())
        self.running.start()
        self.addCleanup(self.running.stop)

    def wait_for_loops(self):
        """Wait until each loop has made a whole step."""
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
        """It drains and syncs, and lets another one lead when it stops."""
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
        """It neither drains nor syncs, until the leader's lease has ended."""
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
        """Rule 13: it does nothing, and says why once."""
        other = ends.Nova([])
        other.mapped = {'other': 'cell1 (other)'}
        binding.Binding(self.journal.database, other).bind()
        self.start()
        self.assert_idle()
        self.assertIsNone(lease.read(self.journal.database))
        error, = self.messages.output.splitlines()
        self.assertIn('the journal belongs to another nova, with the cells '
                      'other; this nova has the cells cell1 (%s)' % ends.CELL,
                      error)

    def test_journal_that_is_unavailable_for_a_while(self):
        """It is logged once, and the agent leads as soon as it can."""
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
                                 if 'Nothing in the journal' in line]))
        self.assertIn('The journal can be used again', lines)

    def test_unexpected_error_does_not_end_a_loop(self):
        """The agent continues with the next step."""
        def fail():
            raise ZeroDivisionError('unexpected')

        self.drain.step = fail
        self.start()
        self.wait_for_loops()
        self.wait_for_loops()
        self.assertIn('The drain loop failed; it goes on',
                      self.messages.output)
