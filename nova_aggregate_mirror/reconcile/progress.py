# SPDX-License-Identifier: Apache-2.0
"""Progress output of a full sync."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import itertools
import shutil
import sys
import time
from typing import Any
from typing import Protocol
from typing import TextIO

from nova_aggregate_mirror.reconcile import wording

INTERVAL = 3.0
"""Minimum seconds between two progress lines of the same step."""


class Progress(Protocol):
    """Receiver of steps and of completed providers."""

    def step(self, text: str) -> None:
        """Start a new step."""

    def expect(self, count: int) -> None:
        """Set the number of providers to converge."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""


class Silent:
    """No output."""

    def step(self, text: str) -> None:
        pass

    def expect(self, count: int) -> None:
        pass

    def advance(self) -> None:
        pass


class Lines:
    """Lines for a file, a pipe or a log: one per step, more in long steps."""

    def __init__(self, out: TextIO | None = None,
                 now: Callable[[], float] = time.monotonic) -> None:
        self._out = out or sys.stderr
        self._now = now
        self._said = now()
        self._count, self._numbers = 0, itertools.count(1)

    def step(self, text: str) -> None:
        self._say(text)

    def expect(self, count: int) -> None:
        self._count, self._numbers = count, itertools.count(1)

    def advance(self) -> None:
        # Unlike +=, next() of a count is atomic among threads.
        done = next(self._numbers)
        if self._count and self._now() - self._said >= INTERVAL:
            self._say('%d of %s done'
                      % (done, wording.count(self._count, 'provider')))

    def _say(self, text: str) -> None:
        self._said = self._now()
        print(text, file=self._out, flush=True)


class Bar:
    """A line per step and a bar of the providers, for a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._bar: Any = None

    def step(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def expect(self, count: int) -> None:
        self.close()
        if count:
            # Imported only when needed: it takes a noticeable time.
            import tqdm
            # A serial console reports a size of zero; this has a fallback.
            size = shutil.get_terminal_size()
            self._bar = tqdm.tqdm(
                total=count, file=self._out, leave=False, unit=' providers',
                ncols=size.columns, nrows=size.lines)

    def advance(self) -> None:
        if self._bar is not None:
            with self._bar.get_lock():
                self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


@contextlib.contextmanager
def shown(quiet: bool = False, lines: bool = False) -> Iterator[Progress]:
    """Choose the progress output that suits standard error.

    :param quiet: no output
    :param lines: print lines on a terminal, too
    """
    if quiet:
        yield Silent()
    elif lines or not sys.stderr.isatty():
        yield Lines()
    else:
        with contextlib.closing(Bar()) as bar:
            yield bar
