# SPDX-License-Identifier: Apache-2.0
"""This package's full sync and nova-manage's in a real cloud.

Both commands run in turn with the same keystone, placement and databases:
first with no provider in any aggregate, then with everything in sync. After
each run placement is compared with nova; a run that did not mirror everything,
or that wrote without a difference, stops the benchmark. The ratio is computed
per pair; above 1 this package is better. The bare requests of each state are
measured in turn with them, and after them the full syncs of a running agent.
"""

from collections import abc
import functools

from benchmarks import agent_pass
from benchmarks import commands
from benchmarks import figures
from benchmarks import floor
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud

AGGREGATES, MEMBERSHIPS = 20, 3
PASSES = 10
COLD, WARM = 'nothing mirrored', 'all in sync'
FIGURES = (figures.WALL, figures.CPU, figures.PLACEMENT_CPU, figures.PEAK,
           figures.REQUESTS)
AGENT_FIGURES = (
    figures.Figure('full sync, s', lambda run: run.seconds, 2),
    figures.Figure('RSS, MiB', lambda run: run.peak_mib))


class Sync:
    """Both commands and the bare requests, on the same cloud."""

    def __init__(self, running: cloud.Cloud, load: workload.Workload) -> None:
        self._load = load
        runner = commands.Commands(running)
        self.ours, self.theirs = (
            functools.partial(runner.sync, command)
            for command in (commands.OURS, commands.STOCK))
        self._floor = floor.Floor(running)

    def floor(self, cold: bool) -> figures.Run:
        """Send the bare requests."""
        return self._floor.sync(self._load.members, (
            self._load.wanted() if cold else {}))

    def cold(self, run: abc.Callable[[], figures.Run]) -> figures.Run:
        """Run one of these with nothing mirrored."""
        self._load.empty()
        figure = run()
        self._load.check()
        return figure

    def warm(self, run: abc.Callable[[], figures.Run]) -> figures.Run:
        """Run one of these with everything in sync."""
        before = self._load.check()
        figure = run()
        if self._load.check() != before:
            raise services.Void('A sync wrote although nothing differed')
        return figure


def _agent_syncs(running: cloud.Cloud, load: workload.Workload
                 ) -> list[figures.Run]:
    """Measure the full syncs of a running agent, and its memory."""
    agent = agent_pass.Agent(running)
    try:
        before = load.check()
        seconds = agent.passes(PASSES)
        if load.check() != before:
            raise services.Void('The agent wrote although nothing differed')
    finally:
        agent.stop()
    return [figures.Run(each, 0, 0, agent.resident_mib(), 0)
            for each in seconds]


def measure(hosts: int, pairs: int, ours_only: bool = False) -> str:
    """Run the benchmark, with or without nova-manage."""
    lines = figures.Lines('nova-manage')
    size = workload.Size(hosts, MEMBERSHIPS, AGGREGATES)
    with services.running(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        both = Sync(running, load)
        theirs = None if ours_only else both.theirs
        for state, run in ((COLD, both.cold), (WARM, both.warm)):
            lines.compare(state, figures.alternate(
                pairs, functools.partial(run, both.ours),
                theirs and functools.partial(run, theirs),
                functools.partial(run, functools.partial(
                    both.floor, state == COLD))), FIGURES)
        lines.compare('agent', [
            figures.Pair(each, floor=both.floor(False))
            for each in _agent_syncs(running, load)], AGENT_FIGURES)
    return lines.table(
        '%d x %d hosts and memberships, %d aggregates, pairs of runs: %d' % (
            hosts, MEMBERSHIPS, AGGREGATES, pairs))
