# SPDX-License-Identifier: Apache-2.0
"""Which journal rows are due, and which may be closed."""

import testtools

from nova_aggregate_mirror.agent import row_schedule
from nova_aggregate_mirror import journal

OVERDUE = 10.0
LONGEST = 600.0
ALL = 100


def brief(row, running=False, attempts=0, pending=True):
    return journal.Brief(row, running, attempts, pending)


class TestSchedule(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = 5000.0
        self.schedule = row_schedule.Schedule(
            OVERDUE, LONGEST, lambda: self.clock)

    def due(self):
        return self.schedule.due(ALL)

    def test_row_that_was_handed_over_is_due_at_once(self):
        """Its operation has ended, so it may be closed."""
        self.schedule.update([brief('a')])
        self.assertEqual(['a'], self.due())
        self.assertTrue(self.schedule.may_close('a'))

    def test_rows_that_failed_share_no_batch_with_others(self):
        """What fails again, or is locked again, delays no healthy host."""
        self.schedule.update([brief('failed')])
        self.schedule.fail('failed', 0.0)
        self.schedule.update([brief('failed'), brief('healthy')])
        self.assertEqual(['healthy'], self.due())
        self.assertEqual(['failed'], self.due())

    def test_new_rows_share_no_batch_with_others(self):
        """What was just recorded waits for no older row that is locked."""
        self.schedule.update([brief('old'), brief('running', running=True)])
        self.assertEqual([], self.schedule.due_new(ALL))
        self.schedule.update([
            brief('old'), brief('running'), brief('new'),
            brief('other', running=True), brief('failed', attempts=2)])
        self.assertEqual(['running', 'new'], self.schedule.due_new(ALL))
        self.assertEqual([], self.schedule.due_new(ALL))
        self.schedule.close('running')
        self.schedule.close('new')
        self.assertEqual(['old'], self.due())

    def test_successes_before_a_batch_that_may_hang(self):
        """They are none of its rows: its rows are still tried alone."""
        for number in range(row_schedule.NEEDED_SUCCESSES - 1):
            self.schedule.update([brief('early %d' % number)])
            self.schedule.isolate('early %d' % number, 0.0, stays=True)
            self.schedule.note_alone(succeeded=True)
        self.schedule.update([brief('a'), brief('b'), brief('c')])
        for row in 'a', 'b', 'c':
            self.schedule.isolate(row, 0.0, stays=False)
        self.schedule.close('a')
        self.schedule.note_alone(succeeded=True)
        self.assertEqual([], self.due())

    def isolate(self, count):
        """Let rows wait for their turn alone; return their IDs."""
        rows = ['%04d' % number for number in range(count)]
        self.schedule.update(map(brief, rows))
        for row in rows:
            self.schedule.isolate(row, 0.0, stays=False)
        return rows

    def succeed(self, rows, count):
        for row in rows[:count]:
            self.schedule.close(row)
            self.schedule.note_alone(succeeded=True)
        del rows[:count]

    def test_failure_between_successes_of_rows_alone(self):
        """It may be the one that held up the others: it starts again."""
        rows = self.isolate(2 * row_schedule.NEEDED_SUCCESSES + 1)
        self.succeed(rows, row_schedule.NEEDED_SUCCESSES - 1)
        self.schedule.note_alone(succeeded=False)
        self.succeed(rows, row_schedule.NEEDED_SUCCESSES - 1)
        self.assertEqual([], self.due())
        self.succeed(rows, 1)
        self.assertEqual(rows, self.due())

    def test_further_rows_that_may_hang(self):
        """They need as many successes as those before."""
        rows = self.isolate(row_schedule.NEEDED_SUCCESSES + 1)
        self.succeed(rows, row_schedule.NEEDED_SUCCESSES)
        self.assertEqual(rows, self.due())
        rows = self.isolate(row_schedule.NEEDED_SUCCESSES + 1)
        self.succeed(rows, row_schedule.NEEDED_SUCCESSES - 1)
        self.assertEqual([], self.due())
        self.succeed(rows, 1)
        self.assertEqual(rows, self.due())

    def test_rows_that_failed_have_their_turn(self):
        """However many others are recorded meanwhile."""
        self.schedule.update([brief('failed')])
        self.schedule.fail('failed', 0.0)
        batches = []
        for number in range(4):
            self.schedule.update([brief('failed'), brief('new%d' % number)])
            batches.append(self.due())
        self.assertEqual([['new0'], ['failed'], ['new2'], ['failed']], batches)

    def test_running_row_is_due_when_it_is_overdue(self):
        """Rule 2: its own call has its time; then it is converged."""
        self.schedule.update([brief('a', running=True)])
        self.clock += OVERDUE - 0.1
        self.assertEqual([], self.due())
        self.clock += 0.1
        self.assertEqual(['a'], self.due())
        self.assertFalse(self.schedule.may_close('a'))

    def test_running_row_that_no_call_can_have(self):
        """It may be closed when this agent has seen it for max_call_age."""
        self.schedule.update([brief('a', running=True)])
        self.clock += LONGEST - 0.1
        self.assertFalse(self.schedule.may_close('a'))
        self.clock += 0.1
        self.schedule.update([brief('a', running=True), brief('b', True)])
        self.assertTrue(self.schedule.may_close('a'))
        self.assertFalse(self.schedule.may_close('b'))

    def test_order(self):
        """The row that has been due longest comes first."""
        self.schedule.update([brief('a', running=True), brief('b')])
        self.clock += OVERDUE + 5
        self.schedule.update([brief('a', running=True), brief('b'), brief('d'),
                              brief('c')])
        self.assertEqual(['d', 'c', 'a', 'b'], self.due())
        self.assertEqual(['d', 'c'], self.schedule.due(2))

    def test_row_that_was_closed_is_not_due(self):
        """Rows that are no longer in the journal are forgotten."""
        self.schedule.update([brief('a'), brief('b')])
        self.schedule.update([brief('b')])
        self.assertEqual(['b'], self.due())

    def test_backlog(self):
        """The age is how long this agent has seen a pending row."""
        self.assertEqual(journal.Backlog(0, 0, 0.0), self.schedule.backlog())
        waiting = brief('a', running=True, pending=False)
        self.schedule.update([waiting])
        self.clock += 7
        self.schedule.update([waiting, brief('b'), brief('c', running=True)])
        self.clock += 3
        self.assertEqual(journal.Backlog(2, 1, 3.0), self.schedule.backlog())
