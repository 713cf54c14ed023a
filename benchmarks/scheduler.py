# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler with stock filters and with this package.

A flavor is bound to an aggregate of 20 hosts by an extra spec. Two real
nova-scheduler processes with nova's select_destinations share a keystone, a
placement and nova's databases: the first with nova's default filters and
AggregateInstanceExtraSpecsFilter, the second with these and this package's
request filter and guard. They are called in turn, several times each, and with
them the bare request of this package for candidates. The ratio is computed per
pair; above 1 this package is better.

Each size is measured twice: with nova-computes that report their instances to
nova-scheduler, which is nova's default, and without, as with a message queue
per cell ([filter_scheduler] track_instance_changes).
"""

from collections import abc
import functools
import statistics

from benchmarks import figures
from benchmarks import fleet
from benchmarks import floor
from benchmarks import schedulers
from benchmarks import services
from tests.cloud import cloud

UNTRACKED = ', instances not tracked'
WALL = figures.Figure('wall, ms', lambda median: median.seconds * 1000)
FIGURES = (
    WALL,
    figures.Figure('CPU of nova-scheduler, ms',
                   lambda median: median.cpu_seconds * 1000),
    figures.Figure('CPU of placement, ms',
                   lambda median: median.placement_cpu_seconds * 1000),
    figures.Figure('candidates', lambda median: median.candidates),
    figures.Figure('suitable hosts offered', lambda median: median.right,
                   compared=False))


class Bare:
    """The requests of a nova-scheduler that only read."""

    def __init__(self, running: cloud.Cloud, ours: schedulers.Scheduler,
                 suitable: int) -> None:
        self._floor = floor.Floor(running)
        self._suitable = suitable
        log = floor.Traffic(running.state.log('placement'))
        ours.measure(1)
        self._requests = log.since()

    def measure(self, calls: int) -> schedulers.Median:
        """Send the requests of so many calls."""
        runs = [self._floor.repeat(self._requests) for _call in range(calls)]
        return schedulers.Median(
            statistics.median(run.seconds for run in runs), figures.UNKNOWN,
            statistics.mean(run.placement_cpu_seconds for run in runs),
            self._suitable, figures.UNKNOWN)


def measure(sizes: abc.Sequence[int], pairs: int, calls: int) -> str:
    """Run the benchmark."""
    lines = figures.Lines('stock filters')
    for hosts in sizes:
        with services.running() as running:
            seeded = fleet.seeded(running, hosts)
            for tracked, state in (True, ''), (False, UNTRACKED):
                with schedulers.started(running, seeded, tracked) as both:
                    ours, stock = both[schedulers.OURS], both[schedulers.STOCK]
                    bare = Bare(running, ours, len(seeded.bound))
                    lines.compare(
                        '%d hosts%s' % (hosts, state), figures.alternate(
                            pairs, *(functools.partial(one.measure, calls)
                                     for one in (ours, stock, bare))), FIGURES)
    return lines.table('A flavor bound to %d hosts, pairs of %d calls: %d' % (
        fleet.BOUND, calls, pairs))
