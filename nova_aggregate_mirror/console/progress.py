# SPDX-License-Identifier: Apache-2.0
"""Progress output of a full sync."""

from collections import abc
import contextlib
import itertools
import sys
import time
from typing import TextIO

from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import context

INTERVAL = 3.0
"""Minimum seconds between two progress lines of the same step."""

REFRESH = 0.1
"""Minimum seconds between two counts on a terminal."""

ERASE = '\r\x1b[K'
"""Return to the start of the terminal's line, and erase it."""


class Lines(context.Progress):
    """A line per step, and the number of completed providers in long steps.

    :param in_place: rewrite the number on a terminal, instead of a line for
        each; the next step or the end of the output erases it
    """

    def __init__(self, out: TextIO | None = None,
                 now: abc.Callable[[], float] = time.monotonic,
                 interval: float = INTERVAL, in_place: bool = False) -> None:
        self._out = out or sys.stderr
        self._now = now
        self._interval = interval
        self._in_place = in_place
        self._start, self._end = (ERASE, '') if in_place else ('', '\n')
        self._printed_at = now()
        self._count, self._numbers = 0, itertools.count(1)

    def step(self, text: str, providers: int = 0) -> None:
        self._print(text, '\n')
        self._count, self._numbers = providers, itertools.count(1)
        if providers and self._in_place:
            self._print(self._done(0), self._end)

    def advance(self) -> None:
        # Unlike +=, next() of a count is atomic among threads.
        number = next(self._numbers)
        if self._count:
            self.tell(self._done(number))

    def close(self) -> None:
        """Erase a count that is rewritten in place."""
        print(self._start, end='', file=self._out, flush=True)

    def tell(self, text: str) -> None:
        if self._now() - self._printed_at >= self._interval:
            self._print(text, self._end)

    def _done(self, number: int) -> str:
        return '%d of %s done' % (
            number, plurals.count(self._count, 'provider'))

    def _print(self, text: str, end: str) -> None:
        self._printed_at = self._now()
        print(self._start + text, end=end, file=self._out, flush=True)


@contextlib.contextmanager
def shown(quiet: bool = False, lines: bool = False
          ) -> abc.Iterator[context.Progress]:
    """Choose the progress output that suits standard error."""
    if quiet:
        yield context.Progress()
    elif lines or not sys.stderr.isatty():
        yield Lines()
    else:
        # A command escapes the controls in its other output.
        out = getattr(sys.stderr, 'unfiltered', sys.stderr)
        with contextlib.closing(
                Lines(out, interval=REFRESH, in_place=True)) as display:
            yield display
