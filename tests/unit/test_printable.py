# SPDX-License-Identifier: Apache-2.0
"""Characters that control a terminal, and those that do not."""

import sys
import unicodedata

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import printable

# Escape sequences that clear the screen (C0 and C1) and set the title, a
# further line, and text that is shown from right to left.
EVIL = 'a\x1b[2J\x9b2J\x1b]0;b\x07\r\nc\td\u202ee\u2066'
SAFE = 'a\\x1b[2J\\x9b2J\\x1b]0;b\\x07\\r\\nc\\td\\u202ee\\u2066'
DIRECTIONS = ('LRE', 'RLE', 'LRO', 'RLO', 'PDF', 'LRI', 'RLI', 'FSI', 'PDI')


class TestPrintable(testtools.TestCase):

    def test_controls_are_escaped(self):
        """Each of them, and nothing else is changed."""
        self.assertEqual(SAFE, printable.line(EVIL))
        for char in map(chr, range(sys.maxunicode + 1)):
            control = (
                unicodedata.category(char) in ('Cc', 'Zl', 'Zp')
                or unicodedata.bidirectional(char) in DIRECTIONS
                or char in '\u061c\u200e\u200f')
            if control != (printable.line(char) != char):
                self.fail(ascii(char))
            if control and not printable.line(char).isprintable():
                self.fail(ascii(char))

    def test_line_breaks_of_longer_texts_are_kept(self):
        self.assertEqual('a\n\nb\\t\n', printable.lines('a\n\nb\t\n'))

    def test_errors_are_one_printable_line(self):
        """They quote answers, and are printed, logged and stored."""
        for kind in (exceptions.MirrorError, exceptions.CellUnavailable,
                     exceptions.InvalidConfiguration):
            self.assertEqual(SAFE, str(kind(EVIL)))
            self.assertEqual('', str(kind('')))
