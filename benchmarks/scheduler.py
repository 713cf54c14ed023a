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

If there are more hosts than placement may return, both are also asked for the
hosts of single-host aggregates, from the first host to the last.
"""

from collections.abc import Sequence
import functools

from benchmarks import figures
from benchmarks import fleet
from benchmarks import placing
from benchmarks import schedulers
from benchmarks import services
from benchmarks import table
from tests.cloud import cloud

PLACEMENT_LIMIT = 1000
"""Nova's default of max_placement_results."""
UNTRACKED = ', instances not tracked'
FASTER = {2000: 10}
"""Minimum ratio of the wall time, by number of hosts."""
HEADER = ('', 'stock filters', 'this package', 'ratio', 'target')
STAGES_HEADER = (*HEADER[:4], 'share of ours')


def _add(lines: figures.Lines, state: str, pairs: Sequence[figures.Pair],
         hosts: int) -> None:
    """Add the lines of a state."""
    before = len(lines.rows)
    lines.compare(state, pairs, placing.FIGURES, {
        placing.WALL.name: FASTER[hosts]} if hosts in FASTER else {})
    for line in lines.rows[before:]:
        # No ratio for figures that must be equal or are external.
        if line[0].endswith(placing.RIGHT):
            line[-2:] = figures.NONE, lines.verdict(
                line[0], 'all %d' % fleet.BOUND,
                min(pair.ours.right for pair in pairs) == fleet.BOUND)
        elif line[0].endswith(placing.LOAD):
            line[-2] = figures.NONE


def _measure_size(running: cloud.Cloud, seeded: fleet.Fleet, tracked: bool,
                  pairs: int, calls: int, lines: figures.Lines,
                  stages: figures.Lines) -> None:
    hosts = len(seeded.nodes)
    state = '%d hosts%s' % (hosts, '' if tracked else UNTRACKED)
    with schedulers.started(running, seeded, tracked) as both:
        ours, stock = both[schedulers.OURS], both[schedulers.STOCK]
        measured = figures.alternate(
            pairs, functools.partial(ours.measure, calls),
            functools.partial(stock.measure, calls))
        _add(lines, state, measured, hosts)
        if tracked and hosts > PLACEMENT_LIMIT:
            name = '%s: found, of %d single-host aggregates' % (
                state, fleet.LONE)
            lines.rows.append([
                name, str(stock.found()), str(ours.found()), figures.NONE])
            lines.rows[-1].append(lines.verdict(
                name, 'all %d' % fleet.LONE,
                lines.rows[-1][2] == str(fleet.LONE)))
    placing.add_stages(stages, state, measured)


def measure(chosen: services.Services, sizes: Sequence[int], pairs: int,
            calls: int) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :param sizes: numbers of hosts, ascending; the stages are of the last
    """
    lines = figures.Lines()
    for hosts in sizes:
        stages = figures.Lines()
        with chosen.cloud() as running:
            seeded = fleet.seeded(running, hosts)
            for tracked in (True, False):
                _measure_size(running, seeded, tracked, pairs, calls, lines,
                              stages)
    return [table.Table(
        'A flavor bound to %d hosts, pairs of %d calls: %d' % (
            fleet.BOUND, calls, pairs), HEADER, lines.rows),
            table.Table('Time of a call by stage', STAGES_HEADER,
                        stages.rows)], lines.missed
