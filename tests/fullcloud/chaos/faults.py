# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a cloud at random, and for how long."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import random
import signal
import threading
import time

import psutil

from tests.cloud import processes
from tests.fullcloud.chaos import wiring
from tests.fullcloud import cloud
from tests.fullcloud import daemons

AT_ONCE = 2
# Seconds between two faults, and how long one lasts: longer than
# [aggregate_mirror] inline_timeout at times.
BETWEEN = (0.5, 4.0)
LASTS = (0.5, 8.0)
STARTS = 5

NOVA_APIS = ('nova-api-1', 'nova-api-2')
APIS = (*NOVA_APIS, 'placement', 'keystone')
AGENTS = ('agent-1', 'agent-2')
DIED = 'died'

Choice = tuple[str, str]
"""A kind of fault, and the process that it happens to."""


@dataclasses.dataclass
class Window:
    """A fault, from before it began until it was over; monotonic seconds.

    :param found: when a process that died was seen to have died
    """

    kind: str
    target: str
    began: float
    ended: float | None = None
    found: float = 0.0

    def overlaps(self, began: float, ended: float) -> bool:
        """Whether it was there at any time between those two."""
        return self.began <= ended and (
            self.ended is None or self.ended >= began)


class Faults:
    """Makes faults until told to stop; each ends by itself and is undone.

    :param kinds: those of ``KINDS`` to choose from
    """

    def __init__(self, running: cloud.Cloud, kinds: Collection[str],
                 seed: str) -> None:
        self.windows: list[Window] = []
        self._cloud = running
        self._seed = seed
        self._known = {each.name: each for each in running.state.daemons}
        # Who asked for a cloud without agents gets none.
        self._absent = {name for name, each in self._known.items()
                        if not each.alive()}
        there = set(self._known) - self._absent
        self._choices = [
            (kind, target) for kind, (_act, targets) in KINDS.items()
            for target in targets if kind in kinds and target in there]
        self._deck: list[Choice] = []
        self._busy: set[str] = set()
        self._mutex = threading.Lock()
        self._seen = dict.fromkeys(self._known, time.monotonic())

    def kinds(self) -> frozenset[str]:
        """Those that can come: what they happen to is in this cloud."""
        return frozenset(kind for kind, _target in self._choices)

    def current(self) -> list[str]:
        """What is wrong now, for people."""
        return [f'{each.kind} {each.target}' for each in self.windows
                if each.ended is None]

    def tasks(self, name: str, stop: threading.Event
              ) -> list[Callable[[], None]]:
        """What makes faults until the event, each in a thread of its own."""
        return [functools.partial(self._run, random.Random(
            f'{self._seed}/{name}/{number}'), stop)
            for number in range(AT_ONCE if self._choices else 0)]

    def supervise(self) -> None:
        """Start what has died without us, as an init system does.

        A service that is started while its database is away gives up.
        """
        for name, daemon in sorted(self._known.items()):
            looked = time.monotonic()
            if name in self._absent or daemon.alive():
                self._seen[name] = looked
                continue
            with contextlib.ExitStack() as stack:
                if stack.enter_context(self._held(name)):
                    window = stack.enter_context(self._window(DIED, name))
                    window.began = self._seen[name]
                    window.found = time.monotonic()
                    self.bring_back(daemon)
            self._seen[name] = time.monotonic()

    def bring_back(self, daemon: daemons.Daemon) -> None:
        """Start a process; while others are away it may take several times.

        :raises CloudError: when it does not start at all
        """
        for attempt in range(STARTS):
            try:
                daemon.kill()
                with self._mutex:
                    self._cloud.state.start(daemon)
                daemon.wait_ready()
                return
            except processes.CloudError:
                if attempt == STARTS - 1:
                    raise

    def kill(self, daemon: daemons.Daemon, seconds: float,
             chance: random.Random) -> None:
        """Kill a process and all that it started; start it after a while."""
        daemon.kill()
        time.sleep(seconds)
        self.bring_back(daemon)

    def pause(self, daemon: daemons.Daemon, seconds: float,
              chance: random.Random) -> None:
        """Let a process hang for a while."""
        daemon.signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            daemon.signal(signal.SIGCONT)

    def kill_one(self, daemon: daemons.Daemon, seconds: float,
                 chance: random.Random) -> None:
        """Kill one of uwsgi's processes, which uwsgi starts again."""
        with contextlib.suppress(psutil.NoSuchProcess):
            found = [each for master in psutil.Process(daemon.pid).children()
                     for each in master.children()]
            # There is none while uwsgi itself is starting or gone.
            for each in chance.sample(sorted(
                    found, key=lambda each: each.pid), min(1, len(found))):
                each.kill()
        if daemon.alive():
            # With its application gone uwsgi itself gives up.
            with contextlib.suppress(processes.CloudError):
                daemon.wait_ready()

    def _run(self, chance: random.Random, stop: threading.Event) -> None:
        while not stop.wait(chance.uniform(*BETWEEN)):
            kind, target = self._draw(chance)
            seconds = chance.uniform(*LASTS)
            with contextlib.ExitStack() as stack:
                if stack.enter_context(self._held(target)):
                    stack.enter_context(self._window(kind, target))
                    KINDS[kind][0](
                        self, self._known[target], seconds, chance)
                else:
                    # The next but one.
                    self._deck.insert(-1, (kind, target))

    def _draw(self, chance: random.Random) -> Choice:
        with self._mutex:
            if not self._deck:
                self._deck = shuffled(self._choices, chance)
            return self._deck.pop()

    @contextlib.contextmanager
    def _held(self, target: str) -> Iterator[bool]:
        """Have a process for oneself, or nothing if somebody else has it."""
        with self._mutex:
            mine = target not in self._busy
            self._busy.add(target)
        try:
            yield mine
        finally:
            if mine:
                with self._mutex:
                    self._busy.discard(target)

    @contextlib.contextmanager
    def _window(self, kind: str, target: str) -> Iterator[Window]:
        window = Window(kind, target, time.monotonic())
        self.windows.append(window)
        try:
            yield window
        finally:
            window.ended = time.monotonic()


def shuffled(choices: Sequence[Choice], chance: random.Random
             ) -> list[Choice]:
    """In which order to take them, from the end: one of each kind first.

    So that a short time sees every kind, and a longer one all of them.
    """
    order = chance.sample(choices, len(choices))
    firsts = {kind: (kind, target) for kind, target in order}
    return sorted(order, key=lambda choice: choice in firsts.values())


Act = Callable[[Faults, daemons.Daemon, float, random.Random], None]
KINDS: dict[str, tuple[Act, Sequence[str]]] = {
    'worker': (Faults.kill_one, APIS),
    'kill': (Faults.kill, APIS + AGENTS),
    'pause': (Faults.pause, ('placement', *AGENTS)),
    'refuse': (Faults.kill, wiring.relays()),
    'swallow': (Faults.pause, wiring.relays()),
    'mariadb': (Faults.kill, ('mariadb',)),
    'rabbitmq': (Faults.kill, ('rabbitmq',)),
}
"""What each kind of fault does, and to which processes."""
