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

    def test_answers(self):
        """Only stock nova's, without a fault or under the same, is accepted.

        Stock nova fails because of its own mirroring, this does not.
        """
        stock = dataclasses.replace(HEALTHY, status=500, message='placement')
        for ours in HEALTHY, stock:
            self.assertEqual([], self.problems(stock, ours))
        for changes in ({'status': 409}, {'message': 'the journal'}):
            ours = dataclasses.replace(stock, **changes)
            self.assertEqual(['the answer is %s' % judge.described(ours)],
                             self.problems(stock, ours))
        none = dataclasses.replace(HEALTHY, status=0, seconds=60.0)
        self.assertEqual([], self.problems(none, none))
        self.assertEqual(2, len(self.problems(HEALTHY, none)))

    def test_time_and_result(self):
        """The hook has inline_timeout and a second, as has the request.

        Placement has to equal nova, and foreign associations survive.
        """
        none = dataclasses.replace(HEALTHY, status=0, seconds=60.0)
        for stock, seconds, after, problems in (
                (HEALTHY, 6.0, 3.9, []), (none, 6.0, 3.9, []),
                (HEALTHY, 6.0, 4.1, ['the hook took 6.1 s']),
                (none, 6.0, 4.1, ['the hook took 6.1 s']),
                (HEALTHY, 6.2, 0.0, ['it took 6.1 s longer'])):
            self.assertEqual(problems, self.problems(
                stock, dataclasses.replace(
                    HEALTHY, seconds=seconds, before=2.0, after=after)))
        different = ['a host is in - instead of foreign']
        self.assertEqual(different, self.problems(
            HEALTHY, HEALTHY, different))
