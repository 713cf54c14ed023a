# SPDX-License-Identifier: Apache-2.0
"""Tables that fit the terminal, whatever controls a cell has."""

from collections import abc
import itertools
import os
import re
import shutil
import sys
import textwrap
from typing import Any

import prettytable

from nova_aggregate_mirror import printable

WIDTH = 80  # Columns of what is not a terminal.
_RED, _GREEN, _YELLOW = ('\x1b[%dm%%s\x1b[0m' % code for code in (31, 32, 33))
COLOURS = {
    'missing': _RED, 'stale': _YELLOW, 'in_sync': _GREEN,
    'Result: Failure': _RED, 'Result: Warning': _YELLOW,
    'Result: Success': _GREEN}
"""Colours of the lines that are a state."""
Cell = Any
"""A value, or a tuple of texts with a line for each that is not empty."""


def render(columns: abc.Sequence[str], rows: abc.Iterable[abc.Sequence[Cell]],
           divider: bool = False) -> str:
    """Render a table, perhaps with a line after each row."""
    table = prettytable.PrettyTable(columns)
    table.align = 'l'
    for row in _fit(columns, rows):
        table.add_row(row, divider=divider)
    return str(table.get_string())


def _fit(columns: abc.Sequence[str], rows: abc.Iterable[abc.Sequence[Cell]]
         ) -> list[list[str]]:
    """Return the cells as text, escaped and wrapped.

    Lines are divided between words; within words, such as UUIDs, only where
    no other column can be narrower.
    """
    cells = [[_lines(cell) for cell in row] for row in rows]
    widths, longest_words = [], []
    for column, *column_cells in zip(columns, *cells, strict=True):
        lines = [column, *itertools.chain.from_iterable(column_cells)]
        words = re.split(r'\s+|(?<=_)', ' '.join(lines[1:]))
        widths.append(max(map(len, lines)))
        longest_words.append(max(map(len, [column, *words])))
    # A border and two spaces for each column.
    borders = 3 * len(columns) + 1
    terminal = shutil.get_terminal_size((WIDTH, 0)).columns
    for _character in range(sum(widths) + borders - terminal):
        widest = max(range(len(columns)), key=lambda number: (
            widths[number] > longest_words[number], widths[number]))
        widths[widest] = max(widths[widest] - 1, len(columns[widest]))
    colours = (COLOURS if sys.stdout.isatty() and not os.environ.get(
        'NO_COLOR') else {})
    return [[_cell(lines, width, colours)
             for lines, width in zip(row, widths, strict=True)]
            for row in cells]


def _cell(lines: abc.Iterable[str], width: int,
          colours: abc.Mapping[str, str]) -> str:
    parts: list[str] = []
    for line in lines:
        colour = colours.get(line, '%s')
        parts += [colour % part for part in _wrap(line, width)]
    return '\n'.join(parts)


def _lines(cell: Cell) -> list[str]:
    lines = filter(None, cell) if isinstance(cell, tuple) else (cell,)
    return [printable.line(str(line)) for line in lines]


def _wrap(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    wrapper = textwrap.TextWrapper(width, break_on_hyphens=False)
    if any(len(word) > width for word in line.split()):
        # Divide names as well, after an underscore.
        wrapper.wordsep_simple_re = re.compile(r'(\s+|(?<=_))')
    return wrapper.wrap(line)
