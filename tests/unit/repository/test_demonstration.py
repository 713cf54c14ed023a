# SPDX-License-Identifier: Apache-2.0
"""What fails the demonstration."""

import testtools

from tests.cloud.demo import steps


class TestOutcome(testtools.TestCase):

    def check(self, result, outcome, stock):
        self.assertEqual(result, outcome.result(stock))

    def test_repair(self):
        self.check('ok', steps.Outcome('cmp-1', 'cmp-1', 'cmp-2'), False)
        self.check('FAIL', steps.Outcome('cmp-1', 'cmp-2', 'cmp-2'), False)

    def test_harm(self):
        """Stock nova that has been mended fails its demonstration."""
        self.check('WRONG', steps.Outcome('cmp-1', 'cmp-2', 'cmp-2'), True)
        self.check('FAIL', steps.Outcome('cmp-1', 'cmp-1', 'cmp-2'), True)
        self.check('ok', steps.Outcome('cmp-1', 'cmp-1'), True)

    def test_no_expectation(self):
        """A step that expects nothing proves nothing."""
        for stock in (False, True):
            self.check('FAIL', steps.Outcome('', ''), stock)
