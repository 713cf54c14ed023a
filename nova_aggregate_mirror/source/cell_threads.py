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
"""Seconds that a query of some hosts itself may take in that case."""


class Threads:
    """Reads cells in parallel, with at most one query of a kind per cell.

    A cell that did not answer in time is silent until it has answered again:
    it is queried, but waited for only one second, and during its back-off not
    at all. An error after a wait is no answer: the driver gave up.

    :param timeout: seconds to wait for the nodes of a cell
    :param wait_for_some: seconds at most, for the nodes of some hosts
    """

    def __init__(self, timeout: float, wait_for_some: float = math.inf
                 ) -> None:
        self._timeout = timeout
        self._wait_for_some = min(timeout, wait_for_some)
        self._running: set[tuple[str, bool]] = set()
        self._silent: dict[str, backoff.Backoff] = {}

    def read(self, reads: cells.Reads, patient: bool) -> cells.Answers:
        """Read cells, by name; a failure is the answer of its cell.

        :param patient: whether whole cells are read, and not the nodes of some
            hosts; queries of these two kinds do not wait for each other
        """
        ended: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        answers: dict[str, Any] = {}
        began = time.monotonic()
        waits = {name: self._start(name, read, ended, patient)
                 for name, read in reads.items()}
        with contextlib.suppress(queue.Empty):
            while pending := waits.keys() - answers.keys():
                end = began + max(waits[name] for name in pending)
                name, answer = ended.get(
                    timeout=max(0.0, end - time.monotonic()))
                answers[name] = answer
                waited = time.monotonic() - began
                if waited >= AT_ONCE and isinstance(
                        answer, exceptions.CellUnavailable):
                    self._back_off(name)
        for name in reads.keys() - answers.keys():
            cause = causes.not_again(causes.silent(0))
            # A cell that was not waited for has shown nothing new.
            if waits[name]:
                self._back_off(name)
                cause = causes.silent(waits[name])
            answers[name] = exceptions.CellUnavailable.of(
                cause, causes.cell(name))
        return answers

    def _back_off(self, name: str) -> None:
        self._silent.setdefault(name, backoff.Backoff()).extend(
            time.monotonic())

    def _time_limit(self, name: str, patient: bool) -> float:
        """Return the seconds for which a cell is waited for; 0 for none."""
        silence = self._silent.get(name)
        if silence and not patient and time.monotonic() < silence.until:
            return 0.0
        if silence:
            # Long enough to see whether the cell answers again.
            return AT_ONCE
        return self._timeout if patient else self._wait_for_some

    def _start(self, name: str, read: abc.Callable[[], Any],
               ended: 'queue.SimpleQueue[tuple[str, Any]]',
               patient: bool) -> float:
        """Start a query; return how long to wait for it, in seconds.

        It is not started, nor waited for, if one of its kind still runs.
        """
        query = name, patient
        if query in self._running:
            return 0.0

        def work() -> None:
            began = time.monotonic()
            # What remains if ``read`` raises, which is not expected.
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
                # First, because the next query may follow the answer at once.
                self._running.discard(query)
                ended.put((name, answer))

        # A daemon thread: a thread blocked on a socket cannot be stopped and
        # must not keep the process from exiting.
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._running.add(query)
        try:
            thread.start()
        except RuntimeError:
            self._running.discard(query)
            raise
        return self._time_limit(name, patient)
