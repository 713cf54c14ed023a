# SPDX-License-Identifier: Apache-2.0
"""This package's full sync and nova-manage's in a real cloud.

Both commands run in turn with the same keystone, placement and databases:
first with no provider in any aggregate, then with everything in sync. After
each run placement is compared with nova; a run that did not mirror everything,
or that wrote without a difference, stops the benchmark. The ratio is computed
per pair; above 1 this package is better. The bare requests of each state are
measured in turn with them, and after them the full syncs of a running agent.

An edge site has more aggregates than compute nodes. There everything is in
sync, and the agent is a new process each time, whose figures are those of a
full sync after its first one, in which it learns how many providers placement
has. A sync that sent more than ``MOST_REQUESTS`` stops the benchmark, too.
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
MOST_REQUESTS = 10
"""Requests of a full sync, with up to 8 compute nodes."""
COLD, WARM = 'nothing mirrored', 'all in sync'
FIGURES = (figures.WALL, figures.CPU, figures.PLACEMENT_CPU, figures.PEAK,
           figures.REQUESTS)
AGENT_FIGURES = (figures.Figure('full sync, s', lambda run: run.seconds, 2),
                 figures.Figure('RSS, MiB', lambda run: run.peak_mib))
EDGE_FIGURES = (
    figures.REQUESTS,
    figures.Figure('CPU of placement, s',
                   lambda run: run.placement_cpu_seconds, 3))


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


def _mean_agent_sync(running: cloud.Cloud) -> figures.Run:
    """Return the mean of an agent's full syncs after the first."""
    placement = running.process('placement')
    counter = floor.Traffic(running.state.log('placement'))
    agent = agent_pass.Agent(running)
    try:
        first, cpu = agent.read().count, placement.cpu_seconds()
        counter.since()
        agent.passes(PASSES)
        requests = len(counter.since())
        cpu = placement.cpu_seconds() - cpu
        passes = agent.read().count - first
    finally:
        agent.stop()
    if requests > MOST_REQUESTS * passes:
        raise services.Void('The agent sent %d requests in %d full syncs' % (
            requests, passes))
    return figures.Run(figures.UNKNOWN, figures.UNKNOWN, cpu / passes,
                       figures.UNKNOWN, requests / passes)


def measure_edge(compute_nodes: int, used: int, aggregates: int, pairs: int
                 ) -> str:
    """Run the benchmark; ``used`` is how many aggregates have hosts."""
    lines = figures.Lines('nova-manage')
    size = workload.Size(compute_nodes, used - compute_nodes + 1, aggregates)
    with services.running(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        both, bare = Sync(running, load), floor.Floor(running)
        # Its first full sync that succeeds has mirrored everything.
        agent_pass.Agent(running).stop()

        def in_sync(run: abc.Callable[[], figures.Run]
                    ) -> abc.Callable[[], figures.Run]:
            return functools.partial(both.warm, run)

        lines.compare('full sync', figures.alternate(
            pairs, in_sync(functools.partial(_mean_agent_sync, running)),
            in_sync(both.theirs), in_sync(functools.partial(
                bare.read_each, load.wanted()))), EDGE_FIGURES)
    return lines.table(
        '%d compute nodes, %d aggregates of which %d have hosts, pairs of '
        'runs: %d' % (compute_nodes, aggregates, used, pairs))
