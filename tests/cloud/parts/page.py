# SPDX-License-Identifier: Apache-2.0
"""The table of bad parts."""

from collections import abc

from tests.cloud.integration import pages
from tests.cloud.parts import judge
from tests.cloud.parts import measure
from tests.cloud.parts import situations

HEADER = ('Bad part', 'Extent', 'Add host', 'Drain', 'First sync',
          'Later sync', 'Delete service')
WIDTHS = (34, 26, 10, 10, 10, 10, 10)
COLUMNS = (judge.ADD, judge.DRAINED, judge.FIRST_SYNC, judge.LATER_SYNC,
           judge.DELETE)


def table(results: abc.Sequence[measure.Measured]) -> str:
    """Render the figures, in seconds."""
    return pages.figures('Seconds with one bad part', HEADER, WIDTHS, [
        (*_names(measured.situation), *(
            judge.shown(measured.figures[name]) for name in COLUMNS))
        for measured in results])


def named(situation: situations.Situation) -> str:
    """Return how the line of a situation begins."""
    return pages.csv_row(_names(situation))


def _names(situation: situations.Situation) -> tuple[str, str]:
    return situations.PARTS[situation.part], situation.extent
