# SPDX-License-Identifier: Apache-2.0
"""The agent's steps, between nova and placement in memory."""

import logging
import threading

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import lease
from nova_aggregate_mirror import reconciler
from tests.unit import ends

REFUSED = exceptions.PlacementUnreachable('refused')


class Recorder:
    """Keeps the figures that an agent leaves."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.calls.append(
            (name, *args, *kwargs.values()))

    def last(self, name):
        return [call[1:] for call in self.calls if call[0] == name][-1]


class AgentTest(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.figures = Recorder()
        self.clock = 0.0
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.drain = agent.Drain(self.journal, self.nova, self.placement,
                                 self.figures, now=lambda: self.clock)

    def hand_over(self, host):
        row = self.record(host)
        self.journal.hand_over(row.id, 'refused')
        return row

    def break_all(self, error=REFUSED):
        for node in self.nova.nodes:
            self.placement.broken['GET', node] = error
        self.placement.broken['PROBE', ''] = error


class TestDrain(AgentTest):

    def test_handed_over_row_is_mirrored_and_closed(self):
        """Without anybody's action."""
        self.hand_over('h1')
        self.assertFalse(self.drain.step())
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([], self.journal.rows())
        self.assertEqual(('success', 0.0, 1, 0), self.figures.last('drained'))

    def test_running_operation_is_left_alone(self):
        """Its own process mirrors it."""
        row = self.record('h1')
        self.drain.step()
        self.assertEqual([], self.log)
        self.assertEqual([row], self.journal.rows())

    def test_full_batch_is_followed_by_the_next_at_once(self):
        """A long journal is not drained a batch a second."""
        for _number in range(agent.BATCH + 1):
            self.hand_over('h1')
        self.assertTrue(self.drain.step())
        self.assertFalse(self.drain.step())
        self.assertEqual([], self.journal.rows())

    def test_outage_burns_no_attempts_and_costs_one_request(self):
        """Whatever the outage looks like; the rows are tried at once after."""
        for error in (REFUSED, exceptions.PlacementFailed('500'),
                      exceptions.MalformedAnswer('HTML'),
                      exceptions.NotAuthorized('401')):
            self.hand_over('h1')
            self.hand_over('h2')
            before = [row.attempts for row in self.journal.rows()]
            self.break_all(error)
            self.drain.step()
            self.log.clear()
            self.assertFalse(self.drain.step())
            self.assertEqual([('PROBE', '')], self.log)
            self.assertEqual(before,
                             [row.attempts for row in self.journal.rows()])
            self.placement.broken.clear()
            self.drain.step()
            self.assertEqual([], self.journal.rows())

    def test_outage_is_no_news_while_there_is_nothing_to_do(self):
        """Nobody is asked for nothing."""
        self.break_all()
        self.drain.step()
        self.assertEqual([], self.log)

    def test_nova_database_that_is_away_burns_no_attempts(self):
        """It is not the rows' fault either."""
        self.hand_over('h1')
        self.nova.broken = exceptions.NovaUnavailable('gone away')
        self.drain.step()
        self.assertEqual(1, self.journal.rows()[0].attempts)
        self.nova.broken = None
        self.drain.step()
        self.assertEqual([], self.journal.rows())

    def waits(self, error):
        """How long a row waits that fails alone, attempt by attempt."""
        self.hand_over('h1')
        self.hand_over('h2')
        self.placement.broken['PUT', 'n1'] = error
        waits = []
        while len(waits) < 8:
            self.drain.step()
            row = self.journal.rows()[0]
            if row.next_attempt_at > self.now:
                waits.append(row.next_attempt_at - self.now)
                self.now = row.next_attempt_at
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual(str(error), row.last_error)
        return waits

    def test_row_that_fails_alone_waits_longer_each_time(self):
        """And keeps nobody else waiting."""
        waits = self.waits(exceptions.RequestRejected('400'))
        for wait, longest in zip(waits, (2, 4, 8, 16, 30, 30, 30, 30)):
            self.assertTrue(longest / 2 <= wait <= longest, waits)

    def test_row_whose_failure_may_end_is_tried_again_soon(self):
        """Within five seconds, however long it lasted."""
        waits = self.waits(exceptions.PlacementFailed('500'))
        for wait, longest in zip(waits, (2, 4, 4, 4, 4, 4, 4, 4)):
            self.assertTrue(longest / 2 <= wait <= longest, waits)

    def test_outage_of_writing_alone_is_tried_with_one_row(self):
        """The probe reads, and does not see it."""
        for host in ('h1', 'h2', 'h1', 'h2'):
            self.hand_over(host)
        for node in self.nova.nodes:
            self.placement.broken['PUT', node] = REFUSED
        self.drain.step()
        self.now += 10
        self.log.clear()
        self.drain.step()
        self.assertEqual(1, len([entry for entry in self.log
                                 if entry[0] == 'PUT']))
        self.placement.broken.clear()
        self.now += 10
        self.assertTrue(self.drain.step())
        self.drain.step()
        self.assertEqual([], self.journal.rows())

    def test_row_of_an_untestable_owner_is_mirrored_and_kept(self):
        """It may still run there: right soon, closed after max_call_age."""
        elsewhere = journal.Journal(self.conf, now=lambda: self.now,
                                    owner=Elsewhere())
        elsewhere.record(journal.Dirty(host='h1'))
        self.drain.step()
        self.assertEqual([], self.log)
        self.now += 2 * self.conf.aggregate_mirror.inline_timeout + 1
        self.drain.step()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual(1, len(self.journal.rows()))
        self.now += self.conf.aggregate_mirror.max_call_age
        self.drain.step()
        self.assertEqual([], self.journal.rows())

    def test_told_to_stop_it_leaves_the_rest_as_it_was(self):
        """The next agent finds each row due, and nothing half done."""
        self.hand_over('h1')
        drain = agent.Drain(self.journal, self.nova, self.placement,
                            self.figures, stopping=lambda: True)
        before = self.journal.rows()
        self.assertFalse(drain.step())
        self.assertEqual(before, self.journal.rows())
        self.assertEqual([], self.log)

    def test_journal_that_is_away_is_the_loops_business(self):
        """It says so once, and goes on."""
        self.conf.set_override('connection', 'sqlite:////proc/no/where',
                               'aggregate_mirror_database')
        drain = agent.Drain(
            journal.Journal(self.conf), self.nova, self.placement,
            self.figures)
        self.assertRaises(exceptions.JournalUnavailable, drain.step)


class Elsewhere:
    """An owner on another controller."""

    def token(self):
        return 'controller-2:0123:77-abc'

    def take_back(self):
        """It has left no word."""


class TestSync(AgentTest):

    def setUp(self):
        super().setUp()
        self.sync = agent.Sync(
            self.conf, reconciler.Reconciler(
                self.journal, self.nova, self.placement),
            self.figures, now=lambda: self.clock, note=self.note)
        self.noted, self.unnoted = [], ''

    def note(self, request, seconds, became):
        self.noted.append(became)
        return self.unnoted

    def test_it_runs_when_it_is_due(self):
        """At once, and then every interval."""
        self.assertIsNotNone(self.sync.step())
        self.assertIsNone(self.sync.step())
        self.clock += self.conf.aggregate_mirror.sync_interval
        self.assertIsNotNone(self.sync.step())

    def test_drift_is_repaired_both_ways(self):
        """What lacks is added, what is stale and ours is removed."""
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
        """An emptied nova removes nothing, and is a figure."""
        self.sync.step()
        self.journal.remember(['a'])
        self.clock += self.conf.aggregate_mirror.sync_interval
        self.nova.hosts_of = {}
        result = self.sync.step()
        self.assertIn('2 associations would be removed', result.refused)
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}, 'n3': set()},
                         self.placement.aggregates)
        self.assertEqual(('success', 0.0, 0, 0, 2, True),
                         self.figures.last('synced'))

    def test_placement_that_is_away_is_a_failure_and_no_end(self):
        """The next interval tries again."""
        self.placement.broken['LIST', ''] = REFUSED
        self.assertIsNone(self.sync.step())
        self.assertEqual(('failure', 0.0), self.figures.last('synced'))
        self.placement.broken.clear()
        self.clock += self.conf.aggregate_mirror.sync_interval
        result = self.sync.step()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([REFUSED, result], self.noted)

    def test_history_that_cannot_be_written(self):
        """It is said once, and again when it happens again."""
        log = self.useFixture(ends.fixtures.FakeLogger(
            level=logging.WARNING))
        for self.unnoted in ('lacks', 'lacks', '', 'lacks'):
            self.assertIsNotNone(self.sync.step())
            self.clock += self.conf.aggregate_mirror.sync_interval
        self.assertEqual(['The history of syncs lacks this one: lacks'] * 2,
                         log.output.splitlines())

    def test_deleted_aggregate_is_forgotten_when_placement_is_long_empty(self):
        """And not while a provider still has it."""
        self.journal.remember(['gone'])
        self.placement.create('storage', 'gone')
        for left in (True, False):
            for _interval in range(2):
                self.assertIn('gone', self.journal.ledger())
                self.now += self.conf.aggregate_mirror.forget_after + 1
                self.clock += self.conf.aggregate_mirror.sync_interval
                self.sync.step()
            self.assertEqual(left, 'gone' in self.journal.ledger())
            self.placement.write('storage', ())


class TestAgent(AgentTest):

    def test_loops_run_and_stop(self):
        """It leads, drains and syncs, and lets another one lead after."""
        self.hand_over('h1')
        synced = threading.Event()
        sync = agent.Sync(self.conf, reconciler.Reconciler(
            self.journal, self.nova, self.placement), self.figures)
        step = sync.step
        sync.step = lambda: (step(), synced.set())
        running = agent.Agent(
            self.drain, sync, lease.Lease(self.journal, 'sync', 15),
            self.figures, threading.Event())
        running.start()
        try:
            self.assertTrue(synced.wait(30))
        finally:
            running.stop()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual('', self.journal.lease('sync')[0])
        self.assertLessEqual(
            {('beat', 'drain'), ('beat', 'lease'), ('leading', True)},
            set(self.figures.calls))

    def test_surprise_does_not_end_a_loop(self):
        """One surprise must not end the process that repairs."""
        twice = threading.Semaphore(0)

        def surprise():
            twice.release()
            raise ZeroDivisionError('surprise')

        self.drain.step = surprise
        self.useFixture(ends.fixtures.MonkeyPatch(
            'nova_aggregate_mirror.agent.DRAIN_INTERVAL', 0.01))
        running = agent.Agent(
            self.drain, None, lease.Lease(self.journal, 'sync', 15),
            self.figures, threading.Event())
        running.start()
        try:
            self.assertTrue(twice.acquire(timeout=30))
            self.assertTrue(twice.acquire(timeout=30))
        finally:
            running.stop()
