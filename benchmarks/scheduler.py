# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler with stock filters and with this package.

A flavor is bound to an aggregate of 20 hosts by an extra spec. Two real
nova-scheduler processes with nova's select_destinations share a keystone, a
placement and nova's databases: the first with nova's default filters and
AggregateInstanceExtraSpecsFilter, the second with these and this package's
request filter and guard. They are called in turn, several times each. The
ratio is computed per pair; above 1 this package is better.

Each size is measured twice: with nova-computes that report their instances to
nova-scheduler, which is nova's default, and without, as with a message queue
per cell ([filter_scheduler] track_instance_changes).
"""

from collections import abc
import functools

from benchmarks import figures
from benchmarks import fleet
from benchmarks import schedulers
from benchmarks import services

UNTRACKED = ', instances not tracked'
HEADER = ('', 'stock filters', 'this package', 'ratio')
WALL = figures.Figure('wall, ms', lambda median: median.seconds * 1000)
RIGHT = 'suitable hosts offered'
FIGURES = (
    WALL,
    figures.Figure('CPU of nova-scheduler, ms',
                   lambda median: median.cpu_seconds * 1000),
    figures.Figure('CPU of placement, ms',
                   lambda median: median.placement_cpu_seconds * 1000),
    figures.Figure('candidates', lambda median: median.candidates),
    figures.Figure(RIGHT, lambda median: median.right))


def _add(lines: figures.Lines, state: str, pairs: abc.Sequence[figures.Pair]
         ) -> None:
    """Add the lines of a state."""
    lines.compare(state, pairs, FIGURES)
    for line in lines.rows:
        # No ratio for figures that must be equal.
        if line[0] == '%s: %s' % (state, RIGHT):
            line[-1] = figures.NONE


def measure(sizes: abc.Sequence[int], pairs: int, calls: int) -> str:
    """Run the benchmark.

    :param sizes: numbers of hosts
    """
    lines = figures.Lines()
    for hosts in sizes:
        with services.running() as running:
            seeded = fleet.seeded(running, hosts)
            for tracked, state in (True, ''), (False, UNTRACKED):
                with schedulers.started(running, seeded, tracked) as both:
                    _add(lines, '%d hosts%s' % (hosts, state),
                         figures.alternate(pairs, *(
                             functools.partial(both[name].measure, calls)
                             for name in (schedulers.OURS, schedulers.STOCK)
                         )))
    return figures.table(
        'A flavor bound to %d hosts, pairs of %d calls: %d' % (
            fleet.BOUND, calls, pairs), HEADER, lines.rows)
