# SPDX-License-Identifier: Apache-2.0
"""A part that is bad until the end, and a healthy host that must not wait.

The part is a cell, a provider or rows of the journal, all of one host, or a
backend of placement.
"""

from collections import abc
import dataclasses

from tests.simulation import databases
from tests.simulation import nova as simulated_nova
from tests.simulation import placement as simulated_placement
from tests.simulation import processes

LOCKS, SICK = 'locks rows', 'answers each third request with 503'
HANGS = simulated_placement.HANGS
BadPart = str | simulated_placement.Failure
"""What is bad about a cell, rows or a backend, or how a provider fails."""
KINDS: tuple[BadPart, ...] = (
    *databases.SECONDS, LOCKS, *simulated_placement.FAILURES)
LATER_KINDS: tuple[BadPart, ...] = (HANGS, SICK)

HOST, BAD_HOST, BAD_NODE = 'h1', 'h2', 'n2'
AGGREGATE = 'c'
ROWS = 8
"""Rows of the bad host: two batches of the simulated drain."""
LOCKED = 2
"""Locked rows, which are in one batch with that of the healthy host."""
STEPS = 3
"""Steps with only the rows of the bad host, before the healthy host changes.
"""
SOON, CLOSED = 5.0, 10.0
"""Seconds until a healthy host is mirrored, and until its row is closed, which
may share a batch with locked rows."""
MANY = 40
"""Most steps in that time."""
SHORT = 3.0
"""Seconds of a full sync that does not wait again for a silent cell."""
LONGEST_BACKOFF = 31.0
"""Seconds after which each part is tried again."""


def begin(cloud: processes.Cloud, part: BadPart | None) -> None:
    """Let the part be bad from the start; rows are locked later."""
    if part in databases.SECONDS:
        cloud.nova.bad_cells[simulated_nova.BAD_CELL] = part
    elif isinstance(part, simulated_placement.Failure):
        cloud.placement.failing[BAD_NODE] = part
    cloud.placement.has_sick_backend = part == SICK


def judge(cloud: processes.Cloud, part: BadPart, step: abc.Callable[[], bool],
          drain: processes.Parts, sync: processes.Parts) -> str:
    """Check that a healthy host is mirrored in time, then end the fault.

    :param step: the drain step of an agent
    :param drain: the parts that its journal belongs to
    :param sync: those of its full sync
    :returns: what broke the promise; empty when it was kept
    """
    wrong = (_drain(cloud, part, step, drain)
             or _sync(cloud, part, step, sync))
    cloud.nova.bad_cells.clear()
    cloud.placement.failing.clear()
    cloud.placement.has_sick_backend = False
    cloud.database.unlock()
    cloud.world.now += LONGEST_BACKOFF
    return wrong and 'while %s: %s' % (part, wrong)


def _drain(cloud: processes.Cloud, part: BadPart, step: abc.Callable[[], bool],
           drain: processes.Parts) -> str:
    """Change a healthy host behind a backlog of the bad one."""
    if part in (LOCKS, HANGS):
        # In one batch with the row of the healthy host.
        rows = [_hand_over(cloud, drain, BAD_HOST) for _row in range(LOCKED)]
        if part == LOCKS:
            cloud.database.lock(rows)
    elif part != SICK:
        for _row in range(ROWS):
            _hand_over(cloud, drain, BAD_HOST)
        for _step in range(STEPS):
            _second(cloud, step)
    cloud.nova.hosts_of[AGGREGATE] ^= {HOST}
    row, started = _hand_over(cloud, drain, HOST), cloud.world.now
    limit = SOON
    seconds = _until(
        cloud, step, lambda: not _differences(cloud, HOST), limit)
    if not _differences(cloud, HOST):
        # The rest of the step was for others.
        seconds = _written(cloud, HOST) - started
    if seconds <= limit:
        limit = CLOSED
        seconds = _until(
            cloud, step, lambda: not cloud.database.has_row(row), limit)
    if seconds > limit:
        return 'a healthy host had to wait for %g seconds' % seconds
    return ''


def _written(cloud: processes.Cloud, host: str) -> float:
    """Return when the last of the providers of a host was written."""
    return max((cloud.placement.changed_at.get(node, 0.0)
                for node in cloud.nova.nodes_on({host})), default=0.0)


def _until(cloud: processes.Cloud, step: abc.Callable[[], bool],
           condition: abc.Callable[[], bool], limit: float) -> float:
    """Run steps until the condition holds; return the seconds."""
    started = cloud.world.now
    for _step in range(MANY):
        if condition() or cloud.world.now > started + limit:
            break
        _second(cloud, step)
    return cloud.world.now - started


def _sync(cloud: processes.Cloud, part: BadPart, step: abc.Callable[[], bool],
          sync: processes.Parts) -> str:
    """Repair drift in every cell that answers, without waiting twice."""
    for node in cloud.nova.nodes_on({HOST, BAD_HOST}):
        _drift(cloud, node)
    unreadable = _associations(cloud, BAD_HOST) if part in (
        databases.REFUSES, databases.SILENT) else {}
    processes.compare(sync)
    hosts = {HOST, BAD_HOST} if part in (
        databases.SLOW, LOCKS, SICK) else {HOST}
    for host in sorted(hosts):
        wrong = _differences(cloud, host)
        if wrong:
            return 'after a full sync: %s' % wrong
    for _step in range(STEPS):
        _second(cloud, step)
    started = cloud.world.now
    processes.compare(sync)
    seconds = cloud.world.now - started
    if part == databases.SILENT and seconds > SHORT:
        return 'the next full sync took %g seconds' % seconds
    for node, aggregates in sorted(unreadable.items()):
        if _associations(cloud, BAD_HOST)[node] != aggregates:
            return '%s was changed although its host is unknown' % node
    return ''


def _hand_over(cloud: processes.Cloud, drain: processes.Parts, host: str
               ) -> str:
    """Write the row of an operation that was not mirrored; return its ID."""
    rows = drain.journal.rows
    nodes = frozenset(cloud.nova.nodes_on({host}))
    row = rows.make(processes.journal.Dirty(host, nodes, 'req'))
    rows.record(row)
    rows.hand_over(row, 'not mirrored')
    # The IDs are random and must not decide the order.
    cloud.world.now += 0.001
    return row.id


def _second(cloud: processes.Cloud, step: abc.Callable[[], bool]) -> None:
    """Run a step; the agent waits a second unless more rows are due."""
    if not step():
        cloud.world.now += 1.0


def _drift(cloud: processes.Cloud, node: str) -> None:
    """Let placement differ from nova."""
    provider = cloud.placement.providers.get(node)
    if provider:
        cloud.placement.providers[node] = dataclasses.replace(
            provider, generation=provider.generation + 1,
            aggregates=provider.aggregates ^ {AGGREGATE})


def _associations(cloud: processes.Cloud, host: str
                  ) -> dict[str, frozenset[str]]:
    """Return the providers of a host, to their current aggregates."""
    current = frozenset(cloud.nova.hosts_of)
    return {node: provider.aggregates & current
            for node, provider in cloud.placement.providers.items()
            if cloud.nova.nodes.get(node) == host}


def _differences(cloud: processes.Cloud, host: str) -> str:
    """Describe the providers of a host that are not as nova wants them."""
    texts = []
    for node, aggregates in sorted(_associations(cloud, host).items()):
        if aggregates != cloud.nova.wanted(node):
            texts.append('%s is in %s' % (node, sorted(aggregates)))
    return '; '.join(texts)
