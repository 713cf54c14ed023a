# SPDX-License-Identifier: Apache-2.0
"""Tables that fit a terminal."""

import io
import re

import fixtures
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import terminal_tables
from tests.unit.test_printable import EVIL

UUID = uuidutils.generate_uuid()
HOST = 'compute-17.rack-3.example'
TEXT = ('placement at http://10.0.0.5:8778 refused the connection. Start it, '
        'or correct the URL in the catalog')


def widest(table):
    return max(map(len, table.splitlines()))


class TestTables(testtools.TestCase):

    def render(self, *rows):
        return terminal_tables.render('ABC'[:len(rows[0])], rows)

    def test_text_is_wrapped_between_words(self):
        """A UUID can be copied, as long as another column gives way."""
        table = self.render((UUID, 'compute-17', TEXT))
        self.assertEqual(80, widest(table))
        self.assertIn(UUID, table)
        self.assertIn('compute-17', table)
        self.assertEqual(80, widest(self.render((UUID, UUID, UUID))))

    def test_no_row(self):
        """The columns are shown."""
        self.assertIn('| Name | Hosts |',
                      terminal_tables.render(('Name', 'Hosts'), []))

    def test_line_of_a_cell_that_is_empty(self):
        """A host without a provider has one line."""
        table = self.render((('h1', ''), ''))
        self.assertIn('| h1 |   |', table)
        self.assertEqual(5, len(table.splitlines()))

    def test_name_is_divided_after_an_underscore(self):
        """If the table is too wide otherwise."""
        for name in 'foreign_aggregate', 'the foreign_aggregate':
            self.assertIn('| foreign_ ', self.render((name, UUID, HOST)))
        self.assertIn('| foreign_aggregate |',
                      self.render(('foreign_aggregate', UUID)))

    def test_width_of_the_terminal(self):
        """A table takes it, as far as its words allow; without one, 80."""
        for columns, rows, width in (
                ('', [(HOST, TEXT)], 79), ('40', [(HOST, TEXT)], 40),
                ('200', [(HOST, TEXT)], 4 + 3 + len(HOST) + len(TEXT)),
                ('40', [('cmp-1', UUID)], 40)):
            self.useFixture(fixtures.EnvironmentVariable('COLUMNS', columns))
            self.assertEqual(width, widest(self.render(*rows)))

    def test_colours(self):
        """Of states, on a terminal, without NO_COLOR, and in the frame."""
        out, rows = io.StringIO(), [('missing', 'cmp-1'), ('cmp-1', 'stale')]
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', out))
        plain = self.render(*rows)
        self.assertNotIn('\x1b', plain)
        out.isatty = lambda: True
        coloured = self.render(*rows)
        self.assertIn('| \x1b[31mmissing\x1b[0m |', coloured)
        self.assertEqual(plain, re.sub('\x1b.*?m', '', coloured))
        self.useFixture(fixtures.EnvironmentVariable('NO_COLOR', '1'))
        self.assertEqual(plain, self.render(*rows))

    def test_lines(self):
        """A tuple has a line for each value; a control is none."""
        table = terminal_tables.render(('A',), [((1, EVIL),)], divider=True)
        self.assertEqual(6, len(table.splitlines()))
        self.assertNotIn('\x1b', table)

    def test_usual_rows_of_a_sync(self):
        """A host name of 25 characters, and UUIDs that can be copied."""
        for name in 'zone-of-the-best-customer', '':
            table = terminal_tables.render(*syncs.in_table([
                ('foreign_aggregate', HOST, UUID, name, UUID)]))
            self.assertLess(widest(table), 81)
            for word in HOST, UUID:
                self.assertIn(word, table)
