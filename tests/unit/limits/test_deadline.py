# SPDX-License-Identifier: Apache-2.0
"""The time that the parts of a call share."""

import types

import fixtures
import testtools

from nova_aggregate_mirror.limits import deadline


class TestBudget(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.time',
            types.SimpleNamespace(monotonic=lambda: self.now)))
        self.budget = deadline.Budget(10.0, floor=2.0, tolerance=0.25)

    def test_parts_share_it(self):
        """What happens between them, such as nova's method, is not counted."""
        with self.budget.spending():
            self.assertEqual(10.0, deadline.remaining())
            self.now += 4.0
        self.now += 1000.0
        with self.budget.spending():
            self.assertEqual(6.0, deadline.remaining())
            self.now += 7.0
        with self.budget.spending():
            self.assertEqual(0.0, deadline.remaining())

    def test_failed_part_counts(self):
        """An error does not refund the time."""
        with testtools.ExpectedException(ValueError), self.budget.spending():
            self.now += 4.0
            raise ValueError
        with self.budget.spending():
            self.assertEqual(6.0, deadline.remaining())

    def test_budget_without_a_floor(self):
        with deadline.Budget(0.0).spending(essential=True):
            self.assertEqual(0.0, deadline.remaining())

    def test_essential_parts_share_one_floor(self):
        """The journal is written even if nothing is left, but not for ever."""
        with self.budget.spending(essential=True):
            self.assertEqual(10.0, deadline.remaining())
            self.now += 1.0
        with self.budget.spending():
            self.assertEqual(9.0, deadline.remaining())
            self.now += 20.0
        for remaining in 2.0, 0.5, 0.0:
            with self.budget.spending(essential=True):
                self.assertEqual(remaining, deadline.remaining())
                self.now += 1.5
            with self.budget.spending():
                self.assertEqual(0.0, deadline.remaining())

    def test_part_as_quick_as_is_free(self):
        """It is counted from what it takes beyond that."""
        with self.budget.spending():
            self.now += 10.0
        with self.budget.spending(essential=True):
            self.now += 0.25
        with self.budget.spending(essential=True):
            self.assertEqual(2.0, deadline.remaining())
            self.now += 0.5
        with self.budget.spending(essential=True):
            self.assertEqual(1.5, deadline.remaining())

    def test_time_that_is_left_does_not_raise_the_floor(self):
        budget = deadline.Budget(10.0, 2.0)
        with budget.spending(essential=True):
            self.now += 9.5
        with budget.spending():
            self.now += 0.5
        with budget.spending(essential=True):
            self.assertEqual(2.0, deadline.remaining())
            self.now += 0.5
        with budget.spending(essential=True):
            self.assertEqual(1.5, deadline.remaining())

    def test_is_budget(self):
        """Only what a request to nova-api spends is one."""
        self.assertFalse(deadline.is_budget())
        with deadline.within(3.0):
            self.assertFalse(deadline.is_budget())
        with deadline.Budget(0.5).spending():
            self.assertTrue(deadline.is_budget())

    def test_all_parts_together(self):
        """However many wait, they end in time."""
        began = self.now
        for number in range(100):
            with self.budget.spending(essential=bool(number % 2)):
                self.now += min(0.7, deadline.remaining())
        self.assertLessEqual(self.now - began, 12.0)

    def test_parts_that_do_not_wait(self):
        """A healthy journal is written for each of 300 aggregates."""
        with self.budget.spending():
            self.now += 10.0
        for _number in range(300):
            with self.budget.spending(essential=True):
                self.assertEqual(2.0, deadline.remaining())
                self.now += 0.05

    def test_silence_is_measured_by_the_whole(self):
        """A request that begins shortly before the deadline shows nothing."""
        budget = deadline.Budget(1.0)
        with budget.spending():
            self.now += 0.8
        with budget.spending():
            self.assertFalse(deadline.is_silence(0.2))
            self.assertTrue(deadline.is_silence(0.5))

    def test_silence_in_a_call_that_has_much_time(self):
        """A second shows it; in one that has none, nothing does."""
        with deadline.within(60.0):
            self.assertFalse(deadline.is_silence(0.9))
            self.assertTrue(deadline.is_silence(1.0))
        with deadline.within(1.2):
            self.assertFalse(deadline.is_silence(0.5))
            self.assertTrue(deadline.is_silence(0.6))
        with deadline.within(0.0):
            self.assertFalse(deadline.is_silence(0.0))

    def test_nested_deadlines(self):
        """A part cannot prolong the call that it is in."""
        with deadline.within(2.0):
            with deadline.within(60.0):
                self.assertEqual(2.0, deadline.remaining())
            with deadline.within(1.0):
                self.assertEqual(1.0, deadline.remaining())

    def test_socket_operation(self):
        """It has what is left, its own limit, or an error; never 0."""
        self.assertIsNone(deadline.allowance(None))
        self.assertEqual(3.0, deadline.allowance(3.0))
        with deadline.within(2.0):
            self.assertEqual([2.0, 2.0, 1.0], [
                deadline.allowance(limit) for limit in (None, 3.0, 1.0)])
            self.now += 60.0
            self.assertEqual(0.0, deadline.remaining())
            self.assertRaises(TimeoutError, deadline.allowance, 3.0)
