# SPDX-License-Identifier: Apache-2.0
"""Rule 14: rows wait by what they wait for, and hold up no others."""

import itertools
import logging

import fixtures
import sqlalchemy as sa

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit.agent import case
from tests.unit import doubles

MANY = 2 * drain.BATCH
HANGS = exceptions.DeadlineExceeded('no answer')
BRIEFLY = 5
"""Steps within which a healthy host is mirrored."""


class WaitingTest(case.AgentTest):

    def add_hosts(self, name, count=MANY):
        """Hand over a row of each of many hosts of the aggregate a."""
        hosts = ['%s%03d' % (name, number) for number in range(count)]
        for host in hosts:
            self.nova.hosts_of['a'].add(host)
            self.nova.nodes['node of ' + host] = host
            self.placement.create('node of ' + host)
            self.hand_over(host)
        return hosts

    def placed(self, host):
        """Return the aggregates of a host that was added."""
        return self.placement.aggregates['node of ' + host]

    def break_writes(self, hosts, error=exceptions.ServiceFailed('500')):
        """Let writes fail for hosts that were added."""
        for host in hosts:
            self.placement.broken['PUT', 'node of ' + host] = error

    def step(self, count=1):
        """Step as the agent does; return how many rows are left."""
        for _step in range(count):
            self.clock += 0.01
            if not self.drain.step():
                self.clock += 1.0
        return len(self.left())

    def is_mirrored(self):
        """Check whether the healthy host is, and its row is closed."""
        return (self.placement.aggregates['n2'] == {'a'}
                and 'h2' not in [row.dirty.host for row in self.left()])

    def steps_of_healthy_host(self):
        """Record the healthy host; count the steps until it is mirrored."""
        self.hand_over('h2')
        steps = 0
        while not self.is_mirrored():
            steps += 1
            self.assertLess(steps, 1000)
            self.step()
        return steps


class TestCells(WaitingTest):
    """Rows that wait for a cell."""

    def test_healthy_host_after_many_rows_of_a_silent_cell(self):
        """It is mirrored by the next step, and soon while they are new.

        The silent cell delays nothing after an outage of placement either.
        """
        self.nova.silent = set(self.add_hosts('down'))
        self.step()
        self.assertLess(self.steps_of_healthy_host(), BRIEFLY)
        self.step(30)
        self.assertEqual(1, self.steps_of_healthy_host())
        self.break_all()
        self.hand_over('h2')
        self.step(20)
        self.assertFalse(self.is_mirrored())
        self.placement.broken.clear()
        self.step(BRIEFLY)
        self.assertTrue(self.is_mirrored())

    def test_silent_cell_is_tried_once_per_back_off(self):
        """With one of its rows, however many there are.

        The journal shows what each waits for; all are mirrored after the next
        try when the cell answers again.
        """
        self.nova.silent = set(self.add_hosts('down'))
        self.step(10)
        self.assertEqual([(str(doubles.SILENT), None)] * MANY, [
            (row.last_error, row.mirrored_at) for row in self.left()])
        self.log.clear()
        self.step(120)
        self.assertLess(self.log.count(('TRUTH', '')), 8)
        self.assertLess(len(self.log), 16)
        self.nova.silent = set()
        start = self.clock
        while self.step():
            self.assertLess(self.clock, start + 40)
        for number in range(MANY):
            self.assertEqual({'a'}, self.placed('down%03d' % number))

    def test_cell_that_falls_silent_later(self):
        """Its first back-off is short, whatever it did before.

        Rows do not prolong it, however many are recorded meanwhile.
        """
        self.nova.silent = {'h1'}
        row = self.hand_over('h1')
        self.step(120)
        self.journal.rows.close([row.id])
        self.step()
        for _number in range(10):
            self.hand_over('h1')
            self.clock += 0.1
            self.drain.step()
        self.nova.silent = set()
        self.step(BRIEFLY)
        self.assertEqual([], self.left())

    def test_running_row_in_the_queue(self):
        """Rule 2: it is mirrored, and closed when no call can have it.

        If it is handed over, it is tried at once, as any other.
        """
        self.record('h1', ['n1'])
        for passed, left in (0, 1), (self.options.max_call_age, 0):
            self.nova.silent = {'h1'}
            self.step(100)
            self.clock += passed
            self.nova.silent = set()
            self.assertEqual(left, self.step(40))
            self.assertEqual({'a'}, self.placement.aggregates['n1'])
        row = self.record('h1', ['n1'])
        self.nova.silent = {'h1'}
        self.step(100)
        self.nova.silent = set()
        self.journal.rows.hand_over(row, 'refused')
        self.assertEqual(0, self.step())

    def test_row_that_also_waits_for_another_cell(self):
        """It is shown as mirrored, stays open and does not alert.

        It is pending until the rest of it is mirrored.
        """
        self.placement.create('moved')
        self.nova.silent = {'h3'}
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        self.hand_over('h1', ['n1', 'moved'])
        self.step(BRIEFLY)
        self.assertEqual([None], [row.mirrored_at for row in self.left()])
        self.placement.broken.clear()
        self.step(BRIEFLY)
        row, = self.left()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual((False, self.now), (row.running, row.mirrored_at))
        self.assertIn('cell9', row.last_error)
        self.assertEqual((0, 1, 0.0), self.figures.last('set_backlog'))
        self.nova.silent = set()
        self.step(40)
        self.assertEqual([], self.left())

    def test_queue_of_a_cell_that_a_failing_row_waits_for(self):
        """The failure of another node does not end the cell's silence."""
        self.placement.create('z1')
        self.nova.silent = {'h3'}
        self.hand_over('h1', ['n1', 'z1'])
        self.step()
        self.nova.silent |= set(self.add_hosts('down'))
        self.placement.broken['GET', 'n1'] = exceptions.ServiceFailed('500')
        attempts = []
        for steps in (2, 10):
            self.step(steps)
            attempts.append(sum(row.attempts for row in self.left()))
        before, after = attempts
        self.assertLess(after, before + 10)


class TestProviders(WaitingTest):
    """Rows that wait for their own provider."""

    def test_healthy_host_after_many_failing_rows(self):
        """It is mirrored by the next step, whatever their providers answer."""
        ways = itertools.cycle(itertools.product(('GET', 'PUT'), (
            exceptions.ServiceFailed('500'),
            exceptions.GenerationConflict('409'),
            exceptions.MalformedAnswer('garbage'),
            exceptions.RequestRejected('400'))))
        for host, (method, error) in zip(self.add_hosts('failing'), ways):
            self.placement.broken[method, 'node of ' + host] = error
        # While some fail for the first time, others are tried without a pause.
        self.assertTrue(self.drain.step())
        self.step(30)
        self.clock += drain.LONGEST_BACKOFF
        self.assertFalse(self.drain.step())
        self.assertEqual(1, self.steps_of_healthy_host())

    def test_row_that_has_failed_for_days(self):
        """However often it has failed, it is tried again like any other."""
        self.hand_over('h1')
        failed = sa.update(models.dirty).values(attempts=1100)
        self.journal.database.run(
            lambda connection: connection.execute(failed))
        self.placement.broken['PUT', 'n1'] = exceptions.RequestRejected('400')
        self.hand_over('h2')
        self.step(BRIEFLY)
        self.assertEqual([1101], [row.attempts for row in self.left()])
        self.placement.broken.clear()
        self.clock += drain.LONGEST_BACKOFF
        self.assertEqual(0, self.step())


class TestOutage(WaitingTest):
    """An outage that the probe does not detect."""

    def hang_for(self, seconds, *hosts):
        """Let writes of the hosts time out; return when each was sent."""
        put, attempts = self.placement.put, []

        def hang(provider, aggregates):
            if self.nova.nodes[provider.uuid] in hosts:
                attempts.append(self.clock)
                self.clock += seconds
                raise HANGS
            return put(provider, aggregates)

        self.placement.put = hang
        return attempts

    def test_row_that_hangs_again_and_again(self):
        """It waits longer than it delays others, but not for ever."""
        for number, (seconds, least, longest) in enumerate((
                (0.0, drain.RETRIABLE_BACKOFF, 10.0),
                (3.0, drain.DELAY_FACTOR * 3.0, 25.0),
                (20.0, drain.LONGEST_BACKOFF, 60.0))):
            hosts = self.add_hosts('hangs for %d s ' % seconds, 1)
            attempts = self.hang_for(seconds, *hosts)
            while len(attempts) < 8:
                self.step()
            waits = [later - earlier - seconds for earlier, later
                     in zip(attempts[3:], attempts[4:])]
            self.assertGreaterEqual(min(waits), least)
            self.assertLess(max(waits), longest)
            self.assertEqual(number + 1, len(self.left()))

    def test_end_of_the_outage(self):
        """It costs a row per step, once its rows have failed together.

        Rows that are mirrored one after the other release the rest.
        """
        self.break_writes(self.add_hosts('row'), HANGS)
        self.step(4)
        for _step in range(drain.BATCH + 10):
            self.log.clear()
            self.step()
            for method in 'GET', 'PUT':
                self.assertLess(len(self.sent(method)), 2)
        self.placement.broken.clear()
        self.step(drain.BATCH + BRIEFLY)
        self.clock += drain.RETRIABLE_BACKOFF
        self.assertEqual(0, self.step(BRIEFLY))

    def test_healthy_hosts_in_the_batch_of_a_provider_that_hangs(self):
        """They wait for it twice: in their batch, and when it is alone."""
        hosts = self.add_hosts('row')
        attempts = self.hang_for(6.0, 'row050')
        while len(self.left()) > 1:
            self.step()
        self.assertLess(len(attempts), 4)
        self.assertEqual({'a'}, self.placed(hosts[-1]))

    def test_read_that_hangs_in_a_batch(self):
        """The step mirrors all others; no message names one of them."""
        for method in 'GET', 'PUT':
            log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
            hosts = self.add_hosts(method, 44)
            self.placement.broken[method, 'node of %s007' % method] = (
                exceptions.DeadlineExceeded('was silent'))
            self.step(2)
            left, = self.left()
            self.assertEqual('%s007' % method, left.dirty.host)
            self.assertEqual(
                ['Host %s (request -) is not mirrored yet: was silent'
                 % left.dirty.host], log.output.splitlines())
            self.assertEqual(
                [left.dirty.host],
                [host for host in hosts if not self.placed(host)])
            # Only that provider is tried alone from then on, and no more
            # when an operator has deleted its row.
            self.assertEqual(1, self.steps_of_healthy_host())
            self.journal.rows.close([left.id])
            self.clock += drain.LONGEST_BACKOFF
            self.log.clear()
            self.assertEqual(1, self.steps_of_healthy_host())
            self.assertEqual(['n2'], self.sent('GET'))

    def test_rows_that_were_not_tried(self):
        """They have not failed: nothing is counted, logged or postponed."""
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.add_hosts('row', 3)
        self.placement.broken['GET', 'node of row000'] = case.REFUSED
        probes, probe = [case.REFUSED], self.placement.probe

        def flap():
            probe()
            if probes:
                raise probes.pop()

        self.placement.probe = flap
        self.drain.step()
        self.assertEqual(['Host row000 (request -) is not mirrored yet: '
                          'refused'], log.output.splitlines())
        self.assertEqual(
            {'row000': 2, 'row001': 1, 'row002': 1},
            {row.dirty.host: row.attempts for row in self.left()})
        self.drain.step()
        self.assertEqual(['row000'], [row.dirty.host for row in self.left()])

    def test_row_that_failed_for_itself_next_to_rows_that_hang(self):
        """It does not wait for ever while others are always due before it."""
        self.add_hosts('row', 10)
        self.break_writes(['row000'])
        self.step(BRIEFLY)
        hanging = self.add_hosts('hang', 3)
        self.hang_for(6.0, *hanging)
        self.step(MANY)
        self.placement.broken.clear()
        self.step(MANY)
        self.assertEqual(hanging, sorted(
            row.dirty.host for row in self.left()))

    def test_failing_rows_that_were_in_the_outage(self):
        """They would fail again: the others are tried before them."""
        failing = self.add_hosts('failing')
        self.break_writes(failing)
        self.step(30)
        self.break_writes(failing, HANGS)
        self.step(BRIEFLY)
        healthy = self.add_hosts('healthy', 10)
        self.break_writes(healthy, HANGS)
        self.step(BRIEFLY)
        self.placement.broken.clear()
        self.break_writes(failing)
        self.step(2 * len(healthy))
        self.assertEqual(failing, sorted(
            row.dirty.host for row in self.left()))

    def test_failing_rows_do_not_prolong_it(self):
        """A healthy row is not tried after those that fail for themselves."""
        self.break_writes(self.add_hosts('failing'))
        self.step(30)
        self.placement.broken['PUT', 'n2'] = case.REFUSED
        self.hand_over('h2')
        self.step(30)
        del self.placement.broken['PUT', 'n2']
        self.step(BRIEFLY)
        self.assertTrue(self.is_mirrored())


class TestBatches(WaitingTest):
    """Which rows share a batch, and which go first."""

    def setUp(self):
        super().setUp()
        self.batches, self.patience = [], set()
        drain_rows = reconciler.drain

        def recorded(mirror, rows, locks, patience):
            self.batches.append([row.dirty.host for row in rows])
            self.patience.add(patience)
            return drain_rows(mirror, rows, locks, patience)

        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.reconcile.reconciler.drain', recorded))

    def test_latest_row_is_first(self):
        """What has just been recorded does not wait for a backlog.

        It shares no batch with older rows, which may be locked.
        """
        for host in 'early', 'late':
            self.record(host)
            self.drain.step()
            self.clock += 1.0
        self.clock += 2 * self.options.inline_timeout
        self.batches.clear()
        self.hand_over('h1')
        self.drain.step()
        self.assertEqual([['h1'], ['late', 'early']], self.batches)

    def test_row_that_failed_shares_no_batch_with_others(self):
        """What fails again, or is locked again, delays no healthy host.

        It has its turn, however many others are due at once. The next agent
        knows it by its attempts.
        """
        failed, = self.add_hosts('failed', 1)
        self.break_writes([failed])
        self.drain.step()
        self.drain = self.new_drain()
        self.clock += drain.LONGEST_BACKOFF
        self.batches.clear()
        self.hand_over('h1')
        self.drain.step()
        self.assertEqual([['h1'], [failed]], self.batches)
        self.assertEqual({0.0}, self.patience)
        self.clock += drain.LONGEST_BACKOFF
        self.batches.clear()
        self.add_hosts('row', 3 * drain.BATCH)
        self.drain.step()
        self.assertIn([failed], self.batches)

    def test_rows_of_a_silent_cell_take_turns(self):
        """Of those that wait for it, the longest waiting one is tried."""
        hosts = self.add_hosts('down', 3)
        self.nova.silent = set(hosts)
        self.step(BRIEFLY)
        self.batches.clear()
        self.step(120)
        turns = [host for host, in self.batches]
        self.assertEqual(hosts, sorted(turns[:3]))
        self.assertEqual(turns[:3], turns[3:6])

    def test_suspects_follow_one_by_one(self):
        """While there is time, and none of them takes time again."""
        hosts = self.add_hosts('row', 5)
        self.placement.broken['GET', 'node of row000'] = ZeroDivisionError()
        self.assertRaises(ZeroDivisionError, self.drain.step)
        self.placement.broken.clear()
        self.batches.clear()
        self.patience.clear()
        self.drain.step()
        self.assertEqual(sorted([host] for host in hosts),
                         sorted(self.batches))
        self.assertEqual({drain.timeout(self.conf)}, self.patience)


class TestReading(WaitingTest):
    """How often the rows of the journal are read whole."""

    def setUp(self):
        super().setUp()
        self.reads = 0
        briefs = self.journal.rows.briefs

        def counted():
            self.reads += 1
            return briefs()

        self.journal.rows.briefs = counted

    def test_rows_of_a_backlog(self):
        """They are read once a second, not once a batch.

        A step takes some of many new rows: a SIGTERM waits for it.
        """
        for _number in range(5 * drain.BATCH):
            self.hand_over('h1')
        steps = 1
        while self.drain.step():
            steps += 1
        self.assertEqual(([], 5, 1), (self.left(), steps, self.reads))
        self.record('h3')
        self.drain.step()
        for _number in range(3 * drain.BATCH):
            self.hand_over('h1')
        self.drain.step()
        self.assertEqual(drain.BATCH + 1, len(self.left()))

    def test_very_many_rows(self):
        """They are read every ten seconds."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.agent.drain.LONG_JOURNAL', 4))
        for _number in range(5):
            self.hand_over('h1')
        self.break_all()
        for _second in range(30):
            self.drain.step()
            self.clock += 1.0
        self.assertEqual(3, self.reads)
        self.hand_over('h2')
        self.placement.broken.clear()
        for _second in range(11):
            self.drain.step()
            self.clock += 1.0
        self.assertEqual([], self.journal.rows.all())
