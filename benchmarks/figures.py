# SPDX-License-Identifier: Apache-2.0
"""Measured figures of runs, and the comparison of two commands."""

from collections import abc
import dataclasses
import statistics
from typing import Any

from tests.cloud import output

NONE = ''


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
    """Consecutive runs of both implementations; ``theirs`` is optional.

    The values are ``Run``, or any type that the shown figures can read.
    """

    ours: Any
    theirs: Any = None


def alternate(count: int, ours: abc.Callable[[], Any],
              theirs: abc.Callable[[], Any] | None = None) -> list[Pair]:
    """Run both in turn, in the order A B B A.

    Gradual changes of the load thus affect both alike.
    """
    pairs = []
    order = [each for each in (theirs, ours) if each]
    for _pair in range(count):
        runs = {run: run() for run in order}
        pairs.append(Pair(runs[ours], runs.get(theirs)))
        order.reverse()
    return pairs


@dataclasses.dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    value: abc.Callable[[Any], float]
    decimals: int = 0

    def spread(self, runs: abc.Sequence[Any]) -> str:
        """Render the median and the range of all runs."""
        return spread([self.value(run) for run in runs if run],
                      self.decimals)

    def ratios(self, pairs: abc.Sequence[Pair]) -> list[float]:
        """Return the ratios of theirs to ours, where both are not 0."""
        values = [(self.value(pair.theirs), self.value(pair.ours))
                  for pair in pairs if pair.theirs]
        return [theirs / ours for theirs, ours in values if theirs and ours]


WALL = Figure('wall, s', lambda run: run.seconds, 1)
CPU = Figure('CPU, s', lambda run: run.cpu_seconds, 1)
PLACEMENT_CPU = Figure('CPU of placement, s',
                       lambda run: run.placement_cpu_seconds, 1)
PEAK = Figure('peak RSS, MiB', lambda run: run.peak_mib)
REQUESTS = Figure('placement requests', lambda run: run.placement_requests)


def spread(values: abc.Sequence[float], decimals: int = 0) -> str:
    """Render the median, and the minimum and maximum if they differ."""
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
    """The lines of a table: name, theirs, ours and ratio."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    def compare(self, state: str, pairs: abc.Sequence[Pair],
                shown: abc.Sequence[Figure]) -> None:
        """Add a line for each figure that is not 0 in all runs."""
        for figure in shown:
            runs = [run for pair in pairs for run in (pair.theirs, pair.ours)
                    if run]
            if not any(map(figure.value, runs)):
                continue
            ratios = figure.ratios(pairs)
            self.rows.append([
                '%s: %s' % (state, figure.name),
                figure.spread([pair.theirs for pair in pairs]),
                figure.spread([pair.ours for pair in pairs]),
                # A ratio just below 1 must not be rounded to 1.
                spread(ratios, 2 if ratios and statistics.median(
                    ratios) < 2 else 1)])
