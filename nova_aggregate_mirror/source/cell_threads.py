# SPDX-License-Identifier: Apache-2.0
"""Threads that read cells, each with a limit for its wait."""

from collections import abc
import contextlib
import math
import queue
import threading
import time
from typing import Any

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.source import cells

AT_ONCE = 1.0
"""Seconds to wait for a silent cell."""
LATEST = 2.0
"""Seconds after which a cell is late while hosts of other cells wait as well:
they may have to wait for two reads."""
SOON = 5.0
"""Seconds after which a query of some hosts ends then."""


class Threads:
    """Reads cells in parallel, with at most one query of a kind per cell.

    A cell that did not answer in time is silent until it has answered again:
    it is queried, but waited for only one second, and that not during its
    back-off. An error after a wait is no answer: the driver gave up.

    :param timeout: seconds to wait for the nodes of a cell
    :param wait_for_some: seconds at most, for the nodes of some hosts
    """

    def __init__(self, timeout: float, wait_for_some: float = math.inf
                 ) -> None:
        self._timeout = timeout
        self._wait_for_some = min(timeout, wait_for_some)
        self._running: set[tuple[str, bool]] = set()
        self._silent: dict[str, backoff.Backoff] = {}

    def read(self, reads: cells.Reads, full: bool) -> cells.Answers:
        """Read cells, by name; a failure is the answer of its cell.

        :param full: whether whole cells are read, and not the nodes of some
            hosts; the two do not wait for each other
        """
        answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        began, answered = time.monotonic(), dict[str, Any]()
        waits: dict[str, float] = {}
        for name, read in reads.items():
            if self._start(name, read, answers, full):
                waits[name] = self._time_limit(name, full)
        with contextlib.suppress(queue.Empty):
            while pending := waits.keys() - answered.keys():
                end = began + max(waits[name] for name in pending)
                name, answer = answers.get(
                    timeout=max(0.0, end - time.monotonic()))
                answered[name] = answer
                if isinstance(answer, exceptions.CellUnavailable) and (
                        time.monotonic() - began >= AT_ONCE):
                    self._back_off(name)
        for name in reads.keys() - answered.keys():
            waited = waits.get(name, 0.0)
            # What was not waited for shows nothing new.
            if waited:
                self._back_off(name)
            answered[name] = exceptions.CellUnavailable.of(
                causes.silent(waited) if waited
                else causes.not_again(causes.silent(0)), causes.cell(name))
        return answered

    def _back_off(self, name: str) -> None:
        self._silent.setdefault(name, backoff.Backoff()).extend(
            time.monotonic())

    def _time_limit(self, name: str, full: bool) -> float:
        """Return the seconds for which a cell is waited for; 0 for none."""
        silence = self._silent.get(name)
        if silence and not full and time.monotonic() < silence.until:
            return 0.0
        if silence:
            # Its last query still runs, or this one shows if it answers again.
            return AT_ONCE
        return self._timeout if full else self._wait_for_some

    def _start(self, name: str, read: abc.Callable[[], Any],
               answers: 'queue.SimpleQueue[tuple[str, Any]]',
               full: bool) -> bool:
        """Start a query; return False if one of its kind still runs."""
        if (name, full) in self._running:
            return False

        def work() -> None:
            began = time.monotonic()
            # For an error that the read does not return.
            answer: Any = exceptions.CellUnavailable.of(
                causes.UNASKED.with_detail(
                    'an unexpected error, whose traceback is on the standard '
                    'error'), causes.cell(name))
            try:
                answer = read()
            finally:
                took = time.monotonic() - began
                if took < self._timeout and not isinstance(
                        answer, exceptions.CellUnavailable):
                    self._silent.pop(name, None)
                # Before the answer: the next query may follow at once.
                self._running.discard((name, full))
                answers.put((name, answer))

        # A daemon thread: a thread blocked on a socket cannot be stopped and
        # must not keep the process from exiting.
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._running.add((name, full))
        try:
            thread.start()
        except RuntimeError:
            self._running.discard((name, full))
            raise
        return True
