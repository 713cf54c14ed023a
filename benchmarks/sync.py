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

from benchmarks import agent_pass
from benchmarks import commands
from benchmarks import figures
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud

AGGREGATES, MEMBERSHIPS = 20, 3
PASSES = 10
COLD, WARM = 'nothing mirrored', 'all in sync'
HEADER = ('', 'nova-manage', 'this package', 'ratio')
OURS = (0, 2)
"""Columns of the table without nova-manage."""
FIGURES = (figures.WALL, figures.CPU, figures.PLACEMENT_CPU, figures.PEAK,
           figures.REQUESTS)


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


def _measure_agent(running: cloud.Cloud, load: workload.Workload,
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
    lines.rows += [
        ['agent: full sync, s', figures.NONE, figures.spread(seconds, 2),
         figures.NONE],
        ['agent: RSS, MiB', figures.NONE,
         figures.spread([agent.resident_mib()]), figures.NONE]]


def measure(hosts: int, pairs: int, ours_only: bool = False) -> str:
    """Run the benchmark.

    :param ours_only: without nova-manage
    """
    lines = figures.Lines()
    size = workload.Size(hosts, MEMBERSHIPS, AGGREGATES)
    with services.running(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        both = Sync(running, load)
        for state, run in ((COLD, both.cold), (WARM, both.warm)):
            lines.compare(state, figures.alternate(
                pairs, functools.partial(run, commands.OURS), None
                if ours_only else functools.partial(run, commands.STOCK)),
                FIGURES)
        _measure_agent(running, load, lines)
    rows = [HEADER, *lines.rows]
    if ours_only:
        rows = [[row[column] for column in OURS] for row in rows]
    return figures.table(
        '%d x %d hosts and memberships, %d aggregates, pairs of runs: %d' % (
            hosts, MEMBERSHIPS, AGGREGATES, pairs),
        rows[0], rows[1:])
