# SPDX-License-Identifier: Apache-2.0
"""Tests of the back-off of one part."""

import testtools

from nova_aggregate_mirror.limits import backoff


class TestBackoff(testtools.TestCase):
    """The seconds double, between the first and the longest."""

    def test_doubles_up_to_the_longest(self):
        part = backoff.Backoff(first=1.0, longest=5.0)
        ends = []
        for now in 100.0, 200.0, 300.0, 400.0, 500.0:
            part.extend(now)
            ends.append(part.until)
        self.assertEqual([101.0, 202.0, 304.0, 405.0, 505.0], ends)

    def test_before_a_failure(self):
        self.assertLess(backoff.Backoff().until, -1e300)

    def test_keeps_the_last_reason(self):
        part = backoff.Backoff()
        part.extend(0.0, 'refused')
        part.extend(0.0, 'silent')
        self.assertEqual('silent', part.reason)
