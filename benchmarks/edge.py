# SPDX-License-Identifier: Apache-2.0
"""Full syncs of an edge site, which has more aggregates than compute nodes.

The agent, nova-manage and the bare requests run in turn on the same cloud,
with everything in sync. Each time the agent is a new process, and its figures
are those of a full sync after its first one, in which it learns how many
providers placement has. A sync that wrote, or that sent more than
``MOST_REQUESTS``, stops the benchmark.
"""

from collections import abc
import functools

from benchmarks import agent_pass
from benchmarks import figures
from benchmarks import floor
from benchmarks import services
from benchmarks import sync
from benchmarks import workload
from tests.cloud import cloud

PASSES = 10
MOST_REQUESTS = 10
"""Requests of a full sync, with up to 8 compute nodes."""
FIGURES = (
    figures.REQUESTS,
    figures.Figure('CPU of placement, s',
                   lambda run: run.placement_cpu_seconds, 3))


def agent_syncs(running: cloud.Cloud) -> figures.Run:
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
    return figures.Run(
        figures.UNKNOWN, figures.UNKNOWN, cpu / passes, figures.UNKNOWN,
        requests / passes)


def measure(compute_nodes: int, used: int, aggregates: int, pairs: int) -> str:
    """Run the benchmark; ``used`` is how many aggregates have hosts."""
    lines = figures.Lines('nova-manage')
    size = workload.Size(compute_nodes, used - compute_nodes + 1, aggregates)
    with services.running(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        commands, bare = sync.Sync(running, load), floor.Floor(running)
        # Its first full sync that succeeds has mirrored everything.
        agent_pass.Agent(running).stop()

        def in_sync(run: abc.Callable[[], figures.Run]
                    ) -> abc.Callable[[], figures.Run]:
            return functools.partial(commands.warm, run)

        lines.compare('full sync', figures.alternate(
            pairs, in_sync(functools.partial(agent_syncs, running)),
            in_sync(commands.theirs), in_sync(functools.partial(
                bare.read_each, load.wanted()))), FIGURES)
    return lines.table(
        '%d compute nodes, %d aggregates of which %d have hosts, pairs of '
        'runs: %d' % (compute_nodes, aggregates, used, pairs))
