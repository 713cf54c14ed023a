# SPDX-License-Identifier: Apache-2.0
"""The measurements of a situation, on a lane of its own."""

from collections import abc
import contextlib
import dataclasses
import math
import pathlib
import signal
import threading
import time
from typing import Any

import sqlalchemy as sa

from tests.cloud import config
from tests.cloud.outages import backbone
from tests.cloud.outages import lane as lanes
from tests.cloud.outages import moments
from tests.cloud.parts import catalog
from tests.cloud.parts import faults
from tests.cloud.parts import judge
from tests.cloud.parts import proxy
from tests.cloud.parts import scene as scenes
from tests.cloud.parts import situations
from tests.cloud import processes
from tests.cloud import sql

POLL = 0.2
# Repetitions of a measurement; the longest counts.
ROUNDS = 2
# The account in the URL that completes templates; percent-encoded in a URL.
USER, PASSWORD = 'nova', 'secret@nova'
ACCOUNT = ("CREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s'" % (
    USER, PASSWORD), 'GRANT ALL ON *.* TO ' + USER)
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
        lane.use(situation.journal, _options(shared, lane, situation))
        lane.start(lanes.OURS, lanes.AGENT)
        return _Measurer(lane, scene, situation, proxied).run()


def _lane(shared: backbone.Backbone, number: int,
          situation: situations.Situation, proxied: proxy.Proxy
          ) -> lanes.Lane:
    if situation.part in proxy.PARTS:
        shared = dataclasses.replace(shared, config=dataclasses.replace(
            shared.config, ports={
                **shared.config.ports, 'placement': proxied.port}))
    options = {'cell_timeout': str(judge.CELL_TIMEOUT)}
    if situation.silent:
        options['request_timeout'] = str(judge.REQUEST_TIMEOUT)
    shared = dataclasses.replace(shared, config=dataclasses.replace(
        shared.config, nova_options={'aggregate_mirror': options}))
    # Free ports are found one after the other.
    with _CREATING:
        # An agent that is forked has imported what a template needs.
        return lanes.Lane(shared, number, judge.INLINE_TIMEOUT,
                          cells=scenes.cells(situation),
                          forks_agent=situation.kind != 'template')


def _options(shared: backbone.Backbone, lane: lanes.Lane,
             situation: situations.Situation) -> config.Options:
    """Return the options of nova that a situation changes."""
    if situation.kind == 'moved':
        catalog.create(lane)
        return {'placement': {'endpoint_override': None,
                              'region_name': catalog.region(lane)}}
    if situation.kind == 'template':
        for statement in ACCOUNT:
            sql.execute(shared.mysql, statement)
        url = sa.engine.make_url(lane.database('nova_cell0')).set(
            username=USER, password=PASSWORD)
        return {'database': {
            'connection': url.render_as_string(hide_password=False)}}
    return {}


class _Measurer:

    def __init__(self, lane: lanes.Lane, scene: scenes.Scene,
                 situation: situations.Situation, proxied: proxy.Proxy
                 ) -> None:
        self._lane = lane
        self._scene = scene
        self._situation = situation
        self._proxied = proxied
        self._problems: list[str] = []

    def run(self) -> Measured:
        scene, healthy = self._scene, self._scene.healthy
        # Nova-api and the agent use every party before the part is bad.
        self._add(healthy[0])
        self._drain()
        self._sync([healthy[0]])
        self._problems.clear()
        figures: dict[str, float] = {}
        before = self._read_logs()
        with faults.begun(self._situation, self._lane, scene, self._proxied):
            # The first batch that meets silent providers.
            drained = ([self._drain(scene.bad)] if self._situation.silent
                       else [])
            figures[judge.FIRST_SYNC] = self._sync(
                self._hosts(situations.SYNC, healthy[1]))
            figures |= self._call_often()
            if self._situation.part != 'table-locked':
                drained += [self._drain(
                    scene.bad if self._situation.kind == 'many' else ())
                    for _round in range(ROUNDS)]
            figures[judge.DRAINED] = max(drained, default=math.nan)
            if (self._situation.rows < len(healthy)
                    and self._situation.part not in faults.LOCKS):
                # Many rows are retried all the time, few are not.
                scene.hand_over(scene.bad)
            figures[judge.LATER_SYNC] = max(self._sync(
                self._hosts(situations.SYNC, host))
                for host in healthy[3:3 + ROUNDS])
            figures[judge.DELETE] = self._delete()
            if self._situation.kind == 'template':
                figures |= self._restart(figures)
            self._problems += scene.differences()
        if self._situation.kind == 'aggregate':
            figures[judge.CORRECTED] = self._await_success()
        if self._situation.part not in faults.LOCKS:
            self._find_misnaming(before)
        return Measured(self._situation, figures, tuple(self._problems),
                        self._logs())

    def _call_often(self) -> dict[str, float]:
        """Add hosts, each after the other; return the longest seconds."""
        hosts = self._hosts(situations.INLINE, self._scene.healthy[2])
        if self._situation.is_called:
            hosts += self._scene.healthy[5:7]
        calls = [self._add(host) for host in hosts]
        if self._situation.kind == 'moved' and calls[-1][1]:
            self._problems.append('nova-api does not find the new address')
        return dict(zip((judge.ADD, judge.MIRRORED), map(max, zip(*calls))))

    def _restart(self, figures: judge.Figures) -> dict[str, float]:
        """Send SIGHUP and SIGTERM to the agent, which mirrors between."""
        agent, leader = self._lane.processes[lanes.AGENT], self._scene.leader()
        agent.send(signal.SIGHUP)
        reloaded = self._wait(
            lambda: self._scene.leader() not in ('', leader))
        drained = max(figures[judge.DRAINED], self._drain())
        synced = max(figures[judge.LATER_SYNC],
                     self._sync(self._scene.healthy[5:6]))
        agent.send(signal.SIGTERM)
        return {judge.RELOADED: reloaded, judge.DRAINED: drained,
                judge.LATER_SYNC: synced,
                judge.ENDED: self._wait(lambda: not agent.alive())}

    def _await_success(self) -> float:
        """Return the seconds to the end of the next full sync."""
        corrected = time.time()
        seconds = self._wait(lambda: bool(self._scene.syncs_since(corrected)))
        for status in self._scene.syncs_since(corrected)[:1]:
            if status:
                self._problems.append(
                    'the next full sync has the exit status %d' % status)
        return seconds

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

    def _drain(self, bad: abc.Iterable[str] = ()) -> float:
        """Hand over rows of hosts; return the seconds to the last one.

        :param bad: hosts of the bad part whose rows are handed over as well
        """
        hosts = self._hosts(situations.DRAIN, *self._scene.healthy)
        for host in hosts:
            self._scene.damage(host)
        *bad, = bad
        rows = self._scene.hand_over([*bad, *hosts])[len(bad):]
        if self._scene.silent:
            # Its row stays, and its other providers are mirrored.
            rows.pop()
        seconds = self._wait(lambda: not self._scene.remaining(rows) and (
            not self._scene.silent
            or self._scene.is_mirrored(self._scene.special)))
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

    def _add(self, host: str) -> tuple[float, float]:
        """Add a host to an aggregate.

        :returns: the seconds of the hook, and from nova's answer until the
            host is mirrored
        """
        path, body = self._scene.add_request(host)
        seconds = self._call('POST', path, 200, body)
        if self._scene.is_mirrored(host):
            return seconds, 0.0
        return seconds, self._wait(lambda: self._scene.is_mirrored(host))

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

    def _find_misnaming(self, before: abc.Mapping[str, str]) -> None:
        """Find what nova-api and the agent say of others than the bad part.

        :param before: their logs before it was bad
        """
        names = self._scene.blameless(self._proxied.unserved)
        for name, log in self._read_logs().items():
            self._problems += judge.misnaming(
                log.removeprefix(before[name]), names,
                of_calls=name == lanes.OURS)

    def _read_logs(self) -> dict[str, str]:
        return {name: pathlib.Path(self._lane.processes[name].log).read_text(
            errors='replace') for name in (lanes.OURS, lanes.AGENT)}

    def _logs(self) -> str:
        return '\n'.join(
            processes.tail(self._lane.processes[name].log)
            for name in (lanes.OURS, lanes.AGENT))
