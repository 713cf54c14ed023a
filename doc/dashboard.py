# SPDX-License-Identifier: Apache-2.0
"""Four panels of Grafana's dashboard as SVG, with answers of a Prometheus."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import json
import math
import pathlib
from xml.sax import saxutils

ROOT = pathlib.Path(__file__).parents[1]
DASHBOARD = ROOT / 'etc' / 'grafana' / 'nova-aggregate-mirror.json'
ANSWERS = ROOT / 'doc/source/admin/operations/dashboard.csv'
# Two in a row.
TITLES = ('Pending operations', 'Oldest pending operation',
          'Time since the last success', 'Drift by zone')
WIDTH, HEIGHT = 480, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 55, 105
# A line of the legend, which has the names of two curves.
LINE = 20
# Of the curves, in both modes of the page; each has a dash pattern, too.
KINDS = ('one', 'two', 'three', 'four', 'five', 'six')

Curves = Mapping[str, Sequence[tuple[float, float]]]


def picture() -> tuple[float, float, Iterator[str]]:
    """Return the width and height of the panels, and their shapes."""
    rows = math.ceil(len(TITLES) / 2)
    return 2 * WIDTH, rows * HEIGHT, _panels()


def _panels() -> Iterator[str]:
    units = {panel['title']: panel['fieldConfig']['defaults']['unit']
             for panel in json.loads(DASHBOARD.read_text())['panels']}
    answers = _read()
    for number, title in enumerate(TITLES):
        unit = units[title].replace('short', '')
        row, column = divmod(number, 2)
        yield '<svg x="%d" y="%d" width="%d" height="%d">' % (
            column * WIDTH, row * HEIGHT, WIDTH, HEIGHT)
        yield from _chart(title, unit, answers[title])
        yield '</svg>'


def _read() -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Read the answers: the title of a panel, the name of a curve, points."""
    answers: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with ANSWERS.open() as file:
        for row in csv.DictReader(file):
            answers.setdefault(row['panel'], {}).setdefault(
                row['series'], []).append(
                    (float(row['seconds']), float(row['value'])))
    return answers


def _chart(title: str, unit: str, curves: Curves) -> Iterator[str]:
    """Return a chart that ends with the last point, and its legend."""
    points = [point for curve in curves.values() for point in curve]
    last, highest = (max(values) for values in zip(*points))
    step = _step(highest)
    top = step * math.ceil(highest / step)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(seconds: float) -> float:
        return LEFT + seconds / last * (right - LEFT)

    def up(value: float) -> float:
        return bottom - value / top * (bottom - TOP)

    yield _text(WIDTH / 2, 20, title)
    yield _text(LEFT - 40, TOP - 15, unit, 'start')
    yield _text((LEFT + right) / 2, bottom + 40, 'seconds')
    for tick in _ticks(top, step):
        yield _line('grid', LEFT, up(tick), right - LEFT, 0)
        yield _text(LEFT - 8, up(tick) + 5, '%g' % tick, 'end')
    for tick in _ticks(last, _step(last)):
        yield _line('grid', across(tick), TOP, 0, bottom - TOP)
        yield _text(across(tick), bottom + 20, '%g' % tick)
    for number, (name, curve) in enumerate(curves.items()):
        kind = KINDS[number]
        yield '<path class="curve %s" d="M%s"/>' % (kind, ' L'.join(
            '%.1f,%.1f' % (across(seconds), up(value))
            for seconds, value in curve))
        row, column = divmod(number, 2)
        left = (LEFT, WIDTH / 2)[column]
        down = bottom + 40 + LINE * (row + 1)
        yield _line('curve ' + kind, left, down - 5, 24, 0)
        yield _text(left + 30, down, name, 'start')


def _step(highest: float) -> float:
    """Return the round distance of about five ticks."""
    step = 10.0 ** math.floor(math.log10(highest))
    return next(step / divisor for divisor in (1, 2, 5, 10)
                if highest / (step / divisor) >= 4)


def _ticks(highest: float, step: float) -> list[float]:
    return [step * number for number in range(int(highest / step) + 1)]


def _line(kind: str, left: float, top: float, width: float, height: float
          ) -> str:
    return '<path class="%s" d="M%.1f,%.1f l%d,%d"/>' % (
        kind, left, top, width, height)


def _text(left: float, top: float, text: str, anchor: str = 'middle') -> str:
    return '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (
        left, top, anchor, saxutils.escape(text))
