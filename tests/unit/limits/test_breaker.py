# SPDX-License-Identifier: Apache-2.0
"""Per-process back-off after placement failures."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import breaker

BACKOFF = 30.0


class TestBreaker(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = 100.0
        self.breaker = breaker.Breaker(lambda: self.clock)

    def fail_with(self, error, after=0.0, backoff=BACKOFF):
        began = self.clock
        self.clock += after
        self.breaker.begin(error, began, backoff)

    def assert_lasts(self, seconds, recorded=True):
        """Nothing is tried for so long, for a reason, and then it is."""
        end = self.clock + seconds
        self.clock = end - 0.01
        error = self.assertRaises(exceptions.NotTried, self.breaker.check,
                                  recorded)
        self.assertEqual('not attempted after a recent failure: reason',
                         str(error))
        self.clock = end
        self.breaker.check(recorded)

    def test_timeout(self):
        """The next call may wait as long again."""
        self.fail_with(exceptions.DeadlineExceeded('reason'), after=5)
        self.assert_lasts(BACKOFF)

    def test_refusal_that_took_long(self):
        """To the caller it is the same as a timeout."""
        self.fail_with(exceptions.PlacementUnreachable('reason'), after=3)
        self.assert_lasts(BACKOFF)

    def test_refusal_at_once(self):
        """By placement or keystone, or what a proxy says in their place."""
        for kind in (exceptions.PlacementUnreachable, exceptions.NotAuthorized,
                     exceptions.MalformedAnswer):
            self.fail_with(kind('reason'))
            self.assert_lasts(breaker.REFUSED_PAUSE)

    def test_shorter_option_holds(self):
        """0 tries at every request."""
        self.fail_with(exceptions.PlacementUnreachable('reason'), backoff=0.5)
        self.assert_lasts(0.5)
        for kind in exceptions.PlacementUnreachable, \
                exceptions.DeadlineExceeded:
            self.fail_with(kind('reason'), backoff=0.0)
            self.breaker.check(recorded=True)

    def test_what_only_this_call_met(self):
        """The next one may succeed, and costs no token."""
        for error in (exceptions.NotTried('reason'),
                      exceptions.PlacementFailed('reason'),
                      exceptions.GenerationConflict('reason'),
                      exceptions.CellUnavailable('reason')):
            self.fail_with(error, after=5)
            self.breaker.check(recorded=True)

    def test_refusal_does_not_shorten_a_timeout(self):
        """A call that began earlier may fail later, and in another way."""
        self.fail_with(exceptions.DeadlineExceeded('reason'))
        self.fail_with(exceptions.PlacementUnreachable('reason'))
        self.assert_lasts(BACKOFF)

    def test_what_is_not_in_the_journal(self):
        """It is tried, unless it would have to wait."""
        self.fail_with(exceptions.PlacementUnreachable('reason'))
        self.breaker.check(recorded=False)
        self.fail_with(exceptions.DeadlineExceeded('reason'))
        self.assert_lasts(BACKOFF, recorded=False)
