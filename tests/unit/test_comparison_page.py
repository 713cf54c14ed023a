# SPDX-License-Identifier: Apache-2.0
"""The comparison page has the figures that were measured last."""

import pathlib
import re

import testtools

SOURCE = pathlib.Path(__file__).parent.parent.parent / 'doc' / 'source'
MEASURED = {'nothing mirrored': 'nothing mirrored: wall, s',
            'all in sync': 'all in sync: wall, s'}
REQUESTS = 'Requests, '


def rows(path):
    """The cells of each row of the tables of a page."""
    found = []
    for line in path.read_text().splitlines():
        cell = re.match(r'   ([* ]) -(.*)', line)
        if cell and cell[1] == '*':
            found.append([])
        if cell:
            found[-1].append(cell[2].strip())
    return found


class TestComparisonPage(testtools.TestCase):

    def measured(self, row):
        """What the benchmark wrote of a row of the page."""
        subject = row[0].removeprefix(REQUESTS)
        hosts, state = re.match(r'(\d+) hosts, (.+)', subject).groups()
        name = (state + ': placement requests' if subject != row[0]
                else MEASURED[state])
        table = SOURCE / 'contributor' / 'benchmarks' / f'sync-{hosts}.inc'
        found, = (one for one in rows(table) if one[0] == name)
        # Without the least and the greatest of several runs.
        return [cell.partition(' (')[0] for cell in found[1:4]]

    def test_figures(self):
        shown = [row for row in rows(SOURCE / 'comparison.rst')
                 if re.match(r'(%s)?\d+ hosts' % REQUESTS, row[0])]
        self.assertEqual(6, len(shown))
        for row in shown:
            self.assertEqual(
                self.measured(row),
                [cell.removesuffix(' s') for cell in row[1:]], row[0])
