# SPDX-License-Identifier: Apache-2.0
"""What placing a server took, with stock nova and with ours side by side."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from benchmarks import figures

HEADER = ('', 'stock filters', 'this package', 'ratio', 'target')
STAGES_HEADER = ('', *HEADER[1:4], 'share of ours')
REST = 'all else'
FASTER = {2000: 10}
"""By number of hosts: so many times as fast ours is to be."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What one of several calls took."""

    seconds: float
    cpu_seconds: float
    """Of nova-scheduler, in user and system mode."""
    placement_cpu_seconds: float
    """Of placement meanwhile, without its database."""
    candidates: float
    """Hosts that placement returned."""
    right: float
    """Those of them that the flavor may have."""
    load: float
    """Of the machine, over the last minute."""
    stages: Mapping[str, float]
    """Seconds of each part."""


def run(answers: Sequence[Mapping[str, Any]], bound: frozenset[str],
        placement_cpu_seconds: float, load: float) -> Run:
    """The median call.

    :param answers: of ``scheduler_service``, one for each call
    :param placement_cpu_seconds: of all the calls together
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
RIGHT, LOAD = 'right hosts offered', 'load of the machine'
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
    """The lines of the table for a state, and the targets that are missed.

    :param bound: hosts that the flavor may have, of so many ``hosts``
    """
    wanted = {(state, WALL.name): FASTER[hosts]} if hosts in FASTER else {}
    lines, missed = figures.rows(state, pairs, wanted, FIGURES)
    verdict, failed = _all('%s: %s' % (state, RIGHT), bound, min(
        pair.ours.right for pair in pairs))
    for line in lines:
        # What is equal or not in our hands has no ratio.
        if line[0].endswith(RIGHT):
            line[-2:] = figures.NONE, verdict
        elif line[0].endswith(LOAD):
            line[-2] = figures.NONE
    return lines, missed + failed


def lone_row(state: str, stock: int, ours: int, asked: int
             ) -> tuple[list[str], list[str]]:
    """The line for aggregates of one host, and the target if it is missed."""
    name = '%s: found, of %d aggregates of one host' % (state, asked)
    verdict, missed = _all(name, asked, ours)
    return [name, str(stock), str(ours), figures.NONE, verdict], missed


def stage_rows(state: str, pairs: Sequence[figures.Pair]) -> list[list[str]]:
    """Where the time of a call goes; what nobody does has no line."""
    lines = []
    names = dict.fromkeys(
        name for pair in pairs for one in (pair.theirs, pair.ours)
        for name in one.stages if name != REST)
    for name in (*names, REST):
        figure = figures.Figure(
            name + ', ms',
            lambda one, name=name: one.stages.get(name, 0.0) * 1000, 1)
        # A median of the parts need not add up to that of the whole.
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
