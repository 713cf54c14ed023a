# SPDX-License-Identifier: Apache-2.0
"""Line charts of measured figures as SVG."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from xml.sax import saxutils

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 40, 60, 50
# Of the curves, in both modes of the page; each has a dash pattern, too.
KINDS = ('one', 'two', 'three', 'four', 'five', 'six')

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Axis:
    """A scale from 0 to ``high`` with its name and unit."""

    name: str
    high: float
    ticks: Sequence[float]

    def share(self, value: float) -> float:
        """Return where a value is on this axis, from 0 to 1."""
        return value / self.high


def linear(name: str, highest: float) -> Axis:
    """Return an axis from 0 with about five round ticks."""
    step = 10.0 ** math.floor(math.log10(highest or 1))
    for divisor in (1, 2, 5, 10):
        if highest / (step / divisor) >= 4:
            step /= divisor
            break
    count = math.ceil(highest / step)
    return Axis(name, count * step,
                [each * step for each in range(count + 1)])


def chart(title: str, across: Axis, up: Axis,
          curves: Mapping[str, Sequence[Point]],
          shades: Sequence[Point] = ()) -> list[str]:
    """Return the shapes of a chart, without a legend.

    :param curves: name to points
    :param shades: start and end of the spans that are shaded
    """
    if len(curves) > len(KINDS):
        raise ValueError('%s: only %d of %d curves could be told apart' % (
            title, len(KINDS), len(curves)))

    def x(value: float) -> float:
        return LEFT + across.share(value) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - up.share(value) * (HEIGHT - TOP - BOTTOM)

    shapes = ['<rect class="shade" x="%.1f" y="%d" width="%.1f" '
              'height="%d"/>' % (x(start), TOP, x(end) - x(start),
                                 HEIGHT - TOP - BOTTOM)
              for start, end in shades]
    for tick in up.ticks:
        shapes += ['<path class="grid" d="M%d,%.1f L%d,%.1f"/>' % (
            LEFT, y(tick), WIDTH - RIGHT, y(tick)),
            text(LEFT - 8, y(tick) + 5, number(tick), 'end')]
    for tick in across.ticks:
        shapes += ['<path class="grid" d="M%.1f,%d L%.1f,%d"/>' % (
            x(tick), TOP, x(tick), HEIGHT - BOTTOM),
            text(x(tick), HEIGHT - BOTTOM + 20, number(tick))]
    shapes += [text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8,
                    across.name),
               text(LEFT - 40, TOP - 12, up.name, 'start'),
               text(WIDTH / 2, 20, title)]
    return shapes + [
        '<path class="curve %s" d="M%s"/>' % (kind, ' L'.join(
            '%.1f,%.1f' % (x(one), y(two)) for one, two in points))
        for kind, points in zip(KINDS, curves.values())]


def legend(names: Sequence[str]) -> list[str]:
    """Return the names of curves in one line above a chart, at the right."""
    start, shapes = WIDTH - RIGHT - sum(50 + 8 * len(name)
                                        for name in names), []
    for kind, name in zip(KINDS, names):
        shapes += named(kind, name, start, TOP - 12)
        start += 50 + 8 * len(name)
    return shapes


def named(kind: str, name: str, left: float, top: float) -> list[str]:
    """Return the name of a curve, and a piece of it."""
    return ['<path class="curve %s" d="M%d,%d l24,0"/>' % (
        kind, left, top - 5), text(left + 30, top, name, 'start')]


def number(value: float) -> str:
    """Return a value as people write it."""
    return format(int(value), ',') if value >= 1 else '%g' % value


def text(left: float, top: float, said: str, anchor: str = 'middle') -> str:
    """Return a text."""
    return '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (
        left, top, anchor, saxutils.escape(said))
