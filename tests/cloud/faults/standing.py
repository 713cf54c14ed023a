# SPDX-License-Identifier: Apache-2.0
"""How soon healthy hosts are mirrored while a part is bad all the time."""

from collections import abc
import contextlib
import math
import re
import signal
import time

from tests.cloud import config
from tests.cloud.faults import backbone
from tests.cloud.faults import kinds
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import moments
from tests.cloud.faults import part as parts
from tests.cloud.faults import proxy
from tests.cloud.faults import report
from tests.cloud.faults import scene as scenes
from tests.cloud.faults import table
from tests.cloud import processes
from tests.cloud import sql
from tests import patience

SYNC_INTERVAL = float(lanes.SYNC_INTERVAL)
# More than a slow cell takes, and more than SYNC_INTERVAL and MARGIN.
CELL_TIMEOUT = 12.0
# Of the drain, of the full sync, of a call and of a restarted agent.
DRAIN, MARGIN, CALL, RESTART = 5.0, 5.0, 1.0, 10.0
# Of a drain whose requests may take the time of a call.
LONG_DRAIN = table.INLINE_TIMEOUT + 1.5
# More for hosts that meet a silent backend in each attempt of a batch.
ALONE = 10.0
# A full sync reads a slow cell to compare, and again to repair.
READS = 2
# As long as a sync interval, as by default.
REQUEST_TIMEOUT = SYNC_INTERVAL
# Seconds after which nothing is waited for.
PATIENCE = patience.seconds(60)
ADD, MIRRORED, DRAINED, FIRST_SYNC, LATER_SYNC, DELETE = (
    'add host', 'mirrored after it', 'drain', 'first full sync',
    'later full sync', 'delete service')
# Of some rows.
CORRECTED, RELOADED, ENDED = ('full sync after the correction',
                              'reload after SIGHUP', 'end after SIGTERM')
LINE = re.compile(r' (?:WARNING|ERROR|CRITICAL) nova_aggregate_mirror\.\S+ ')
WORD = re.compile(r'[\w-]+')
# What was not tried was not observed.
NOT_TRIED = 'is not tried again yet'
# Repetitions of a measurement; the longest counts.
ROUNDS = 2
# The account in the URL that completes templates; percent-encoded in a URL.
USER, PASSWORD = 'nova', 'secret@nova'
ACCOUNT = ("CREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s'" % (
    USER, PASSWORD), 'GRANT ALL ON *.* TO ' + USER)

Figures = abc.Mapping[str, float]
"""Measurement to its seconds; infinite if it was not seen."""


def measure(shared: backbone.Backbone, row: table.Row) -> report.Measured:
    """Measure a row, on a lane of its own."""
    with contextlib.ExitStack() as stack:
        proxied = stack.enter_context(
            proxy.Proxy(shared.config.ports['placement']))
        # An agent that is forked has imported what a template needs.
        lane = stack.enter_context(lanes.Lane(
            shared, row.cells,
            placement=proxied.server_port if row.proxied else 0,
            forks_agent=row.kind != 'template'))
        scene = scenes.Scene(lane)
        stack.callback(scene.remove_providers)
        lane.use(row.journal, _options(shared, lane, row))
        part = parts.Part(lane, scene, row)
        lane.start(lanes.OURS, lanes.AGENT)
        return _Measurer(lane, scene, part, row, proxied).run()


def _options(shared: backbone.Backbone, lane: lanes.Lane, row: table.Row
             ) -> config.Options:
    """Return the options of nova that a row changes."""
    options: dict[str, config.Section] = {'aggregate_mirror': {
        'inline_timeout': str(row.inline_timeout),
        'cell_timeout': str(CELL_TIMEOUT)}}
    if row.silent:
        options['aggregate_mirror']['request_timeout'] = str(REQUEST_TIMEOUT)
    if row.party == 'moved':
        options['placement'] = {'endpoint_override': None,
                                'region_name': lane.create_endpoint()}
    if row.kind == 'template':
        sql.execute(shared.mysql, *ACCOUNT)
        options['database'] = {'connection': sql.changed(
            lane.config.database_url('nova_cell0'), username=USER,
            password=PASSWORD)}
    return options


class _Measurer:

    def __init__(self, lane: lanes.Lane, scene: scenes.Scene,
                 part: parts.Part, row: table.Row, proxied: proxy.Proxy
                 ) -> None:
        self._lane = lane
        self._scene = scene
        self._part = part
        self._row = row
        self._proxied = proxied
        self._problems: list[str] = []

    def run(self) -> report.Measured:
        part, row, healthy = self._part, self._row, self._part.healthy
        # Nova-api and the agent use every party before the part is bad.
        self._add(healthy[0])
        self._drain()
        self._sync([healthy[0]])
        self._problems.clear()
        figures: dict[str, float] = {}
        logs = {name: processes.NewLines(self._lane.processes[name].log)
                for name in (lanes.OURS, lanes.AGENT)}
        with self._bad():
            # The first batch that meets silent providers.
            drained = [self._drain(part.bad)] if row.silent else []
            figures[FIRST_SYNC] = self._sync(
                self._hosts(table.SYNC, healthy[1]))
            figures |= self._call_often()
            if row.kind != 'table-locked':
                drained += [self._drain(
                    part.bad if row.kind == 'many-nodes' else ())
                    for _round in range(ROUNDS)]
            figures[DRAINED] = max(drained, default=math.nan)
            if row.rows < len(healthy) and not row.locks:
                # Many rows are retried all the time, few are not.
                part.hand_over([], part.bad)
            hosts = [self._hosts(table.SYNC, host)
                     for host in healthy[3:3 + ROUNDS]]
            figures[LATER_SYNC] = max(map(self._sync, hosts))
            # Nova itself does not repeat a request that a backend refuses, and
            # waits without a limit for one that is silent.
            if row.kind != 'silent' or row.party != 'backend':
                figures[DELETE] = self._call(
                    self._scene.departure(part.leaving),
                    {204, 500} if row.party == 'backend' else {204})
            if row.kind == 'template':
                figures |= self._restart(figures)
            self._problems += self._scene.differences(
                [*healthy, *part.special])
        if row.party == 'aggregate':
            figures[CORRECTED] = self._await_success()
        if not row.locks:
            names = part.blameless(self._proxied.unserved)
            for name, log in logs.items():
                self._problems += misnaming(
                    log.read(), names, of_calls=name == lanes.OURS)
        ends = [processes.tail(self._lane.processes[name].log)
                for name in logs]
        return report.Measured(
            row, figures, [*problems(row, figures), *self._problems],
            '\n'.join(ends))

    @contextlib.contextmanager
    def _bad(self) -> abc.Iterator[None]:
        """Make the part bad, while the agent is stopped: it has open rows."""
        agent, row = self._lane.processes[lanes.AGENT], self._row
        with contextlib.ExitStack() as stack:
            agent.send(signal.SIGSTOP)
            try:
                if row.differs:
                    self._scene.join(self._part.bad, scenes.SECOND)
                # Rows of silent providers come with those of healthy hosts.
                rows = self._part.hand_over(
                    [], [] if row.silent else self._part.bad)
                if row.kind == 'range-locked':
                    # The lock begins after it, and not before all rows.
                    self._part.hand_over(self._part.healthy[:1], running=True)
                self._begin(stack, rows)
            finally:
                agent.send(signal.SIGCONT)
            yield

    def _begin(self, stack: contextlib.ExitStack, rows: list[str]) -> None:
        """Make the part bad until the end of the stack."""
        row = self._row
        if row.proxied:
            self._proxied.providers = self._part.bad_providers()
            self._proxied.row = row
            if row.party == 'moved':
                self._lane.move_endpoint(
                    'http://127.0.0.1:%d' % self._proxied.placement)
        elif row.party == 'aggregate':
            stack.callback(self._scene.set_uuid, parts.ODD,
                           self._scene.aggregates[parts.ODD])
            self._scene.set_uuid(parts.ODD, parts.UUIDS[row.kind])
        elif row.kind == 'template':
            self._part.use_templates()
        elif row.locks or row.party == 'other-cell':
            fault = kinds.Fault(self._lane, row, rows)
            stack.callback(fault.end)
            fault.begin()

    def _call_often(self) -> dict[str, float]:
        """Add hosts, each after the other; return the longest seconds."""
        hosts = self._hosts(table.INLINE, self._part.healthy[2])
        if self._row.is_called:
            hosts += self._part.healthy[5:7]
        calls = [self._add(host) for host in hosts]
        if self._row.party == 'moved' and calls[-1][1]:
            self._problems.append('nova-api does not find the new address')
        seconds, mirrored = zip(*calls)
        return {ADD: max(seconds), MIRRORED: max(mirrored)}

    def _restart(self, figures: Figures) -> dict[str, float]:
        """Send SIGHUP and SIGTERM to the agent, which mirrors between."""
        agent, leader = self._lane.processes[lanes.AGENT], self._leader()
        agent.send(signal.SIGHUP)
        reloaded = self._wait(lambda: self._leader() not in ('', leader))
        drained = max(figures[DRAINED], self._drain())
        synced = max(figures[LATER_SYNC], self._sync(self._part.healthy[5:6]))
        agent.send(signal.SIGTERM)
        ended = self._wait(lambda: not agent.alive())
        return {RELOADED: reloaded, DRAINED: drained, LATER_SYNC: synced,
                ENDED: ended}

    def _leader(self) -> str:
        """Return the holder of the agents' lease, or ''."""
        [(holder,)] = self._scene.journal(
            "SELECT holder FROM lease WHERE name = 'agent'")
        return holder

    def _await_success(self) -> float:
        """Return the seconds to the end of the next full sync."""
        corrected = time.time()
        statuses: list[int] = []

        def synced() -> bool:
            statuses.extend(status for status, in self._scene.journal(
                'SELECT status FROM syncs WHERE ended_at - seconds > :moment '
                'ORDER BY id LIMIT 1', moment=corrected))
            return bool(statuses)

        seconds = self._wait(synced)
        self._problems += [
            'the next full sync has the exit status %d' % status
            for status in statuses if status]
        return seconds

    def _hosts(self, measurement: str, *healthy: str) -> list[str]:
        """Add the host of the bad part if the measurement includes it."""
        return [*healthy, *(
            self._part.special if measurement in self._row.included else [])]

    def _sync(self, hosts: list[str]) -> float:
        """Damage hosts in placement; return the seconds to the repair."""
        for host in hosts:
            self._scene.damage(host)
        return self._wait(lambda: not self._scene.differences(hosts))

    def _drain(self, bad: abc.Sequence[str] = ()) -> float:
        """Hand over rows of hosts; return the seconds to the last one."""
        scene = self._scene
        hosts = self._hosts(table.DRAIN, *self._part.healthy)
        for host in hosts:
            scene.damage(host)
        rows = self._part.hand_over(hosts, bad)[len(bad):]
        partly: list[str] = []
        if scene.silent:
            # Its row stays, and its other providers are mirrored.
            rows.pop()
            partly = self._part.special

        def drained() -> bool:
            [(count,)] = scene.journal(
                'SELECT COUNT(*) FROM dirty WHERE id IN :rows', rows=rows)
            return not count and not (partly and scene.differences(partly))

        seconds = self._wait(drained)
        if math.isfinite(seconds):
            self._problems += [
                'without its row, %s' % difference
                for difference in scene.differences(hosts)]
        return seconds

    def _wait(self, done: abc.Callable[[], bool]) -> float:
        began = time.monotonic()
        if patience.wait(done, PATIENCE, scenes.POLL):
            return time.monotonic() - began
        return math.inf

    def _add(self, host: str) -> tuple[float, float]:
        """Add a host; return the hook's seconds, and those until mirrored."""
        seconds = self._call(self._scene.action(
            'add_host', host, scenes.FIRST), {200})
        hosts, mirrored = [host], 0.0
        if self._scene.differences(hosts):
            mirrored = self._wait(lambda: not self._scene.differences(hosts))
        return seconds, mirrored

    def _call(self, request: lanes.Request, statuses: set[int]) -> float:
        """Send a request; return the seconds of the hook."""
        recording = moments.Recording()
        with self._lane.listener.record(recording):
            answer = self._lane.send(lanes.OURS, request, PATIENCE)
        if answer.status_code not in statuses:
            self._problems.append('%s %s: %d %s' % (
                request.method, request.path, answer.status_code, answer.text))
        before, _method, after = recording.seconds()
        return before + after


def limits(row: table.Row) -> Figures:
    """Return the seconds that each measurement may take."""
    takes = READS * table.SLOW * (row.kind == 'slow')
    # A full sync that runs already may have compared too early.
    sync = max(SYNC_INTERVAL, takes) + takes + MARGIN
    first = sync + CELL_TIMEOUT * (row.kind in ('off', 'silent'))
    # Requests may be repeated, or take all their time.
    drain = LONG_DRAIN if row.is_called or row.silent else DRAIN
    if (row.party, row.kind) == ('backend', 'silent'):
        first, sync, drain = first + ALONE, sync + ALONE, drain + ALONE
    seconds = {ADD: row.inline_timeout + CALL,
               MIRRORED: LONG_DRAIN if row.is_called else 0.0,
               DRAINED: math.inf if row.kind == 'table-locked' else drain,
               FIRST_SYNC: first, LATER_SYNC: sync,
               DELETE: row.inline_timeout + CALL, CORRECTED: sync,
               RELOADED: RESTART, ENDED: RESTART}
    return {name: limit * patience.FACTOR for name, limit in seconds.items()}


def problems(row: table.Row, figures: Figures) -> list[str]:
    """List the measurements that took too long."""
    texts = []
    for name, limit in limits(row).items():
        seconds = figures.get(name, 0.0)
        if seconds > limit:
            texts.append('%s: %s s instead of at most %g s' % (
                name, report.shown(seconds), limit))
    return texts


def misnaming(log: str, names: abc.Container[str], of_calls: bool
              ) -> list[str]:
    """Find warnings and errors that name what has not failed.

    :param of_calls: whether it is the log of nova-api, which may have to leave
        their operations to the agent
    """
    lines = [line for line in filter(LINE.search, log.splitlines())
             if any(word in names for word in WORD.findall(line))]
    if of_calls:
        lines = [line for line in lines if NOT_TRIED not in line]
    if not lines:
        return []
    return ['%d warnings name what has not failed, the first is: %s' % (
        len(lines), lines[0])]
