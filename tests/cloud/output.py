# SPDX-License-Identifier: Apache-2.0
"""The output of a command: progress, and tables."""

from collections import abc
import sys
import time

from tests.cloud import environment

# Seconds between two passing lines if the output is not a terminal.
INTERVAL = 10
Tell = abc.Callable[..., None]
"""Prints a line of progress; see ``teller``."""


def teller() -> Tell:
    """Return a printer of texts with seconds; passing ones are replaced."""
    printed = -float(INTERVAL)
    terminal = sys.stdout.isatty()

    def tell(text: str, passing: bool = False) -> None:
        nonlocal printed
        now = time.monotonic() - environment.BEGAN
        line = '%5.0f s  %s' % (now, text)
        if terminal:
            print('\r\033[K%s' % (line[:100] if passing else line),
                  end='' if passing else '\n', flush=True)
        elif not passing or now - printed >= INTERVAL:
            printed = now
            print(line, flush=True)

    return tell


def columns(rows: abc.Iterable[abc.Iterable[object]]) -> str:
    """Render rows of cells as left-aligned columns."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ['  '.join(map(str.ljust, row, widths)) for row in cells]
    return '\n'.join(map(str.rstrip, lines))
