# SPDX-License-Identifier: Apache-2.0
"""The table of bad parts."""

from collections import abc

from tests.cloud.integration import pages
from tests.cloud.parts import judge
from tests.cloud.parts import measure
from tests.cloud.parts import situations

HEADER = ('Bad part', 'Extent', 'Add host', 'Mirrored', 'Drain', 'First sync',
          'Later sync', 'Delete service')
WIDTHS = (34, 26, 10, 10, 10, 10, 10, 10)
COLUMNS = (judge.ADD, judge.MIRRORED, judge.DRAINED, judge.FIRST_SYNC,
           judge.LATER_SYNC, judge.DELETE)


def table(results: abc.Sequence[measure.Measured]) -> str:
    """Render the figures, in seconds."""
    return pages.figures('Seconds with one bad part', HEADER, WIDTHS, [
        (situations.PARTS[measured.situation.part], measured.situation.extent,
         *(judge.shown(measured.figures[name]) for name in COLUMNS))
        for measured in results])
