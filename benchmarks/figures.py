# SPDX-License-Identifier: Apache-2.0
"""What a run took, and what the runs of two commands say side by side."""

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
"""The columns that there are without nova-manage."""
NONE = ''
MET = 'met'


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run of a command took."""

    seconds: float
    cpu_seconds: float
    """Of the process itself, in user and system mode."""
    placement_cpu_seconds: float
    """Of placement meanwhile, without its database."""
    peak_mib: float
    """The most memory that it had at once."""
    requests: Mapping[str, int]
    """By kind, see ``traffic``."""

    @property
    def placement_requests(self) -> int:
        """Without those for a token or for discovery."""
        return sum(self.requests[kind] for kind in traffic.PLACEMENT)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Both of them, one right after the other; theirs may be left out.

    They are ``Run``, or whatever else the figures that are shown read.
    """

    ours: Any
    theirs: Any = None


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: Callable[[Any], float]
    decimals: int = 0

    def spread(self, runs: Sequence[Any]) -> str:
        """The median of all runs, and from which to which they go."""
        return spread([self.value(run) for run in runs if run],
                      self.decimals)

    def ratios(self, pairs: Sequence[Pair]) -> list[float]:
        """Theirs to ours, pair by pair, where both have something."""
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
"""By state and name of the figure: what the median ratio is to reach."""


def targets(hosts: int, memberships: int, aggregates: int) -> Targets:
    """The targets for a size; none where nobody has set any."""
    warm = {(1000, 3, 20): (12, 100), (5000, 3, 20): (40, 500)}.get(
        (hosts, memberships, aggregates))
    if warm is None:
        return {}
    return {(COLD, WALL.name): 10, (COLD, PEAK.name): 1,
            (WARM, WALL.name): warm[0], (WARM, REQUESTS.name): warm[1],
            (WARM, PEAK.name): 1}


def spread(values: Sequence[float], decimals: int = 0) -> str:
    """Render the median, and the least and the greatest if they differ."""
    if not values:
        return NONE
    median, least, greatest = (
        '%.*f' % (decimals, value) for value in (
            statistics.median(values), min(values), max(values)))
    if least == greatest:
        return median
    return '%s (%s to %s)' % (median, least, greatest)


def _decimals(ratios: Sequence[float]) -> int:
    # What is just below 1 is not to look as if it were 1.
    return 2 if ratios and statistics.median(ratios) < 2 else 1


def rows(state: str, pairs: Sequence[Pair], wanted: Targets,
         shown: Sequence[Figure] = FIGURES
         ) -> tuple[list[list[str]], list[str]]:
    """The lines of the table for one state, and the targets that are missed.

    A kind of request that nobody made has no line.
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
