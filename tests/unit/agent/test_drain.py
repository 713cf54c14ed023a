# SPDX-License-Identifier: Apache-2.0
"""The drain, with an in-memory nova and placement."""

import contextlib
import logging

import fixtures

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit.agent import case

REFUSED = case.REFUSED


class TestDrain(case.AgentTest):

    def test_host_with_many_compute_nodes(self):
        """It delays no other row of a batch, and alone it is not late."""
        nodes = {'h1': ['n1']}
        for host in 'large', 'huge':
            nodes[host] = ['%s%02d' % (host, number)
                           for number in range(full_sync.MANY_NODES)]
            self.nova.nodes |= dict.fromkeys(nodes[host], host)
            for node in nodes[host]:
                self.placement.create(node)
        for hosts, late in ((['large'], []), (['large', 'h1'], ['large']),
                            (['large', 'huge'], ['large', 'huge'])):
            for host in hosts:
                self.hand_over(host, nodes[host])
            self.assertEqual(bool(late), self.drain.step())
            self.assertCountEqual(
                late, [row.dirty.host for row in self.left()])
            self.drain.step()
            self.assertEqual([], self.left())

    def test_idle_agent_has_no_open_connections(self):
        """A batch opens as many as workers; they do not stay."""
        for _number in range(drain.BATCH + 1):
            self.hand_over('h1')
        self.assertTrue(self.drain.step())
        self.assertGreater(self.placement.idle, 0)
        self.assertFalse(self.drain.step())
        self.assertEqual(0, self.placement.idle)
        self.assertEqual(('success', 0.0, 1, 0, 0),
                         self.figures.calls[-2][1:])

    def test_journal_that_fails_after_the_write(self):
        """The hosts are mirrored: no row is called a failure or a suspect."""
        for host in 'h1', 'h2':
            self.hand_over(host)
        log = self.useFixture(fixtures.FakeLogger())
        with fixtures.MockPatchObject(
                self.journal.rows, 'close',
                side_effect=exceptions.JournalUnavailable('closed')):
            self.assertRaises(exceptions.JournalUnavailable, self.drain.step)
        self.assertNotIn('not mirrored yet', log.output)
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual(2, self.figures.last('observe_drain')[2])
        self.assertEqual([0, 0], [row.attempts - 1 for row in self.left()])
        self.clock += drain.RETRIABLE_BACKOFF
        self.drain.step()
        self.assertEqual([], self.left())

    def test_ledger_that_is_locked(self):
        """The journal is unusable until a row is mirrored, in each step."""
        self.hand_over('h1')
        with fixtures.MockPatchObject(
                self.journal.ledger, 'remember',
                side_effect=exceptions.JournalUnavailable('locked')):
            for _second in range(6):
                self.assertRaises(
                    exceptions.JournalUnavailable, self.drain.step)
                self.clock += 1.0
        other = self.new_drain()
        self.nova.silent = {'h3'}
        waiting = self.hand_over('h3')
        self.clock += drain.LONGEST_BACKOFF
        other.step()
        # Another agent has closed it; what waits for a cell is no reason.
        self.assertEqual([waiting.id], [row.id for row in self.left()])
        self.drain.step()
        self.nova.silent = set()
        self.hand_over('h1')
        while self.left():
            self.clock += 1.0
            with contextlib.suppress(exceptions.JournalUnavailable):
                self.drain.step()
        self.drain.step()

    def test_outage_that_changes(self):
        """Each kind of failure is logged once, with its step.

        The log has that mirroring is resumed, also if no row is left then.
        """
        self.hand_over('h1')
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        for error in REFUSED, exceptions.NotAuthorized('401'), REFUSED:
            self.break_all(error)
            self.drain.step()
        self.assertEqual(
            ['refused', '401'], [
                text.rpartition(': ')[2] for text in log.output.splitlines()
                if 'is suspended' in text])
        self.placement.broken.clear()
        self.journal.rows.close([row.id for row in self.left()])
        self.drain.step()
        self.assertIn('Mirroring is resumed', log.output)

    def test_failure_of_a_row_that_was_locked_before(self):
        """It is logged once, though no batch with new rows had this row."""
        rows = {self.hand_over(host).id: host
                for host in ['h1', 'h2'] * reconciler.MOST_TIMEOUTS}
        with fixtures.MockPatchObject(
                self.journal.rows, 'close',
                side_effect=exceptions.JournalLocked('locked')):
            self.drain.step()
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        for node in 'n1', 'n2':
            self.placement.broken['PUT', node] = exceptions.RequestRejected(
                '400')
        for _step in range(3):
            self.clock += drain.LONGEST_BACKOFF
            self.drain.step()
        self.assertEqual(
            sorted('Host %s (request -) is not mirrored yet: 400' % host
                   for host in rows.values()),
            sorted(line for line in log.output.splitlines()
                   if 'not mirrored yet' in line))

    def test_row_that_stays_locked(self):
        """It is tried less and less often, as each attempt waits."""
        self.hand_over('h1')
        times = []

        def close(*_arguments):
            times.append(self.clock)
            raise exceptions.JournalLocked('locked')

        with fixtures.MockPatchObject(self.journal.rows, 'close', close):
            for _second in range(100):
                self.drain.step()
                self.clock += 1.0
        self.assertEqual([1, 2, 4, 8, 16, 30, 30], [
            later - earlier for earlier, later in zip(times, times[1:])])
        self.assertEqual('failure', self.figures.last('observe_drain')[0])
        self.clock += drain.LONGEST_BACKOFF
        self.drain.step()
        self.assertEqual([], self.left())

    def test_row_that_fails_while_it_is_locked(self):
        """Each attempt waits for the lock: there are few of them."""
        self.hand_over('h1')
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        self.useFixture(fixtures.MockPatchObject(
            self.journal.rows, 'set_failed',
            side_effect=exceptions.JournalLocked('locked')))
        for _step in range(2):
            self.drain.step()
            self.clock += drain.LONGEST_BACKOFF - 0.1
            self.drain.step()
            # A PUT that placement did not answer begins again, once.
            self.assertEqual(2, self.log.count(('PUT', 'n1')))
            self.clock += 0.1
            self.log.clear()

    def test_stopping_agent_leaves_the_rest_as_it_was(self):
        """The next agent finds each row due; nothing is half done."""
        self.hand_over('h1', ['n1'])
        stopping = self.new_reconciler(
            for_each=workers.in_threads(stopping=lambda: True))
        stopped = drain.Drain(self.conf, self.journal.rows, stopping,
                              self.figures, stopping=lambda: True)
        before = self.left()
        self.assertFalse(stopped.step())
        self.assertEqual(before, self.left())
        self.assertEqual([], self.log)
        self.assertEqual('success', self.figures.last('observe_drain')[0])

    def test_it_counts_no_attempts_and_costs_one_request(self):
        """Any kind of outage does so; the rows are retried just after it.

        Nothing is mirrored: the next probe is a second later. An empty journal
        causes no request.
        """
        for error in (REFUSED, exceptions.ServiceFailed('500'),
                      exceptions.MalformedAnswer('HTML'),
                      exceptions.NotAuthorized('401')):
            self.break_all(error)
            self.log.clear()
            self.drain.step()
            self.assertEqual([], self.log)
            self.hand_over('h1')
            self.assertFalse(self.drain.step())
            self.log.clear()
            self.clock += 30
            self.hand_over('h2')
            before = self.left()
            self.assertFalse(self.drain.step())
            self.assertEqual([('PROBE', '')], self.log)
            self.assertEqual(before, self.left())
            self.assertEqual((2, 0, 30.0), self.figures.last('set_backlog'))
            self.placement.broken.clear()
            self.drain.step()
            self.assertEqual([], self.left())

    def test_observer(self):
        """It counts the rows, and leaves them to the leader that mirrors."""
        self.conf.set_override('mode', 'observe', 'aggregate_mirror')
        self.drain = self.new_drain()
        self.hand_over('h1')
        self.assertFalse(self.drain.step())
        self.assertEqual(([], (1, 0, 0.0), False), (
            self.log, self.figures.last('set_backlog'), self.drain.is_idle()))

    def test_time_for_a_request(self):
        """It is that of a call, but long enough for a token."""
        for inline, expected in (2, drain.LEAST_TIMEOUT), (7, 7.0):
            self.conf.set_override(
                'inline_timeout', inline, 'aggregate_mirror')
            self.assertEqual(expected, drain.timeout(self.conf))

    def test_unavailable_nova_database_counts_no_attempts(self):
        """The row is not the cause of this failure either."""
        self.hand_over('h1')
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.drain.step()
        self.assertEqual(1, self.left()[0].attempts)
        self.nova.broken = None
        self.drain.step()
        self.assertEqual([], self.left())

    def test_row_that_fails_alone_waits_longer_each_time(self):
        """The delay has a limit, and the other rows are mirrored.

        A failure that may end is tried again within five seconds, however long
        it lasted.
        """
        for error, *waits in (
                (exceptions.RequestRejected('400'), 2, 4, 8, 16, 30, 30),
                (exceptions.ServiceFailed('500'), 2, 4, 4, 4)):
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
            self.journal.rows.close([row.id])

    def test_row_that_raises_an_unexpected_error(self):
        """The other rows are still mirrored.

        It ends a step no more often than every 30 seconds.
        """
        self.hand_over('h1')
        self.hand_over('h2')
        self.placement.broken['GET', 'n1'] = ZeroDivisionError()
        self.assertRaises(ZeroDivisionError, self.drain.step)
        self.clock += drain.LONGEST_BACKOFF
        # A row per host, in any order of their IDs.
        for _step in range(2):
            with contextlib.suppress(ZeroDivisionError):
                self.drain.step()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual(['h1'], [row.dirty.host for row in self.left()])
        self.clock += drain.LONGEST_BACKOFF
        for _time in range(3):
            self.assertRaises(ZeroDivisionError, self.drain.step)
            self.clock += drain.LONGEST_BACKOFF - 0.1
            self.drain.step()
            self.clock += 0.1

    def test_unexpected_error_of_a_row_that_waited_for_a_cell(self):
        """It does not raise for ever whenever the cell would be tried."""
        self.nova.silent = {'h1'}
        self.hand_over('h1')
        self.drain.step()
        self.nova.silent = set()
        self.placement.broken['GET', 'n1'] = ZeroDivisionError()
        self.clock += drain.LONGEST_BACKOFF
        # In a batch, then alone.
        for _time in range(2):
            self.assertRaises(ZeroDivisionError, self.drain.step)
        self.clock += drain.LONGEST_BACKOFF - 0.1
        self.drain.step()

    def pass_time(self, seconds):
        self.clock += seconds
        self.now += seconds
        self.log.clear()
        self.drain.step()

    def test_overdue_row_is_mirrored_and_kept(self):
        """Rule 2: soon after a crash it is mirrored and no longer pending.

        Its call may still change nova: it is converged again, and only a
        difference is written. A failure makes it pending until the next
        successful converge.
        """
        overdue = 2 * self.options.inline_timeout
        self.record('h1', ['n1'])
        self.drain.step()
        self.pass_time(overdue)
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        row, = self.left()
        self.assertEqual((True, self.now), (row.running, row.mirrored_at))
        self.pass_time(overdue - 0.1)
        self.assertEqual([], self.log)
        self.pass_time(0.1)
        self.assertEqual([('GET', 'n1'), ('TRUTH', '')], self.log)
        self.nova.hosts_of['a'].discard('h1')
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        self.pass_time(overdue)
        row, = self.left()
        self.assertEqual((True, 1, '500', None), (
            row.running, row.attempts, row.last_error, row.mirrored_at))
        self.placement.broken.clear()
        self.pass_time(overdue)
        row, = self.left()
        self.assertEqual((set(), self.now), (self.placement.aggregates['n1'],
                                             row.mirrored_at))

    def test_row_that_no_call_can_have_is_closed(self):
        """Rule 2: after max_call_age, with a write that invalidates others."""
        overdue = 2 * self.options.inline_timeout
        self.record('h1', ['n1'])
        self.drain.step()
        self.pass_time(overdue)
        while self.clock + overdue < self.options.max_call_age:
            self.pass_time(overdue)
            self.assertNotIn(('PUT', 'n1'), self.log)
        self.assertEqual(1, len(self.left()))
        self.pass_time(overdue)
        self.assertIn(('PUT', 'n1'), self.log)
        self.assertEqual([], self.left())
