# SPDX-License-Identifier: Apache-2.0
"""How far a full sync is, for a person who waits."""

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

INTERVAL = 3.0
"""Seconds between two lines of the same step."""


class Progress(Protocol):
    """Is told each step, and each provider that is done."""

    def step(self, text: str) -> None:
        """A new step begins."""

    def expect(self, count: int) -> None:
        """So many providers are to be written."""

    def advance(self) -> None:
        """One of them is done; called from any thread."""


class Silent:
    """For nobody."""

    def step(self, text: str) -> None:
        pass

    def expect(self, count: int) -> None:
        pass

    def advance(self) -> None:
        pass


class Lines:
    """For a file, a pipe or a log: a line for each step, and now and then."""

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
        # Unlike an addition, this is one step for all threads.
        done = next(self._numbers)
        if self._count and self._now() - self._said >= INTERVAL:
            self._say('%d of %d providers are done' % (done, self._count))

    def _say(self, text: str) -> None:
        self._said = self._now()
        print(text, file=self._out, flush=True)


class Bar:
    """For a terminal: a line for each step, and a bar for the providers."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._bar: Any = None

    def step(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def expect(self, count: int) -> None:
        self.close()
        if count:
            # Whoever has nothing to wait for does not wait for its import.
            import tqdm
            # A serial console says that it has no columns and no lines.
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
    """What is fit for whoever reads standard error.

    :param quiet: nobody does
    :param lines: lines also on a terminal
    """
    if quiet:
        yield Silent()
    elif lines or not sys.stderr.isatty():
        yield Lines()
    else:
        with contextlib.closing(Bar()) as bar:
            yield bar
