# SPDX-License-Identifier: Apache-2.0
"""The selection of cases, and what counts as a broken promise."""

import dataclasses
import itertools

import testtools

from tests.cloud.outages import cases
from tests.cloud.outages import judge
from tests.cloud.outages import measure

CASE = cases.Case('placement', 'silent', 'ready', 'add')
HEALTHY = measure.Answer(200, '', 0.1, 0.0, 0.1, 0.0)


class TestPairs(testtools.TestCase):

    def test_every_pair_of_values_occurs(self):
        """Each pair that can exist is in the selection, in few cases."""
        def pairs(some):
            return {pair for case in some for pair in itertools.combinations(
                enumerate(dataclasses.astuple(case)), 2)}

        table = cases.table()
        chosen = cases.pairs(table)
        self.assertEqual(pairs(table), pairs(chosen))
        # Each of 36 faults of a party requires a case.
        self.assertLess(len(chosen), 50)
        self.assertEqual(chosen, cases.pairs(table))


class TestProblems(testtools.TestCase):

    def problems(self, stock, ours, different=()):
        return judge.problems(
            measure.Measured(CASE, stock, ours, 0.0, tuple(different)),
            {'add': HEALTHY}, 5.0)

    def test_answer_without_a_fault_is_good(self):
        """Stock nova fails because of its own mirroring, this does not."""
        stock = dataclasses.replace(HEALTHY, status=500, message='placement')
        self.assertEqual([], self.problems(stock, HEALTHY))
        self.assertEqual([], self.problems(stock, stock))

    def test_another_answer_is_wrong(self):
        """Neither another status nor another message is accepted."""
        stock = dataclasses.replace(HEALTHY, status=500, message='placement')
        for changes in ({'status': 409}, {'message': 'the journal'}):
            ours = dataclasses.replace(stock, **changes)
            self.assertEqual(['the answer is %s' % judge.described(ours)],
                             self.problems(stock, ours))

    def test_no_answer_is_good_only_if_stock_nova_has_none(self):
        """The hook may not keep a request that nova has answered."""
        none = dataclasses.replace(HEALTHY, status=0, seconds=60.0)
        self.assertEqual([], self.problems(none, none))
        self.assertEqual(2, len(self.problems(HEALTHY, none)))

    def test_time_is_limited(self):
        """The hook has inline_timeout and a second, as has the request."""
        none = dataclasses.replace(HEALTHY, status=0, seconds=60.0)
        for stock in HEALTHY, none:
            slow = dataclasses.replace(
                HEALTHY, seconds=6.0, before=2.0, after=3.9)
            self.assertEqual([], self.problems(stock, slow))
            slow = dataclasses.replace(slow, after=4.1)
            self.assertEqual(['the hook took 6.1 s'],
                             self.problems(stock, slow))
        slow = dataclasses.replace(HEALTHY, seconds=6.2)
        self.assertEqual(['it took 6.1 s longer'],
                         self.problems(HEALTHY, slow))

    def test_difference_is_wrong(self):
        """Placement has to equal nova, and foreign associations survive."""
        self.assertEqual(['a host is in - instead of foreign'], self.problems(
            HEALTHY, HEALTHY, ['a host is in - instead of foreign']))
