# SPDX-License-Identifier: Apache-2.0
"""Measured tables of the documentation, compared so that they stay current."""

from collections import abc
import os
import textwrap

from tests.cloud import environment

FOLDER = environment.TOP / 'doc' / 'source' / 'reference' / 'differences'
# Set to anything, the tables are written and not only compared.
VARIABLE = 'AGGREGATE_MIRROR_WRITE_TABLES'
WIDTH = 80


def difference(name: str, text: str) -> str:
    """Return how a table of the documentation differs, or ''."""
    path = FOLDER / ('%s.inc' % name)
    if os.environ.get(VARIABLE):
        path.write_text(text)
    if path.read_text() == text:
        return ''
    return '%s is not as measured; set %s=1 to write:\n%s' % (
        path, VARIABLE, text)


def figures(title: str, header: abc.Sequence[object],
            widths: abc.Sequence[int],
            rows: abc.Iterable[abc.Sequence[object]]) -> str:
    """Render a table of short cells, a line per row."""
    lines = ['.. csv-table:: %s' % title, '   :header-rows: 1',
             '   :widths: %s' % ' '.join(map(str, widths)), '']
    for row in (header, *rows):
        cells = ['"%s"' % text if ',' in text else text
                 for text in map(str, row)]
        lines.append('   ' + ','.join(cells))
    return '\n'.join(lines) + '\n'


def texts(title: str, header: abc.Sequence[str], widths: abc.Sequence[int],
          rows: abc.Iterable[abc.Sequence[str]]) -> str:
    """Render a table of sentences, one or more lines per cell."""
    lines = ['.. list-table:: %s' % title, '   :header-rows: 1',
             '   :widths: %s' % ' '.join(map(str, widths)), '']
    for row in (header, *rows):
        for number, cell in enumerate(row):
            bullet = ' ' if number else '*'
            lines += textwrap.wrap(
                cell, WIDTH, initial_indent='   %s - ' % bullet,
                subsequent_indent=' ' * 7) or ['     -']
    return '\n'.join(lines) + '\n'
