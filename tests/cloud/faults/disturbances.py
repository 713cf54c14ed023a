# SPDX-License-Identifier: Apache-2.0
"""Random faults of a full cloud, and how long they last."""

from collections import abc
import contextlib
import dataclasses
import functools
import random
import signal
import threading
import time

import psutil

from tests.cloud import cloud
from tests.cloud.faults import table
from tests.cloud import processes

AT_ONCE = 2
# Seconds between two faults, and the duration of each: sometimes longer than
# [aggregate_mirror] inline_timeout.
BETWEEN = (0.5, 4.0)
LASTS = (0.5, 8.0)
STARTS = 5
DIED = 'died'


@dataclasses.dataclass
class Window:
    """The period of a fault, in monotonic seconds.

    It starts before the fault begins and ends when the fault is over.

    :param noticed: when the death of a process was noticed
    """

    kind: str
    target: str
    began: float
    ended: float | None = None
    noticed: float = 0.0

    def overlaps(self, began: float, ended: float) -> bool:
        """Check whether the fault overlaps a period."""
        return self.began <= ended and (
            self.ended is None or self.ended >= began)

    def __str__(self) -> str:
        return '%s %s' % (self.target, self.kind)


class Disturbances:
    """A source of faults until stopped; each is undone after its time."""

    def __init__(self, running: cloud.Cloud, rows: abc.Iterable[table.Row],
                 seed: str) -> None:
        self.windows: list[Window] = []
        self._cloud = running
        self._seed = seed
        # A cloud started without agents does not get any.
        self._processes = {process.name: process for process
                           in running.state.processes if process.alive()}
        self._rows = [row for row in rows if row.party in self._processes]
        self.kinds = {row.kind for row in self._rows}
        self._deck: list[table.Row] = []
        self._busy: set[str] = set()
        self._mutex = threading.Lock()
        self._seen = dict.fromkeys(self._processes, time.monotonic())

    def current(self) -> list[str]:
        """Describe the current faults."""
        return [str(window) for window in self.windows if window.ended is None]

    def tasks(self, name: str, stop: threading.Event
              ) -> list[abc.Callable[[], None]]:
        """Return tasks that make faults until the event, a thread for each."""
        chances = [random.Random('%s/%s/%s' % (self._seed, name, number))
                   for number in range(AT_ONCE if self._rows else 0)]
        return [functools.partial(self._run, chance, stop)
                for chance in chances]

    def supervise(self) -> None:
        """Restart what died without a fault, as an init system does."""
        for name, process in sorted(self._processes.items()):
            now = time.monotonic()
            if process.alive():
                self._seen[name] = now
                continue
            with self._window(DIED, name) as window:
                if window:
                    window.began = self._seen[name]
                    window.noticed = time.monotonic()
                    self.revive(process)
            self._seen[name] = time.monotonic()

    def revive(self, process: processes.Process) -> None:
        """Start a process; retry, as other processes may be unavailable."""
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

    def kill(self, process: processes.Process, seconds: float) -> None:
        """Kill a process with its children; start it after a while."""
        process.kill()
        time.sleep(seconds)
        self.revive(process)

    def pause(self, process: processes.Process, seconds: float) -> None:
        """Suspend a process for a while."""
        process.signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.signal(signal.SIGCONT)

    def kill_worker(self, process: processes.Process, _seconds: float) -> None:
        """Kill a uwsgi worker; uwsgi starts a new worker."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for master in psutil.Process(process.pid).children():
                # There is no worker while uwsgi itself starts or is dead.
                for worker in master.children()[:1]:
                    worker.kill()
        if process.alive():
            # uwsgi itself exits if its application fails to load.
            with contextlib.suppress(processes.CloudError):
                process.wait_ready()

    def _run(self, chance: random.Random, stop: threading.Event) -> None:
        while not stop.wait(chance.uniform(*BETWEEN)):
            with self._mutex:
                self._deck = self._deck or shuffled(self._rows, chance)
                row = self._deck.pop()
            seconds = chance.uniform(*LASTS)
            with self._window(row.kind, row.party) as window:
                if window:
                    KINDS[row.kind](self, self._processes[row.party], seconds)
                else:
                    # Try it again after the next choice.
                    self._deck.insert(-1, row)

    @contextlib.contextmanager
    def _window(self, kind: str, target: str) -> abc.Iterator[Window | None]:
        """Reserve a process; yield None if another fault has reserved it."""
        with self._mutex:
            is_busy = target in self._busy
            self._busy.add(target)
        if is_busy:
            yield None
            return
        window = Window(kind, target, time.monotonic())
        self.windows.append(window)
        try:
            yield window
        finally:
            window.ended = time.monotonic()
            with self._mutex:
                self._busy.discard(target)


def shuffled(rows: abc.Sequence[table.Row], chance: random.Random
             ) -> list[table.Row]:
    """Shuffle the rows; the last rows cover every kind.

    Rows are taken from the end: a short run sees every kind of fault, a longer
    run every row.
    """
    order = chance.sample(rows, len(rows))
    firsts = {row.kind: row for row in order}
    return sorted(order, key=lambda row: row in firsts.values())


# A relay that is killed refuses connections, a suspended one is silent.
KINDS: dict[str, abc.Callable[
    [Disturbances, processes.Process, float], None]] = {
        'worker-killed': Disturbances.kill_worker, 'killed': Disturbances.kill,
        'paused': Disturbances.pause, 'refuses': Disturbances.kill,
        'silent': Disturbances.pause, 'database-killed': Disturbances.kill,
        'queue-killed': Disturbances.kill}
