# SPDX-License-Identifier: Apache-2.0
"""Threads and queues of ``source.cell_threads``, in the simulation's time.

A thread is a greenlet that waits for its database. Waiting for an answer lets
the time pass until there is one.
"""

from collections import abc
import heapq
import itertools
import queue
import types
from typing import Any

import fixtures
import greenlet

from tests.simulation import world as simulated

MODULE = 'nova_aggregate_mirror.source.cell_threads.'


class _Thread(greenlet.greenlet):
    """A thread of a simulated process."""


class Clock(fixtures.Fixture):
    """The time of the current schedule, for ``source.cell_threads``."""

    def __init__(self) -> None:
        self.world: simulated.World | None = None
        self._waiting: list[tuple[float, int, _Thread]] = []
        self._number = itertools.count()

    def _setUp(self) -> None:
        clock = self

        class Thread:
            def __init__(self, target: abc.Callable[[], None], **_names: Any
                         ) -> None:
                self._greenlet = _Thread(target)

            def start(self) -> None:
                self._greenlet.switch()

        class Queue:
            def __init__(self) -> None:
                self._values: list[Any] = []

            def put(self, value: Any) -> None:
                self._values.append(value)

            def get(self, timeout: float) -> Any:
                end = clock.world.now + timeout
                while not self._values:
                    if not clock.wake(end):
                        raise queue.Empty
                return self._values.pop(0)

        for name, substitute in (
                ('time', types.SimpleNamespace(
                    monotonic=lambda: clock.world.now)),
                ('threading', types.SimpleNamespace(Thread=Thread)),
                ('queue', types.SimpleNamespace(
                    SimpleQueue=Queue, Empty=queue.Empty))):
            self.useFixture(fixtures.MonkeyPatch(MODULE + name, substitute))

    def begin(self, world: simulated.World) -> None:
        """Begin a schedule; threads of earlier ones never continue."""
        self.world = world
        self._waiting.clear()

    def wait(self, seconds: float) -> None:
        """Let the current thread wait, or a process that has no threads."""
        thread = greenlet.getcurrent()
        if not isinstance(thread, _Thread):
            self.world.now += seconds
            return
        heapq.heappush(self._waiting, (
            self.world.now + seconds, next(self._number), thread))
        thread.parent.switch()

    def catch_up(self) -> None:
        """Let threads continue whose time passed while none was awaited."""
        while self._waiting and self._waiting[0][0] <= self.world.now:
            self.wake(self.world.now)

    def wake(self, end: float) -> bool:
        """Let time pass until a thread continues; return whether one did.

        :param end: when to stop waiting for that
        """
        if not self._waiting or self._waiting[0][0] > end:
            self.world.now = max(self.world.now, end)
            return False
        when, _number, thread = heapq.heappop(self._waiting)
        self.world.now = max(self.world.now, when)
        thread.parent = greenlet.getcurrent()
        thread.switch()
        return True
