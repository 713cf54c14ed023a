# SPDX-License-Identifier: Apache-2.0
"""The selection of cases, and what counts as a broken promise."""

import dataclasses
import itertools

import testtools

from tests.cloud.outages import cases
from tests.cloud.outages import judge
from tests.cloud.outages import measure
from tests.cloud.outages import moments
from tests.cloud.outages import page

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

    def test_impossible_cases_are_left_out(self):
        """The table has each possible cell, once."""
        table = cases.table()
        self.assertEqual(len(table), len(set(table)))
        self.assertEqual((8 * 5 - 4) * 3 * 4, len(table))
        self.assertNotIn('locks', {
            case.fault for case in table if case.party == 'keystone'})

    def test_filters(self):
        """Only the requested values are in the table."""
        self.assertEqual([CASE], cases.table(
            ['placement'], ['silent'], ['ready'], ['add']))


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


class TestMoments(testtools.TestCase):

    def test_seconds_of_each_part_are_added(self):
        """The deletion of a service has an operation for each aggregate."""
        names = (moments.BEGIN, moments.READY, moments.RETURNED,
                 moments.DONE)
        # A hook waits for a second at each moment.
        seen = [moments.Moment(name, at, at + 1) for at, name in zip(
            (0, 3, 5, 10, 20, 22, 24, 26), names * 2)]
        self.assertEqual([3, 2, 5], [
            moments.seconds(seen, *each) for each in zip(names, names[1:])])


class TestPage(testtools.TestCase):

    def test_answers_without_an_end_are_shown_as_such(self):
        """A cell has both answers, or the seconds that were waited."""
        none = dataclasses.replace(HEALTHY, status=0, seconds=60.004)
        self.assertEqual('> 60 / 200 0.1', page.cell(
            measure.Measured(CASE, none, HEALTHY, 0.0, ())))

    def test_written_page_has_every_case(self):
        """The documentation has the figures of the whole table."""
        lines = (page.FOLDER / 'figures.csv').read_text().splitlines()
        wanted = [','.join(dataclasses.astuple(case))
                  for case in (*cases.healthy(), *cases.table())]
        self.assertEqual(wanted, [
            ','.join(line.split(',')[:4]) for line in lines[1:]])
