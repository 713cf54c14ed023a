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
        self.budget = deadline.Budget(10.0)

    def test_parts_share_it(self):
        """What happens between them, such as nova's method, is not counted."""
        with self.budget.spending():
            self.assertEqual(10.0, deadline.remaining())
            self.now += 4.0
        self.now += 1000.0
        with self.budget.spending(keep=1.0):
            self.assertEqual(5.0, deadline.remaining())
            self.now += 5.0
        with self.budget.spending():
            self.assertEqual(1.0, deadline.remaining())

    def test_failed_part_counts(self):
        """An error does not refund the time."""
        def fail():
            with self.budget.spending():
                self.now += 4.0
                raise ValueError

        self.assertRaises(ValueError, fail)
        with self.budget.spending():
            self.assertEqual(6.0, deadline.remaining())

    def test_half_is_left_at_most_for_the_next_part(self):
        """Placement is asked however short ``inline_timeout`` is."""
        with deadline.Budget(0.5).spending(keep=2.0):
            self.assertEqual(0.25, deadline.remaining())

    def test_silence_is_measured_by_the_part(self):
        """A party that was waited for half of the part is silent."""
        with self.budget.spending(keep=5.0):
            self.assertTrue(deadline.is_silence(1.0))
            self.assertFalse(deadline.is_silence(0.9))
        with deadline.Budget(0.5).spending(keep=0.25):
            self.assertTrue(deadline.is_silence(0.2))
            self.assertFalse(deadline.is_silence(0.1))
