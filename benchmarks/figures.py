# SPDX-License-Identifier: Apache-2.0
"""Measured figures of runs, and the comparison of two commands."""

from collections import abc
import dataclasses
import math
import statistics
from typing import Any

from tests.cloud import output

NONE = ''
UNKNOWN = math.nan
"""A figure that a run does not have."""


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
    placement_requests: int
    """Number of requests, without those for a token or discovery."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """Consecutive runs, and the bare requests: what the figures can read."""

    ours: Any
    theirs: Any = None
    floor: Any = None


def alternate(count: int, ours: abc.Callable[[], Any],
              theirs: abc.Callable[[], Any] | None,
              floor: abc.Callable[[], Any]) -> list[Pair]:
    """Run all in the order A B C C B A: the load affects all alike."""
    pairs = []
    order = [each for each in (theirs, ours, floor) if each]
    for _pair in range(count):
        runs = {run: run() for run in order}
        pairs.append(Pair(runs[ours], runs.get(theirs), runs[floor]))
        order.reverse()
    return pairs


@dataclasses.dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    value: abc.Callable[[Any], float]
    decimals: int = 0
    compared: bool = True
    """Whether it has ratios."""

    def spread(self, runs: abc.Iterable[Any]) -> str:
        """Render the median and the range of all runs."""
        return spread([self.value(run) for run in runs if run], self.decimals)

    def ratio(self, runs: abc.Iterable[tuple[Any, Any]]) -> str:
        """Render the ratios of the first to the second of each two runs."""
        values = [(self.value(one), self.value(other))
                  for one, other in runs
                  if one and other and self.compared]
        ratios = [one / other for one, other in values
                  if one and other and not math.isnan(one / other)]
        # A ratio just below 1 must not be rounded to 1.
        return spread(ratios, 2 if ratios and statistics.median(
            ratios) < 2 else 1)


WALL = Figure('wall, s', lambda run: run.seconds, 1)
CPU = Figure('CPU, s', lambda run: run.cpu_seconds, 1)
PLACEMENT_CPU = Figure('CPU of placement, s',
                       lambda run: run.placement_cpu_seconds, 1)
PEAK = Figure('peak RSS, MiB', lambda run: run.peak_mib)
REQUESTS = Figure('placement requests', lambda run: run.placement_requests)


def spread(values: abc.Sequence[float], decimals: int = 0) -> str:
    """Render the median, and the minimum and maximum if they differ."""
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return NONE
    median, least, greatest = (
        '%.*f' % (decimals, value) for value in (
            statistics.median(values), min(values), max(values)))
    if least == greatest:
        return median
    return '%s (%s to %s)' % (median, least, greatest)


def table(title: str, header: abc.Sequence[str],
          rows: abc.Iterable[abc.Sequence[str]]) -> str:
    """Render a table with a title."""
    return '%s\n%s' % (title, output.columns([header, *rows]))


class Lines:
    """Lines of a table: name, theirs, ours, bare requests, and ratios."""

    def __init__(self, theirs: str, ours: str = 'this package') -> None:
        self._header = ['', theirs, ours, 'ratio', 'bare requests',
                        'ratio to them']
        self.rows: list[list[str]] = []

    def table(self, title: str) -> str:
        """Render the columns that are not empty."""
        rows = [self._header, *self.rows]
        header, *shown = zip(*(
            column for column in zip(*rows, strict=True) if any(column[1:])),
            strict=True)
        return table(title, header, shown)

    def compare(self, state: str, pairs: abc.Sequence[Pair],
                shown: abc.Sequence[Figure]) -> None:
        """Add a line for each figure that is not 0 in all runs."""
        for figure in shown:
            runs = [run for pair in pairs for run in (pair.theirs, pair.ours)
                    if run]
            if not any(map(figure.value, runs)):
                continue
            self.rows.append([
                '%s: %s' % (state, figure.name),
                figure.spread(pair.theirs for pair in pairs),
                figure.spread(pair.ours for pair in pairs),
                figure.ratio((pair.theirs, pair.ours) for pair in pairs),
                figure.spread(pair.floor for pair in pairs),
                figure.ratio((pair.ours, pair.floor) for pair in pairs)])
