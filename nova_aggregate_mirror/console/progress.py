# SPDX-License-Identifier: Apache-2.0
"""Progress output of a command."""

from collections import abc
import contextlib
import itertools
import sys
import time

from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import context

INTERVAL = 3.0
"""Minimum seconds between two progress lines of the same step."""


class Lines(context.Progress):
    """A line per step, and the number of completed providers in long steps."""

    def __init__(self, now: abc.Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._printed_at = now()
        self._count, self._numbers = 0, itertools.count(1)

    def step(self, text: str, providers: int = 0) -> None:
        self._print(text)
        self._count, self._numbers = providers, itertools.count(1)

    def advance(self) -> None:
        # Unlike +=, next() of a count is atomic among threads.
        number = next(self._numbers)
        if self._count:
            self.tell('%d of %s done' % (
                number, plurals.count(self._count, 'provider')))

    def tell(self, text: str) -> None:
        if self._now() - self._printed_at >= INTERVAL:
            self._print(text)

    def _print(self, text: str) -> None:
        self._printed_at = self._now()
        # Nothing that is done depends on a reader.
        with contextlib.suppress(BrokenPipeError):
            print(text, file=sys.stderr, flush=True)


def shown(quiet: bool = False) -> context.Progress:
    """Return the progress output of a command."""
    return context.Progress() if quiet else Lines()
