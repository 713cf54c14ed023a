# SPDX-License-Identifier: Apache-2.0
"""Comparison of scheduling with stock nova and with this package."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from benchmarks import figures

HEADER = ('', 'stock filters', 'this package', 'ratio', 'target')
STAGES_HEADER = ('', *HEADER[1:4], 'share of ours')
REST = 'other'
FASTER = {2000: 10}
"""Minimum ratio of the wall time, by number of hosts."""


@dataclasses.dataclass(frozen=True)
class Run:
    """Figures of the median call."""

    seconds: float
    cpu_seconds: float
    """CPU time of nova-scheduler, user and system."""
    placement_cpu_seconds: float
    """CPU time of placement meanwhile, without its database."""
    candidates: float
    """Number of hosts that placement returned."""
    right: float
    """Number of candidates that the flavor may use."""
    load: float
    """Load average of the machine in the last minute."""
    stages: Mapping[str, float]
    """Seconds by stage."""


def run(answers: Sequence[Mapping[str, Any]], bound: frozenset[str],
        placement_cpu_seconds: float, load: float) -> Run:
    """Compute the figures of the median call.

    :param answers: responses of ``scheduler_service``, one per call
    :param placement_cpu_seconds: CPU time of all calls together
    """
    def median(name: str) -> float:
        return statistics.median(answer[name] for answer in answers)

    names = dict.fromkeys(
        name for answer in answers for name in answer['stages'])
    stages = {name: statistics.median(
        answer['stages'].get(name, 0.0) for answer in answers)
        for name in names}
    stages[REST] = statistics.median(
        answer['seconds'] - sum(answer['stages'].values())
        for answer in answers)
    return Run(
        median('seconds'), median('cpu_seconds'),
        placement_cpu_seconds / len(answers),
        statistics.median(len(answer['candidates']) for answer in answers),
        statistics.median(len(bound.intersection(answer['candidates']))
                          for answer in answers), load, stages)


WALL = figures.Figure('wall, ms', lambda one: one.seconds * 1000)
RIGHT, LOAD = 'suitable hosts offered', 'load of the machine'
FIGURES = (
    WALL,
    figures.Figure('CPU of nova-scheduler, ms',
                   lambda one: one.cpu_seconds * 1000),
    figures.Figure('CPU of placement, ms',
                   lambda one: one.placement_cpu_seconds * 1000),
    figures.Figure('candidates', lambda one: one.candidates),
    figures.Figure(RIGHT, lambda one: one.right),
    figures.Figure(LOAD, lambda one: one.load, 1))


def rows(state: str, pairs: Sequence[figures.Pair], bound: int, hosts: int
         ) -> tuple[list[list[str]], list[str]]:
    """Return the lines of the table for a state, and the missed targets.

    :param bound: number of hosts that the flavor may use, of ``hosts``
    """
    wanted = {(state, WALL.name): FASTER[hosts]} if hosts in FASTER else {}
    lines, missed = figures.rows(state, pairs, wanted, FIGURES)
    verdict, failed = _all('%s: %s' % (state, RIGHT), bound, min(
        pair.ours.right for pair in pairs))
    for line in lines:
        # No ratio for figures that must be equal or are external.
        if line[0].endswith(RIGHT):
            line[-2:] = figures.NONE, verdict
        elif line[0].endswith(LOAD):
            line[-2] = figures.NONE
    return lines, missed + failed


def lone_row(state: str, stock: int, ours: int, asked: int
             ) -> tuple[list[str], list[str]]:
    """Return the line for single-host aggregates, and the missed targets."""
    name = '%s: found, of %d single-host aggregates' % (state, asked)
    verdict, missed = _all(name, asked, ours)
    return [name, str(stock), str(ours), figures.NONE, verdict], missed


def stage_rows(state: str, pairs: Sequence[figures.Pair]) -> list[list[str]]:
    """Return the lines of the time per stage, for stages that ran."""
    lines = []
    names = dict.fromkeys(
        name for pair in pairs for one in (pair.theirs, pair.ours)
        for name in one.stages if name != REST)
    for name in (*names, REST):
        figure = figures.Figure(
            name + ', ms',
            lambda one, name=name: one.stages.get(name, 0.0) * 1000, 1)
        # The medians of the stages need not add up to that of the call.
        share = statistics.median(
            pair.ours.stages.get(name, 0.0) / pair.ours.seconds
            for pair in pairs)
        line, = figures.rows(state, pairs, {}, [figure])[0]
        lines.append([*line[:-1], '%.1f %%' % (share * 100)])
    return lines


def _all(name: str, wanted: int, found: float) -> tuple[str, list[str]]:
    good = found == wanted
    return ('all %d: %s' % (wanted, 'met' if good else 'MISSED'),
            [] if good else [name])
