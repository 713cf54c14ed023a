# SPDX-License-Identifier: Apache-2.0
"""A long silence of one party, under load: what nova-api and the agent use."""

from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
import contextlib
import dataclasses
import itertools
import threading
import time

import psutil
import requests

from tests.cloud.outages import lane as lanes
from tests.cloud.outages import world as worlds
from tests.cloud import processes
from tests.cloud import services

PARTIES = {
    'keystone': ('keystone',), 'placement': ('placement',),
    'journal': ('journal-mysql',), 'cell': ('other-cell',)}
"""The wires that are silent, by the name of the party."""
CELLS = {**lanes.CELLS, 'third-cell': 'nova_third'}
RATE = 5.0
"""Calls per second."""
HOSTS = 5
"""Hosts in each cell."""
CALLERS = 16
PATIENCE = 120.0
# Seconds of calls before the silence, and between two samples.
BEFORE, EVERY = 30.0, 5.0
# Seconds within which placement has to equal nova after the silence.
HEAL = 120.0
# Parts of the silence that are compared. In the first part nova still loads
# what it needs, with and without this package.
EARLY, MIDDLE, LATE = (0.2, 0.3), (0.5, 0.6), (0.9, 1.0)
COUNTS = ('descriptors', 'threads', 'connections')
# What a process may use more in the last part: connections of calls that run
# during each sample, and memory that the allocator keeps.
MORE = services.THREADS
MORE_MIB = 5.0
# What the agent holds for each operation that stays in the journal.
ROW_MIB = 0.7 / 1024
# Unexpected answers to show.
SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Sample:
    """What a process uses at a moment.

    :param at: seconds since the silence began; negative before it
    """

    at: float
    mib: float
    descriptors: int
    threads: int
    connections: int


@dataclasses.dataclass
class Endured:
    """A silence of one party."""

    party: str
    seconds: float
    statuses: dict[int, int] = dataclasses.field(default_factory=dict)
    """Number of answers by HTTP status; 0 is no answer."""
    unexpected: list[str] = dataclasses.field(default_factory=list)
    """Answers except 200."""
    longest: float = 0.0
    """Seconds of the longest call."""
    samples: dict[str, list[Sample]] = dataclasses.field(default_factory=dict)
    """Process to its samples, in order."""
    healed: float = 0.0
    different: Sequence[str] = ()

    def worst(self, process: str, part: tuple[float, float]) -> Sample:
        """Return the highest figures of a process during a part.

        :param part: its beginning and end, as shares of the silence
        """
        begin, end = (share * self.seconds for share in part)
        found = [each for each in self.samples[process]
                 if begin <= each.at <= end]
        return Sample(found[-1].at, max(each.mib for each in found), *(
            max(getattr(each, name) for each in found) for name in COUNTS))

    def least(self, process: str, part: tuple[float, float], name: str
              ) -> int:
        """Return the lowest count of a process during a part.

        Calls that run when a sample is taken raise the highest count, a leak
        raises the lowest one as well.
        """
        begin, end = (share * self.seconds for share in part)
        return min(getattr(each, name) for each in self.samples[process]
                   if begin <= each.at <= end)

    def problems(self) -> list[str]:
        """List how the promise is broken, or what grows."""
        found = self.unexpected[:SHOWN]
        for process in self.samples:
            first = self.worst(process, EARLY)
            last = self.worst(process, LATE)
            for name in COUNTS:
                early, late = (self.least(process, part, name)
                               for part in (EARLY, LATE))
                if late > early + MORE:
                    found.append('%s: %s grew from %d to %d' % (
                        process, name, early, late))
            more = MORE_MIB
            if process == lanes.AGENT:
                more += RATE * (last.at - first.at) * ROW_MIB
            if last.mib > first.mib + more:
                found.append('%s: memory grew from %.0f to %.0f MiB' % (
                    process, first.mib, last.mib))
        return found + list(self.different)


class Endurance:
    """The calls on one lane during a silence.

    :param seconds: of the silence
    """

    def __init__(self, lane: lanes.Lane, party: str, seconds: float) -> None:
        self.result = Endured(party, seconds)
        self._lane = lane
        self._world = worlds.World(lane)
        self._mutex = threading.Lock()
        self._began = 0.0
        # Nova itself waits for the cell of a call's host.
        hosts = {'%s-%s-%d' % (lane.config.directory.name, cell, number): cell
                 for number in range(1, HOSTS + 1) for cell in lane.cells
                 if cell not in PARTIES[party]}
        for host, cell in hosts.items():
            self._world.create_host(host, cell)
        self._idle = list(hosts)
        self._next = dict.fromkeys(self._idle, 'add_host')
        """Host to the next action on it."""

    def run(self) -> None:
        """Call, silence the party, call, and let it answer again.

        :raises CloudError: when a process dies or does not start
        """
        self._lane.use('mysql')
        self._lane.start(lanes.OURS, lanes.AGENT)
        stop = threading.Event()
        with futures.ThreadPoolExecutor(CALLERS) as callers:
            self._began = time.monotonic() + BEFORE
            calling = threading.Thread(
                target=self._call_often, args=(callers, stop), daemon=True)
            calling.start()
            try:
                self._watch(0.0)
                with self._silence():
                    self._watch(self.result.seconds)
            finally:
                stop.set()
                calling.join()
        self._heal()
        self._sample()

    @contextlib.contextmanager
    def _silence(self) -> Iterator[None]:
        wires = [self._lane.wires[name]
                 for name in PARTIES[self.result.party]]
        for each in wires:
            each.hold()
        try:
            yield
        finally:
            for each in wires:
                each.forward()

    def _watch(self, until: float) -> None:
        """Sample the processes until a moment."""
        while True:
            self._sample()
            left = self._began + until - time.monotonic()
            if left <= 0:
                return
            # A short silence has samples in each part, too.
            time.sleep(min(EVERY, self.result.seconds / 100, left))

    def _sample(self) -> None:
        at = time.monotonic() - self._began
        for name in (lanes.OURS, lanes.AGENT):
            process = self._lane.processes[name]
            process.check()
            found = psutil.Process(process.pid)
            with found.oneshot():
                self.result.samples.setdefault(name, []).append(Sample(
                    at, found.memory_info().rss / 2 ** 20, found.num_fds(),
                    found.num_threads(), len(found.net_connections())))

    def _call_often(self, callers: futures.ThreadPoolExecutor,
                    stop: threading.Event) -> None:
        """Begin calls at the rate, each on a host that has none."""
        began = time.monotonic()
        for number in itertools.count(1):
            with self._mutex:
                host = self._idle.pop(0) if self._idle else ''
            if host:
                callers.submit(self._call, host)
            if stop.wait(max(0.0, began + number / RATE - time.monotonic())):
                return

    def _call(self, host: str) -> None:
        action, began = self._next[host], time.monotonic()
        status, text = 0, 'no answer'
        url = '%s/os-aggregates/%d/action' % (
            self._lane.url(lanes.OURS), self._world.aggregates[worlds.FIRST])
        try:
            # A new connection per call: idle connections would be counted.
            with requests.Session() as http:
                http.trust_env = False
                answer = http.post(
                    url, json={action: {'host': host}}, timeout=PATIENCE,
                    headers={'X-Auth-Token': self._lane.token()})
            status, text = answer.status_code, answer.text
        except requests.RequestException as exc:
            text = str(exc)
        seconds = time.monotonic() - began
        with self._mutex:
            statuses = self.result.statuses
            statuses[status] = statuses.get(status, 0) + 1
            if status != 200:
                self.result.unexpected.append(text)
            self.result.longest = max(self.result.longest, seconds)
            self._next[host] = (
                'remove_host' if action == 'add_host' else 'add_host')
            self._idle.append(host)

    def _heal(self) -> None:
        began = time.monotonic()
        while True:
            self.result.different = self._world.differences()
            self.result.healed = time.monotonic() - began
            if not self.result.different or self.result.healed > HEAL:
                return
            time.sleep(0.2)


def attempt(endurance: Endurance) -> str:
    """Run a silence; return why it could not be run, if so."""
    try:
        endurance.run()
    except (processes.CloudError, psutil.NoSuchProcess) as exc:
        return str(exc)
    return ''
