# SPDX-License-Identifier: Apache-2.0
"""Table of results: as text or reStructuredText."""

from collections.abc import Sequence
import dataclasses


@dataclasses.dataclass(frozen=True)
class Table:
    """Cells with a title; all rows have the same length."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Render it for a terminal."""
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return '\n'.join([self.title, *(
            '  '.join(map(str.ljust, line, widths)).rstrip()
            for line in lines)])

    def rst(self) -> str:
        """Render it as a list-table."""
        lines = ['.. list-table:: ' + self.title, '   :header-rows: 1', '']
        for row in (self.header, *self.rows):
            for number, cell in enumerate(row):
                bullet = '     -' if number else '   * -'
                lines.append((bullet + ' ' + cell).rstrip())
        return '\n'.join(lines) + '\n'
