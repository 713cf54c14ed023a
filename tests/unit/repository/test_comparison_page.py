# SPDX-License-Identifier: Apache-2.0
"""The comparison page has the latest measured figures."""

import pathlib
import re

import testtools

SOURCE = pathlib.Path(__file__).parents[3] / 'doc' / 'source'
MEASURED = {'nothing mirrored': 'nothing mirrored: wall, s',
            'all in sync': 'all in sync: wall, s'}
REQUESTS = 'Requests, '


TABLE = '.. list-table::'


def tables(path):
    """Yield each table of a page: its title, and the cells of its rows."""
    for text in path.read_text().split(TABLE)[1:]:
        title, _, text = text.partition('\n')
        rows = []
        for line in text.splitlines():
            cell = re.match(r'   ([* ]) -(.*)', line)
            if cell and cell[1] == '*':
                rows.append([])
            if cell:
                rows[-1].append(cell[2].strip())
        yield title.strip(), rows


def compared(hosts):
    """Return the table of a full sync against nova-manage's."""
    found = [rows for path in sorted((
        SOURCE / 'reference' / 'benchmarks').glob('*.inc'))
        for title, rows in tables(path)
        if title.startswith('%s x 3 hosts and memberships, 20 ' % hosts)
        and 'nova-manage' in rows[0]]
    if len(found) != 1:
        raise AssertionError('%d tables for %s hosts' % (len(found), hosts))
    return found[0]


class TestComparisonPage(testtools.TestCase):

    def measured(self, row):
        """Return the benchmark's cells for a row of the page."""
        subject = row[0].removeprefix(REQUESTS)
        hosts, state = re.match(r'(\d+) hosts, (.+)', subject).groups()
        name = (state + ': placement requests' if subject != row[0]
                else MEASURED[state])
        found, = (one for one in compared(hosts) if one[0] == name)
        # Without the minimum and maximum of several runs.
        return [cell.partition(' (')[0] for cell in found[1:4]]

    def test_figures(self):
        page = SOURCE / 'user' / 'comparison.rst'
        shown = [row for _title, rows in tables(page) for row in rows
                 if re.match(r'(%s)?\d+ hosts' % REQUESTS, row[0])]
        self.assertEqual(6, len(shown))
        for row in shown:
            self.assertEqual(
                self.measured(row),
                [cell.removesuffix(' s') for cell in row[1:]], row[0])
