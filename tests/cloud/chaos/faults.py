# SPDX-License-Identifier: Apache-2.0
"""Random faults of a cloud, and how long they last."""

from collections import abc
import contextlib
import dataclasses
import functools
import random
import signal
import threading
import time

import psutil

from tests.cloud.chaos import wiring
from tests.cloud import cloud
from tests.cloud import processes

AT_ONCE = 2
# Seconds between two faults, and the duration of each: sometimes longer than
# [aggregate_mirror] inline_timeout.
BETWEEN = (0.5, 4.0)
LASTS = (0.5, 8.0)
STARTS = 5

NOVA_APIS = ('nova-api-1', 'nova-api-2')
APIS = (*NOVA_APIS, 'placement', 'keystone')
DIED = 'died'

Choice = tuple[str, str]
"""A kind of fault, and the process that it affects."""


@dataclasses.dataclass
class Window:
    """The period of a fault, in monotonic seconds.

    It starts before the fault begins and ends when the fault is over.

    :param found: when the death of a process was noticed
    """

    kind: str
    target: str
    began: float
    ended: float | None = None
    found: float = 0.0

    def overlaps(self, began: float, ended: float) -> bool:
        """Check whether the fault overlaps a period."""
        return self.began <= ended and (
            self.ended is None or self.ended >= began)


class Faults:
    """A source of faults until stopped; each is undone after its time.

    :param kinds: those of ``KINDS`` to choose from
    """

    def __init__(self, running: cloud.Cloud, kinds: abc.Collection[str],
                 seed: str) -> None:
        self.windows: list[Window] = []
        self._cloud = running
        self._seed = seed
        self.known = {each.name: each for each in running.state.processes}
        # A cloud started without agents does not get any.
        self._absent = {name for name, each in self.known.items()
                        if not each.alive()}
        there = set(self.known) - self._absent
        self._choices = [
            (kind, target) for kind, (_act, targets) in KINDS.items()
            for target in targets if kind in kinds and target in there]
        self._deck: list[Choice] = []
        self._busy: set[str] = set()
        self._mutex = threading.Lock()
        self._seen = dict.fromkeys(self.known, time.monotonic())

    def kinds(self) -> frozenset[str]:
        """Return the kinds whose processes exist in this cloud."""
        return frozenset(kind for kind, _target in self._choices)

    def current(self) -> list[str]:
        """Describe the current faults."""
        return ['%s %s' % (each.kind, each.target) for each in self.windows
                if each.ended is None]

    def tasks(self, name: str, stop: threading.Event
              ) -> list[abc.Callable[[], None]]:
        """Return tasks that make faults until the event, a thread for each."""
        return [functools.partial(self._run, random.Random(
            '%s/%s/%s' % (self._seed, name, number)), stop)
            for number in range(AT_ONCE if self._choices else 0)]

    def supervise(self) -> None:
        """Restart processes that died without a fault, as an init system does.

        A service gives up if its database is unavailable when it starts.
        """
        for name, process in sorted(self.known.items()):
            looked = time.monotonic()
            if name in self._absent or process.alive():
                self._seen[name] = looked
                continue
            with contextlib.ExitStack() as stack:
                if stack.enter_context(self._held(name)):
                    window = stack.enter_context(self._window(DIED, name))
                    window.began = self._seen[name]
                    window.found = time.monotonic()
                    self.bring_back(process)
            self._seen[name] = time.monotonic()

    def bring_back(self, process: processes.Process) -> None:
        """Start a process; retry, because other processes may be unavailable.

        :raises CloudError: when no attempt succeeds
        """
        for attempt in range(STARTS):
            try:
                process.kill()
                with self._mutex:
                    self._cloud.state.start(process)
                process.wait_ready()
                return
            except processes.CloudError:
                if attempt == STARTS - 1:
                    raise

    def kill(self, process: processes.Process, seconds: float,
             chance: random.Random) -> None:
        """Kill a process with its children; start it after a while."""
        process.kill()
        time.sleep(seconds)
        self.bring_back(process)

    def pause(self, process: processes.Process, seconds: float,
              chance: random.Random) -> None:
        """Suspend a process for a while."""
        process.signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.signal(signal.SIGCONT)

    def kill_one(self, process: processes.Process, seconds: float,
                 chance: random.Random) -> None:
        """Kill a uwsgi worker; uwsgi starts a new worker."""
        with contextlib.suppress(psutil.NoSuchProcess):
            found = [each for master in psutil.Process(process.pid).children()
                     for each in master.children()]
            # There is no worker while uwsgi itself starts or is dead.
            for each in chance.sample(sorted(
                    found, key=lambda each: each.pid), min(1, len(found))):
                each.kill()
        if process.alive():
            # uwsgi itself exits if its application fails to load.
            with contextlib.suppress(processes.CloudError):
                process.wait_ready()

    def _run(self, chance: random.Random, stop: threading.Event) -> None:
        while not stop.wait(chance.uniform(*BETWEEN)):
            kind, target = self._draw(chance)
            seconds = chance.uniform(*LASTS)
            with contextlib.ExitStack() as stack:
                if stack.enter_context(self._held(target)):
                    stack.enter_context(self._window(kind, target))
                    KINDS[kind][0](self, self.known[target], seconds, chance)
                else:
                    # Try it again after the next choice.
                    self._deck.insert(-1, (kind, target))

    def _draw(self, chance: random.Random) -> Choice:
        with self._mutex:
            if not self._deck:
                self._deck = shuffled(self._choices, chance)
            return self._deck.pop()

    @contextlib.contextmanager
    def _held(self, target: str) -> abc.Iterator[bool]:
        """Reserve a process; yield False if another fault has reserved it."""
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
    def _window(self, kind: str, target: str) -> abc.Iterator[Window]:
        window = Window(kind, target, time.monotonic())
        self.windows.append(window)
        try:
            yield window
        finally:
            window.ended = time.monotonic()


def shuffled(choices: abc.Sequence[Choice], chance: random.Random
             ) -> list[Choice]:
    """Shuffle the choices; the last choices cover every kind.

    Choices are taken from the end: a short run sees every kind of fault, a
    longer run every choice.
    """
    order = chance.sample(choices, len(choices))
    firsts = {kind: (kind, target) for kind, target in order}
    return sorted(order, key=lambda choice: choice in firsts.values())


Act = abc.Callable[[Faults, processes.Process, float, random.Random], None]
KINDS: dict[str, tuple[Act, abc.Sequence[str]]] = {
    'worker': (Faults.kill_one, APIS),
    'kill': (Faults.kill, APIS + cloud.AGENTS),
    'pause': (Faults.pause, ('placement', *cloud.AGENTS)),
    'refuse': (Faults.kill, wiring.relays()),
    'swallow': (Faults.pause, wiring.relays()),
    'mariadb': (Faults.kill, ('mariadb',)),
    'rabbitmq': (Faults.kill, ('rabbitmq',)),
}
"""The action and the target processes of each kind of fault."""
