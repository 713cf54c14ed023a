# SPDX-License-Identifier: Apache-2.0
"""The first pages have what was measured and what the demonstration prints."""

import ast
import inspect
import pathlib
import re

import testtools

from tests.cloud.demo import steps
from tests.unit.repository import test_comparison_page

README = pathlib.Path(__file__).parents[3] / 'README.rst'
REPORT = test_comparison_page.SOURCE / 'reference/benchmarks/report.inc'
IN_SYNC = 'until placement is in sync, s'


def extract():
    """Return the lines of the terminal extract."""
    text = README.read_text().partition('The end of ``./tools/demo``')[2]
    return re.findall(r'^    (.+)', text.partition('Try it::')[0], re.M)


def commands():
    """Yield the commands of the demonstration whose arguments are constant."""
    for node in ast.walk(ast.parse(inspect.getsource(steps))):
        if (isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == 'run'
                and all(isinstance(one, ast.Constant) for one in node.args)):
            yield '$ ' + ' '.join(one.value for one in node.args)


def outage(name):
    """Return the medians of 1000 hosts added during an outage."""
    rows, = (rows for title, rows in test_comparison_page.tables(REPORT)
             if title.startswith('1000 hosts added during an outage'))
    return row(rows, '1000 hosts: ' + name)


def words(name):
    """Return the text of a page of the user guide without line breaks."""
    page = test_comparison_page.SOURCE / 'user' / name
    return ' '.join(page.read_text().split())


def row(rows, name):
    """Return the medians of a row: nova's, and ours."""
    found, = (one for one in rows if one[0] == name)
    return [cell.partition(' (')[0] for cell in found[1:3]]


class TestReadme(testtools.TestCase):

    def test_steps_are_the_demonstrations(self):
        shown = [line for line in extract() if line.startswith('[')]
        self.assertEqual(4, len(shown))
        self.assertEqual(set(), set(shown) - {
            '[ok] %02d %s' % (number, step.__doc__)
            for number, step in enumerate(steps.STORY, start=1)})

    def test_commands_are_the_demonstrations(self):
        shown = [line for line in extract() if line.startswith('$')]
        self.assertEqual(4, len(shown))
        self.assertEqual(set(), set(shown) - set(commands()))

    def test_figures_are_the_benchmarks(self):
        (_title, rows), = test_comparison_page.tables(README)
        wait = outage(IN_SYNC)
        self.assertIn('%s are answered with 500' % outage(
            'add-host answered 500')[0], rows[1][1])
        self.assertIn(
            '%s are answered with 200; the agent mirrors them in %s s' % (
                outage('add-host answered 200')[1], wait[1]), rows[1][2])
        self.assertIn('\n       %s s, otherwise' % wait[0],
                      README.read_text())
        sync = test_comparison_page.compared(5000)
        self.assertEqual(
            ['%s s, %s requests' % figures for figures in zip(
                row(sync, 'all in sync: wall, s'),
                row(sync, 'all in sync: placement requests'))],
            rows[5][1:])

    def test_figures_of_the_user_guide(self):
        nova, ours = outage(IN_SYNC)
        self.assertIn('placement was in sync %s seconds' % ours,
                      words('do-i-need-this.rst'))
        self.assertIn('in sync with nova after %s seconds' % ours,
                      words('comparison.rst'))
        self.assertIn('took %s seconds' % nova, words('comparison.rst'))
        sync = test_comparison_page.compared(5000)
        seconds, _ours = row(sync, 'all in sync: wall, s')
        self.assertIn('15,000 requests and %.0f seconds' % float(seconds),
                      words('do-i-need-this.rst'))
