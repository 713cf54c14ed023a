# SPDX-License-Identifier: Apache-2.0
"""Figures of scheduling calls."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from benchmarks import figures

REST = 'other'


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


WALL = figures.Figure('wall, ms', lambda run: run.seconds * 1000)
RIGHT, LOAD = 'suitable hosts offered', 'load of the machine'
FIGURES = (
    WALL,
    figures.Figure('CPU of nova-scheduler, ms',
                   lambda run: run.cpu_seconds * 1000),
    figures.Figure('CPU of placement, ms',
                   lambda run: run.placement_cpu_seconds * 1000),
    figures.Figure('candidates', lambda run: run.candidates),
    figures.Figure(RIGHT, lambda run: run.right),
    figures.Figure(LOAD, lambda run: run.load, 1))


def add_stages(lines: figures.Lines, state: str,
               pairs: Sequence[figures.Pair]) -> None:
    """Add the time per stage, with its share instead of a target."""
    names = dict.fromkeys(
        name for pair in pairs for each in (pair.theirs, pair.ours)
        for name in each.stages if name != REST)
    for name in (*names, REST):
        before = len(lines.rows)
        lines.compare(state, pairs, [figures.Figure(
            name + ', ms',
            lambda run, name=name: run.stages.get(name, 0.0) * 1000, 1)])
        # The medians of the stages need not add up to that of the call.
        share = statistics.median(
            pair.ours.stages.get(name, 0.0) / pair.ours.seconds
            for pair in pairs)
        for line in lines.rows[before:]:
            line[-1] = '%.1f %%' % (share * 100)
