# SPDX-License-Identifier: Apache-2.0
"""The measurements of a situation, on a lane of its own."""

from collections import abc
import contextlib
import dataclasses
import math
import threading
import time
from typing import Any

from tests.cloud.outages import backbone
from tests.cloud.outages import lane as lanes
from tests.cloud.outages import moments
from tests.cloud.parts import faults
from tests.cloud.parts import judge
from tests.cloud.parts import proxy
from tests.cloud.parts import scene as scenes
from tests.cloud.parts import situations
from tests.cloud import processes

POLL = 0.2
# Repetitions of a measurement; the longest counts.
ROUNDS = 2
_CREATING = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Measured:
    """The figures of a situation.

    :param problems: other than times that are too long
    :param logs: what nova-api and the agent have logged
    """

    situation: situations.Situation
    figures: judge.Figures
    problems: tuple[str, ...]
    logs: str = dataclasses.field(repr=False)


def measure(shared: backbone.Backbone, number: int,
            situation: situations.Situation) -> Measured:
    """Measure a situation.

    :param number: of the lane, which no other situation has
    :raises CloudError: when it cannot be measured
    """
    with contextlib.ExitStack() as stack:
        proxied = stack.enter_context(
            proxy.Proxy(shared.config.ports['placement']))
        lane = stack.enter_context(_lane(shared, number, situation, proxied))
        scene = scenes.Scene(lane, number, shared.config, situation)
        stack.callback(scene.remove)
        lane.use(situation.journal)
        lane.start(lanes.OURS, lanes.AGENT)
        return _Measurer(lane, scene, situation).run(proxied)


def _lane(shared: backbone.Backbone, number: int,
          situation: situations.Situation, proxied: proxy.Proxy
          ) -> lanes.Lane:
    if situation.part in proxy.ANSWERS:
        shared = dataclasses.replace(shared, config=dataclasses.replace(
            shared.config, ports={
                **shared.config.ports, 'placement': proxied.port}))
    shared = dataclasses.replace(shared, config=dataclasses.replace(
        shared.config, nova_options={'aggregate_mirror': {
            'cell_timeout': str(judge.CELL_TIMEOUT)}}))
    # Free ports are found one after the other.
    with _CREATING:
        return lanes.Lane(shared, number, judge.INLINE_TIMEOUT,
                          cells=scenes.cells(situation))


class _Measurer:

    def __init__(self, lane: lanes.Lane, scene: scenes.Scene,
                 situation: situations.Situation) -> None:
        self._lane = lane
        self._scene = scene
        self._situation = situation
        self._problems: list[str] = []

    def run(self, proxied: proxy.Proxy) -> Measured:
        scene, healthy = self._scene, self._scene.healthy
        # Nova-api and the agent use every party before the part is bad.
        self._add(healthy[0])
        self._sync([healthy[0]])
        self._problems.clear()
        figures = {}
        with faults.begun(self._situation, self._lane, scene, proxied):
            figures[judge.FIRST_SYNC] = self._sync(
                self._hosts(situations.SYNC, healthy[1]))
            figures[judge.ADD] = max(
                self._add(host)
                for host in self._hosts(situations.INLINE, healthy[2]))
            figures[judge.DRAINED] = math.nan
            if self._situation.part != 'table-locked':
                figures[judge.DRAINED] = max(
                    self._drain() for _round in range(ROUNDS))
            if (self._situation.rows < len(healthy)
                    and self._situation.part not in faults.LOCKS):
                # Many rows are retried all the time, few are not.
                scene.hand_over(scene.bad)
            figures[judge.LATER_SYNC] = max(self._sync(
                self._hosts(situations.SYNC, host))
                for host in healthy[3:3 + ROUNDS])
            figures[judge.DELETE] = self._delete()
            self._problems += scene.differences()
        return Measured(self._situation, figures, tuple(self._problems),
                        self._logs())

    def _hosts(self, measurement: str, *healthy: str) -> list[str]:
        """Add the host of the bad part if the measurement includes it."""
        return [*healthy, *(
            [self._scene.special]
            if measurement in self._situation.included else [])]

    def _sync(self, hosts: list[str]) -> float:
        """Damage hosts in placement; return the seconds to the repair."""
        for host in hosts:
            self._scene.damage(host)
        return self._wait(lambda: all(map(self._scene.is_mirrored, hosts)))

    def _drain(self) -> float:
        """Hand over rows of hosts; return the seconds to the last one."""
        hosts = self._hosts(situations.DRAIN, *self._scene.healthy)
        for host in hosts:
            self._scene.damage(host)
        if self._situation.part == 'many-nodes':
            self._scene.hand_over(self._scene.bad)
        rows = self._scene.hand_over(hosts)
        seconds = self._wait(lambda: not self._scene.remaining(rows))
        if math.isfinite(seconds):
            self._problems += [
                '%s is not mirrored without its row' % host for host in hosts
                if not self._scene.is_mirrored(host)]
        return seconds

    def _wait(self, done: abc.Callable[[], bool]) -> float:
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > judge.PATIENCE:
                return math.inf
            time.sleep(POLL)
        return time.monotonic() - began

    def _add(self, host: str) -> float:
        """Add a host to an aggregate; return the seconds of the hook."""
        path, body = self._scene.add_request(host)
        seconds = self._call('POST', path, 200, body)
        if not self._scene.is_mirrored(host):
            self._problems.append('%s was added, and not mirrored' % host)
        return seconds

    def _delete(self) -> float:
        """Delete a service; return the seconds of the hook."""
        return self._call(
            'DELETE', '/os-services/%s' % self._scene.service(), 204)

    def _call(self, method: str, path: str, status: int, body: Any = None
              ) -> float:
        recording = moments.Recording('', lambda: None)
        with self._recorded(recording):
            answer = self._lane.send(
                lanes.OURS, method, path, body, judge.PATIENCE)
        if answer.status_code != status:
            self._problems.append('%s %s: %d %s' % (
                method, path, answer.status_code, answer.text))
        before, _method, after = recording.seconds()
        return before + after

    @contextlib.contextmanager
    def _recorded(self, recording: moments.Recording) -> abc.Iterator[None]:
        self._lane.listener.record(recording)
        try:
            yield
        finally:
            self._lane.listener.record(None)

    def _logs(self) -> str:
        return '\n'.join(
            processes.tail(self._lane.processes[name].log)
            for name in (lanes.OURS, lanes.AGENT))
