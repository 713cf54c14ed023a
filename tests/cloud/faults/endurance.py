# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud endure``: a long silence of a party, under load.

Each party is silent at the same time, on a lane of its own.
"""

import argparse
import collections
from collections import abc
from concurrent import futures
import contextlib
import dataclasses
import itertools
import threading
import time
from typing import NamedTuple

import psutil
import requests

from tests.cloud.faults import backbone
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import scene as scenes
from tests.cloud.integration import pages
from tests.cloud import output
from tests.cloud import processes
from tests.cloud import servers
from tests.cloud import services
from tests import patience

PARTIES = {
    'keystone': ('keystone',), 'placement': ('placement',),
    'journal': ('journal-mysql',), 'cell': ('cell-2',)}
"""The wires that are silent, by the name of the party."""
CELLS = 3
# Calls per second, hosts in each cell, calls at the same time.
RATE, HOSTS, CALLERS = 5.0, 5, 16
PATIENCE = patience.seconds(120)
# Seconds of calls before the silence, and between two samples.
BEFORE, EVERY = 30.0, 5.0
# Seconds within which placement has to equal nova after the silence.
HEAL = patience.seconds(120)
# Shares of the silence that are compared. In the first part nova still loads
# what it needs, with and without this package.
PARTS = {'20 to 30 %': (0.2, 0.3), '90 to 100 %': (0.9, 1.0)}
# What a process may use more in the last part: connections of calls that run
# during each sample, and memory that the allocator keeps.
MORE = services.THREADS
MORE_MIB = 5.0
# What the agent holds for each operation that stays in the journal.
ROW_MIB = 0.7 / 1024
# Short: a silent keystone is noticed only when a token has expired.
TOKEN_SECONDS = 240
INTERVAL = 60
SUMMARY = ('Silent', 'Calls', 'Answered 200', 'Others', 'Longest call, s',
           'Equal after, s')


class Sample(NamedTuple):
    """What a process uses at a moment, in seconds since the silence began."""

    at: float
    mib: float
    descriptors: int
    threads: int
    connections: int


COUNTS = Sample._fields[2:]
HEADER = ('Silent', 'Process', 'When', 'Memory, MiB',
          *map(str.capitalize, COUNTS))


@dataclasses.dataclass
class Result:
    """A silence of one party."""

    party: str
    seconds: float
    statuses: collections.Counter[int] = dataclasses.field(
        default_factory=collections.Counter)
    """Number of answers by HTTP status; 0 is no answer."""
    problems: list[str] = dataclasses.field(default_factory=list)
    longest: float = 0.0
    """Seconds of the longest call."""
    samples: dict[str, list[Sample]] = dataclasses.field(default_factory=dict)
    """Process to its samples, in order."""
    healed: float = 0.0

    def part(self, process: str, name: str) -> list[Sample]:
        """Return the samples of a part of the silence."""
        begin, end = (share * self.seconds for share in PARTS[name])
        return [sample for sample in self.samples[process]
                if begin <= sample.at <= end]

    def growth(self) -> list[str]:
        """List what a process uses more in the end.

        Calls that run when a sample is taken raise the highest count, a leak
        raises the lowest one as well.
        """
        growth = []
        for process in self.samples:
            early, late = (self.part(process, name) for name in PARTS)
            for name in COUNTS:
                first, last = (min(getattr(sample, name) for sample in part)
                               for part in (early, late))
                if last > first + MORE:
                    growth.append('%s: %s grew from %d to %d' % (
                        process, name, first, last))
            first, last = (max(sample.mib for sample in part)
                           for part in (early, late))
            rows = RATE * (late[-1].at - early[-1].at) * ROW_MIB
            if last > first + MORE_MIB + rows * (process == lanes.AGENT):
                growth.append('%s: memory grew from %.0f to %.0f MiB' % (
                    process, first, last))
        return growth

    def summary(self) -> tuple[object, ...]:
        """Return the row of the calls."""
        return (self.party, self.statuses.total(), self.statuses[200],
                self.statuses.total() - self.statuses[200],
                '%.1f' % self.longest, '%.1f' % self.healed)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows of the highest figures of some parts."""
        rows = []
        for process, samples in self.samples.items():
            for when, some in (
                    ('before', [[sample for sample in samples
                                 if sample.at < 0][-1]]),
                    *((name, self.part(process, name)) for name in PARTS),
                    ('after', samples[-1:])):
                most = Sample(*map(max, zip(*some)))
                rows.append((self.party, process, when, '%.0f' % most.mib,
                             *most[2:]))
        return rows


class Endurance:
    """The calls on one lane during a silence.

    :param seconds: of the silence
    """

    def __init__(self, lane: lanes.Lane, party: str, seconds: float) -> None:
        self.result = Result(party, seconds)
        self._lane = lane
        self._scene = scenes.Scene(lane)
        self._mutex = threading.Lock()
        # Nova itself waits for the cell of a call's host.
        self._idle = ['%s-%s-%d' % (lane.config.directory.name, cell, number)
                      for number in range(1, HOSTS + 1) for cell in lane.cells
                      if cell not in PARTIES[party]]
        for host, cell in zip(self._idle, itertools.cycle(
                cell for cell in lane.cells if cell not in PARTIES[party])):
            self._scene.create_hosts(cell, [host])
            self._scene.place(host, [])
        self._next = dict.fromkeys(self._idle, 'add_host')
        """Host to the next action on it."""

    def run(self) -> None:
        """Call, silence the party, call, and let it answer again."""
        try:
            self._run()
        except (processes.CloudError, psutil.NoSuchProcess) as exc:
            self.result.problems.append(str(exc))

    def _run(self) -> None:
        self._lane.use('mysql', {})
        self._lane.start(lanes.OURS, lanes.AGENT)
        wires = [self._lane.wires[name] for name in PARTIES[self.result.party]]
        stop = threading.Event()
        self._began = time.monotonic() + BEFORE
        with contextlib.ExitStack() as stack:
            callers = stack.enter_context(futures.ThreadPoolExecutor(CALLERS))
            for wire in wires:
                stack.callback(wire.forward)
            calling = threading.Thread(
                target=self._call_often, args=(callers, stop), daemon=True)
            calling.start()
            stack.callback(calling.join)
            stack.callback(stop.set)
            self._watch(0.0)
            for wire in wires:
                wire.hold()
            self._watch(self.result.seconds)
        began = time.monotonic()
        while different := self._scene.differences():
            if time.monotonic() - began > HEAL:
                self.result.problems += different
                break
            time.sleep(0.2)
        self.result.healed = time.monotonic() - began
        self._sample()
        self.result.problems += self.result.growth()

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
            self._lane.processes[name].check()
            process = psutil.Process(self._lane.processes[name].pid)
            with process.oneshot():
                self.result.samples.setdefault(name, []).append(Sample(
                    at, process.memory_info().rss / 2 ** 20,
                    process.num_fds(), process.num_threads(),
                    len(process.net_connections())))

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
        request = self._scene.action(action, host, scenes.FIRST)
        try:
            answer = self._lane.send(
                lanes.OURS, request.method, request.path, request.body,
                PATIENCE)
            status, text = answer.status_code, answer.text
        except requests.RequestException as exc:
            text = str(exc)
        with self._mutex:
            self.result.statuses[status] += 1
            if status != 200:
                self.result.problems.append(text)
            self.result.longest = max(
                self.result.longest, time.monotonic() - began)
            self._next[host] = (
                'remove_host' if action == 'add_host' else 'add_host')
            self._idle.append(host)


def main(arguments: argparse.Namespace) -> int:
    """Silence each party on a lane of its own; return 0 if nothing grows.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    tell = output.teller()
    with backbone.running(False, tell, TOKEN_SECONDS) as shared, \
            contextlib.ExitStack() as stack:
        silences = [Endurance(stack.enter_context(lanes.Lane(
            shared, number, CELLS, {lanes.OURS: 'mirror'})),
            party, arguments.seconds) for number, party in enumerate(
                arguments.party or PARTIES, start=1)]
        _run(silences, tell)
    results = [silence.result for silence in silences]
    print(pages.figures('Calls', SUMMARY, (12, 12, 16, 24, 18, 18), [
        result.summary() for result in results]))
    print(pages.figures('Use of resources', HEADER, (
        12, 12, 24, 14, 14, 12, 14), [
            row for result in results if not result.problems or result.healed
            for row in result.rows()]))
    for result in results:
        for problem in result.problems:
            print('WRONG: %s: %s' % (result.party, problem))
    return 1 if any(result.problems for result in results) else 0


def _run(silences: abc.Sequence[Endurance], tell: output.Tell) -> None:
    """Run all silences at the same time."""
    with futures.ThreadPoolExecutor(len(silences)) as pool:
        running = [pool.submit(silence.run) for silence in silences]
        while futures.wait(running, INTERVAL).not_done:
            tell(', '.join('%s: %d calls' % (
                silence.result.party, silence.result.statuses.total())
                for silence in silences))
