# SPDX-License-Identifier: Apache-2.0
"""Tests of the back-off of one part."""

import testtools

from nova_aggregate_mirror.limits import backoff


class TestBackoff(testtools.TestCase):
    """The seconds double, between the first and the longest."""

    def test_doubles_up_to_the_longest(self):
        for part, expected in (
                (backoff.Backoff(), [1, 2, 4, 8, 16, 30, 30]),
                (backoff.Backoff(first=2.0, longest=5.0), [2, 4, 5, 5])):
            for seconds in expected:
                part.extend(100.0)
                self.assertEqual(100.0 + seconds, part.until)

    def test_before_a_failure(self):
        self.assertLess(backoff.Backoff().until, -1e300)

    def test_keeps_the_last_reason(self):
        part = backoff.Backoff()
        part.extend(0.0, 'refused')
        part.extend(0.0, 'silent')
        self.assertEqual('silent', part.reason)
