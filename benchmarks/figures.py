# SPDX-License-Identifier: Apache-2.0
"""Measured figures of runs, and the comparison of two commands."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from benchmarks import traffic

COLD = 'nothing mirrored'
WARM = 'all in sync'
HEADER = ('', 'nova-manage', 'this package', 'ratio', 'target')
OURS = (0, 2)
"""Columns of the table without nova-manage."""
NONE = ''
MET = 'met'


@dataclasses.dataclass(frozen=True)
class Run:
    """Figures of a single run of a command."""

    seconds: float
    cpu_seconds: float
    """CPU time of the process, user and system."""
    placement_cpu_seconds: float
    """CPU time of placement meanwhile, without its database."""
    peak_mib: float
    """Peak memory of the process."""
    requests: Mapping[str, int]
    """Requests by kind, see ``traffic``."""

    @property
    def placement_requests(self) -> int:
        """Number of requests, without those for a token or discovery."""
        return sum(self.requests[kind] for kind in traffic.PLACEMENT)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Consecutive runs of both implementations; ``theirs`` is optional.

    The values are ``Run``, or any type that the shown figures can read.
    """

    ours: Any
    theirs: Any = None


@dataclasses.dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    value: Callable[[Any], float]
    decimals: int = 0

    def spread(self, runs: Sequence[Any]) -> str:
        """Render the median and the range of all runs."""
        return spread([self.value(run) for run in runs if run],
                      self.decimals)

    def ratios(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the ratios of theirs to ours, where both are not 0."""
        values = [(self.value(pair.theirs), self.value(pair.ours))
                  for pair in pairs if pair.theirs]
        return [theirs / ours for theirs, ours in values if theirs and ours]


def _kind(kind: str) -> Figure:
    return Figure(kind, lambda run: run.requests[kind])


WALL = Figure('wall, s', lambda run: run.seconds, 1)
PEAK = Figure('peak RSS, MiB', lambda run: run.peak_mib)
REQUESTS = Figure('placement requests', lambda run: run.placement_requests)
FIGURES = (
    WALL,
    Figure('CPU, s', lambda run: run.cpu_seconds, 1),
    Figure('CPU of placement, s', lambda run: run.placement_cpu_seconds, 1),
    PEAK,
    REQUESTS,
    *map(_kind, (*traffic.PLACEMENT, traffic.TOKEN, traffic.DISCOVERY)))

Targets = Mapping[tuple[str, str], float]
"""Minimum of the median ratio, by state and name of the figure."""


def targets(hosts: int, memberships: int, aggregates: int) -> Targets:
    """Return the targets for a size; empty for sizes without targets."""
    warm = {(1000, 3, 20): (12, 100), (5000, 3, 20): (40, 500)}.get(
        (hosts, memberships, aggregates))
    if warm is None:
        return {}
    return {(COLD, WALL.name): 10, (COLD, PEAK.name): 1,
            (WARM, WALL.name): warm[0], (WARM, REQUESTS.name): warm[1],
            (WARM, PEAK.name): 1}


def spread(values: Sequence[float], decimals: int = 0) -> str:
    """Render the median, and the minimum and maximum if they differ."""
    if not values:
        return NONE
    median, least, greatest = (
        '%.*f' % (decimals, value) for value in (
            statistics.median(values), min(values), max(values)))
    if least == greatest:
        return median
    return '%s (%s to %s)' % (median, least, greatest)


def _decimals(ratios: Sequence[float]) -> int:
    # A ratio just below 1 must not be rounded to 1.
    return 2 if ratios and statistics.median(ratios) < 2 else 1


def rows(state: str, pairs: Sequence[Pair], wanted: Targets,
         shown: Sequence[Figure] = FIGURES
         ) -> tuple[list[list[str]], list[str]]:
    """Return the lines of the table for a state, and the missed targets.

    Figures that are 0 in all runs have no line.
    """
    lines, missed = [], []
    for figure in shown:
        runs = [run for pair in pairs for run in (pair.theirs, pair.ours)
                if run]
        if not any(map(figure.value, runs)):
            continue
        ratios = figure.ratios(pairs)
        target = wanted.get((state, figure.name)) if ratios else None
        verdict = NONE
        if target is not None:
            good = statistics.median(ratios) >= target
            verdict = '%g or more: %s' % (target, MET if good else 'MISSED')
            if not good:
                missed.append('%s: %s' % (state, figure.name))
        lines.append(['%s: %s' % (state, figure.name),
                      figure.spread([pair.theirs for pair in pairs]),
                      figure.spread([pair.ours for pair in pairs]),
                      spread(ratios, _decimals(ratios)), verdict])
    return lines, missed
