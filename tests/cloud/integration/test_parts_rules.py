# SPDX-License-Identifier: Apache-2.0
"""The lines of the table of bad parts, and what counts as too late."""

import math

import testtools

from tests.cloud.parts import judge
from tests.cloud.parts import situations

GOOD = {judge.ADD: 0.1, judge.DRAINED: 1.0, judge.FIRST_SYNC: 5.0,
        judge.LATER_SYNC: 5.0, judge.DELETE: 1.0}


class TestSituations(testtools.TestCase):

    def test_selection_has_each_kind_of_part(self):
        """The lines that the tests measure exist."""
        selection = situations.selection()
        self.assertEqual(sorted(situations.SELECTED),
                         sorted(map(str, selection)))
        self.assertEqual(
            {part.partition('-')[0] for part in situations.PARTS}
            - {situations.NONE, 'many'},
            {line.part.partition('-')[0] for line in selection})


class TestJudge(testtools.TestCase):

    def problems(self, part, **changes):
        return judge.problems(situations.Situation(part), GOOD | changes)

    def test_each_measurement_has_a_limit(self):
        """What was not seen is too late, too."""
        self.assertEqual([], self.problems('none'))
        for name in GOOD:
            self.assertEqual(1, len(self.problems('none', **{
                name: math.inf})), name)

    def test_what_a_bad_part_excuses(self):
        """Only the first sync waits for a cell, only the drain for a table."""
        waited = judge.SYNC_INTERVAL + judge.CELL_TIMEOUT
        for part, name, seconds, count in (
                ('table-locked', judge.DRAINED, math.nan, 0),
                ('table-locked', judge.LATER_SYNC, 10.1, 1),
                ('cell-silent', judge.FIRST_SYNC, waited, 0),
                ('cell-silent', judge.LATER_SYNC, waited, 1),
                ('cell-refuses', judge.FIRST_SYNC, waited, 1)):
            self.assertEqual(count, len(self.problems(
                part, **{name: seconds})), (part, name))
