# SPDX-License-Identifier: Apache-2.0
"""This package's full sync and nova-manage's in a real cloud.

Both commands run in turn with the same keystone, placement and databases:
first with no provider in any aggregate, then with everything in sync. After
each run placement is compared with nova; a run that did not mirror everything,
or that wrote without a difference, stops the benchmark. The ratio is computed
per pair; above 1 this package is better. At the end the full syncs of a
running agent are measured.
"""

import functools
import statistics

from benchmarks import agent_pass
from benchmarks import commands
from benchmarks import figures
from benchmarks import services
from benchmarks import table
from benchmarks import traffic
from benchmarks import workload
from tests.cloud import cloud

AGGREGATES, MEMBERSHIPS = 20, 3
PASSES = 10
COLD, WARM = 'nothing mirrored', 'all in sync'
WARM_TARGETS = {1000: (12, 100), 5000: (40, 500)}
"""Minimum ratios in sync of time and requests, by number of hosts."""
LONGEST_PASS = {5000: 1.0}
"""Maximum seconds of an agent's full sync in sync, by number of hosts."""
HEADER = ('', 'nova-manage', 'this package', 'ratio', 'target')
OURS = (0, 2)
"""Columns of the table without nova-manage."""
FIGURES = (
    figures.WALL, figures.CPU, figures.PLACEMENT_CPU, figures.PEAK,
    figures.REQUESTS, *(
        figures.Figure(kind, lambda run, kind=kind: run.requests[kind])
        for kind in (*traffic.PLACEMENT, traffic.TOKEN, traffic.DISCOVERY)))


class Sync:
    """Both commands, on the same cloud."""

    def __init__(self, running: cloud.Cloud, load: workload.Workload) -> None:
        self._load = load
        self._runner = commands.Commands(running)

    def cold(self, command: str) -> figures.Run:
        """Run a command with nothing mirrored."""
        self._load.empty()
        run = self._runner.sync(command)
        self._load.check()
        return run

    def warm(self, command: str) -> figures.Run:
        """Run a command with everything in sync.

        :raises Void: when it has written
        """
        before = self._load.check()
        run = self._runner.sync(command)
        if self._load.check() != before:
            raise services.Void(
                '%s wrote although nothing differed' % command)
        return run


def _targets(hosts: int) -> dict[str, dict[str, float]]:
    """Return the targets of both states; empty for sizes without targets."""
    if hosts not in WARM_TARGETS:
        return {COLD: {}, WARM: {}}
    seconds, requests = WARM_TARGETS[hosts]
    return {COLD: {figures.WALL.name: 10, figures.PEAK.name: 1},
            WARM: {figures.WALL.name: seconds, figures.PEAK.name: 1,
                   figures.REQUESTS.name: requests}}


def _measure_agent(running: cloud.Cloud, load: workload.Workload, hosts: int,
                   lines: figures.Lines) -> None:
    """Measure the full syncs of a running agent.

    :raises Void: when a full sync wrote although nothing differed
    """
    agent = agent_pass.Agent(running)
    try:
        before = load.check()
        seconds = agent.passes(PASSES)
        if load.check() != before:
            raise services.Void('The agent wrote although nothing differed')
    finally:
        agent.stop()
    name, longest = 'agent: full sync, s', LONGEST_PASS.get(hosts)
    lines.rows += [
        [name, figures.NONE, figures.spread(seconds, 2), figures.NONE,
         lines.verdict(name, '%g or less' % longest,
                       statistics.median(seconds) <= longest)
         if longest else figures.NONE],
        ['agent: RSS, MiB', figures.NONE,
         figures.spread([agent.resident_mib()]), *[figures.NONE] * 2]]


def measure(chosen: services.Services, hosts: int, pairs: int,
            ours_only: bool = False
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :param ours_only: without nova-manage
    """
    lines = figures.Lines()
    size = workload.Size(hosts, MEMBERSHIPS, AGGREGATES)
    with chosen.cloud(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        both = Sync(running, load)
        for state, run in ((COLD, both.cold), (WARM, both.warm)):
            lines.compare(state, figures.alternate(
                pairs, functools.partial(run, commands.OURS), None
                if ours_only else functools.partial(run, commands.STOCK)),
                FIGURES, _targets(hosts)[state])
        _measure_agent(running, load, hosts, lines)
    rows = [HEADER, *lines.rows]
    if ours_only:
        rows = [[row[column] for column in OURS] for row in rows]
    return [table.Table(
        '%d x %d hosts and memberships, %d aggregates, pairs of runs: %d' % (
            hosts, MEMBERSHIPS, AGGREGATES, pairs),
        rows[0], rows[1:])], lines.missed
