# SPDX-License-Identifier: Apache-2.0
"""A long silence of a party, under load: nothing may fail, and nothing grow.
"""

import collections
import contextlib
import itertools
import math
import threading
import time
from typing import NamedTuple

import psutil
import requests

from tests.cloud.faults import backbone
from tests.cloud.faults import kinds
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import report
from tests.cloud.faults import scene as scenes
from tests.cloud.faults import table
from tests.cloud import services
from tests import patience

# Calls per second, and hosts in each cell.
RATE, HOSTS = 5.0, 5
PATIENCE = patience.seconds(120)
# Seconds of calls before the silence, and between two samples.
BEFORE, EVERY = 30.0, 5.0
# Seconds within which placement has to equal nova after the silence.
HEAL = patience.seconds(120)
# Shares of the silence that are compared. In the first part nova still loads
# what it needs, with and without this package.
EARLY, LATE = (0.2, 0.3), (0.9, 1.0)
# What a process may use more in the last part: connections of calls that run
# during each sample, and memory that the allocator keeps.
MORE = {'mib': 5.0, **dict.fromkeys(
    ('descriptors', 'threads', 'connections'), float(services.THREADS))}
# What the agent holds for each operation that stays in the journal.
ROW_MIB = 0.7 / 1024
# Short: a silent keystone is noticed only when a token has expired.
TOKEN_SECONDS = 240
# Problems that are shown.
SHOWN = 20


class Sample(NamedTuple):
    """What a process uses at a moment, in seconds since the silence began."""

    at: float
    mib: int
    descriptors: int
    threads: int
    connections: int


class Silence:
    """The calls on one lane during a silence."""

    def __init__(self, lane: lanes.Lane, row: table.Row, seconds: float
                 ) -> None:
        self._lane = lane
        self._row = row
        self._seconds = seconds
        self._scene = scenes.Scene(lane)
        self._statuses: collections.Counter[int] = collections.Counter()
        self._problems: list[str] = []
        self._longest = 0.0
        self._samples: dict[str, list[Sample]] = {
            lanes.OURS: [], lanes.AGENT: []}
        self._hosts: list[str] = []
        # Nova itself waits for the cell of a call's host.
        answering = [cell for cell in lane.cells
                     if cell not in lane.wires_of(row)]
        for cell in answering:
            hosts = [self._scene.name(cell, number) for number in range(HOSTS)]
            self._scene.create_hosts(cell, hosts)
            for host in hosts:
                self._scene.place(host, [])
            self._hosts += hosts

    def run(self) -> report.Measured:
        """Call, silence the party, call, and let it answer again."""
        self._lane.use('mysql', {})
        self._lane.start(lanes.OURS, lanes.AGENT)
        fault = kinds.Fault(self._lane, self._row)
        stop = threading.Event()
        self._began = time.monotonic() + BEFORE
        with contextlib.ExitStack() as stack:
            stack.callback(fault.end)
            for host in self._hosts:
                caller = threading.Thread(
                    target=self._call_often, args=(host, stop), daemon=True)
                caller.start()
                stack.callback(caller.join)
            stack.callback(stop.set)
            self._watch(0.0)
            fault.begin()
            self._watch(self._seconds)
        healed, differences = self._scene.heal(HEAL)
        self._problems += differences
        self._sample()
        uses: dict[str, report.Figure] = {}
        for process in self._samples:
            uses |= self._uses(process)
            self._problems += self._growth(process)
        return report.Measured(self._row, {
            'calls': self._statuses.total(), 'longest': self._longest,
            'equal after': healed, **uses}, self._problems[:SHOWN])

    def _part(self, process: str, first: float, last: float) -> list[Sample]:
        """Return the samples of a part of the silence."""
        return [sample for sample in self._samples[process]
                if first <= sample.at / self._seconds <= last]

    def _growth(self, process: str) -> list[str]:
        """List what a process uses more in the end.

        Calls that run when a sample is taken raise the highest figure, a leak
        raises the lowest one as well.
        """
        early, late = (self._part(process, *part) for part in (EARLY, LATE))
        more = dict(MORE)
        if process == lanes.AGENT:
            seconds = late[-1].at - early[-1].at
            more['mib'] += RATE * seconds * ROW_MIB
        growth = []
        for name, limit in more.items():
            first, last = (min(getattr(sample, name) for sample in part)
                           for part in (early, late))
            if last > first + limit:
                growth.append('%s: %s grew from %d to %d' % (
                    process, name, first, last))
        return growth

    def _uses(self, process: str) -> dict[str, report.Figure]:
        """Return the highest figures before, early, late and after."""
        parts = [self._part(process, -math.inf, 0.0)[-1:],
                 self._part(process, *EARLY), self._part(process, *LATE),
                 self._samples[process][-1:]]
        uses: dict[str, report.Figure] = {}
        for name in MORE:
            highest = [max(getattr(sample, name) for sample in part)
                       for part in parts]
            uses['%s %s' % (process, name)] = '/'.join(map(str, highest))
        return uses

    def _watch(self, until: float) -> None:
        """Sample the processes until a moment."""
        while True:
            self._sample()
            left = self._began + until - time.monotonic()
            if left <= 0:
                return
            # A short silence has samples in each part, too.
            time.sleep(min(EVERY, self._seconds / 100, left))

    def _sample(self) -> None:
        at = time.monotonic() - self._began
        for name, samples in self._samples.items():
            self._lane.processes[name].check()
            process = psutil.Process(self._lane.processes[name].pid)
            with process.oneshot():
                samples.append(Sample(at, process.memory_info().rss // 2 ** 20,
                                      process.num_fds(), process.num_threads(),
                                      len(process.net_connections())))

    def _call_often(self, host: str, stop: threading.Event) -> None:
        """Add a host to an aggregate and remove it, in turn."""
        every = len(self._hosts) / RATE
        due = time.monotonic()
        for action in itertools.cycle(('add_host', 'remove_host')):
            began = time.monotonic()
            request = self._scene.action(action, host, scenes.FIRST)
            status = 0
            try:
                answer = self._lane.send(lanes.OURS, request, PATIENCE)
                status, text = answer.status_code, answer.text
            except requests.RequestException as exc:
                text = str(exc)
            self._statuses[status] += 1
            if status != 200:
                self._problems.append('%s: %d %s' % (action, status, text))
            now = time.monotonic()
            self._longest = max(self._longest, now - began)
            due += every
            if stop.wait(max(0.0, due - now)):
                return


def measure(shared: backbone.Backbone, seconds: float, row: table.Row
            ) -> report.Measured:
    """Measure a row, on a lane of its own."""
    with lanes.Lane(shared, row.cells) as lane:
        return Silence(lane, row, seconds).run()
