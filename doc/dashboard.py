# SPDX-License-Identifier: Apache-2.0
"""Grafana's dashboard as SVG, with the answers of a Prometheus."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import json
import pathlib

import charts

ROOT = pathlib.Path(__file__).parents[1]
DASHBOARD = ROOT / 'etc' / 'grafana' / 'nova-aggregate-mirror.json'
ANSWERS = ROOT / 'doc/source/admin/operations/dashboard.csv'
# Below a chart: the names of up to six curves.
LINE = 20
HEIGHT = charts.HEIGHT + 3 * LINE
# Of Grafana's grid, in which a panel has 12 x 8 cells.
COLUMN, ROW = charts.WIDTH / 12, HEIGHT / 8

Curves = dict[str, list[charts.Point]]


def read() -> dict[str, Curves]:
    """Read the answers: the title of a panel, the name of a curve, points."""
    found: dict[str, Curves] = {}
    with ANSWERS.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row['panel'], {}).setdefault(
                row['series'], []).append(
                    (float(row['seconds']), float(row['value'])))
    return found


def shapes() -> Iterator[str]:
    """Return each panel at its place."""
    answers = read()
    last = max(points[-1][0] for curves in answers.values()
               for points in curves.values())
    for panel in panels():
        place, curves = panel['gridPos'], answers.get(panel['title'], {})
        drawn = (_figure(panel['title'], curves) if panel['type'] == 'stat'
                 else _chart(panel, curves, last))
        yield '<svg x="%d" y="%d" width="%d" height="%d">%s</svg>' % (
            place['x'] * COLUMN, place['y'] * ROW, place['w'] * COLUMN,
            place['h'] * ROW, '\n'.join(drawn))


def panels() -> Sequence[Mapping]:
    """Return the dashboard's panels."""
    return json.loads(DASHBOARD.read_text())['panels']


def size() -> tuple[float, float]:
    """Return the width and height of all panels."""
    places = [panel['gridPos'] for panel in panels()]
    return (max(one['x'] + one['w'] for one in places) * COLUMN,
            max(one['y'] + one['h'] for one in places) * ROW)


def _figure(title: str, curves: Curves) -> list[str]:
    """Return the last value, in large type."""
    last = [points[-1][1] for points in curves.values()]
    return [charts.text(charts.WIDTH / 2, 20, title),
            *('<text class="figure" x="%d" y="%d" text-anchor="middle">%g'
              '</text>' % (charts.WIDTH / 2, charts.HEIGHT / 2, value)
              for value in last)]


def _chart(panel: Mapping, curves: Curves, last: float) -> list[str]:
    highest = max((value for points in curves.values()
                   for _at, value in points), default=0)
    unit = panel['fieldConfig']['defaults']['unit']
    drawn = charts.chart(
        panel['title'], charts.linear('seconds', last),
        charts.linear('' if unit == 'short' else unit, highest or 1), curves)
    for number, (kind, name) in enumerate(zip(charts.KINDS, curves)):
        line, right = divmod(number, 2)
        drawn += charts.named(
            kind, name, charts.WIDTH / 2 if right else charts.LEFT,
            charts.HEIGHT + (line + 1) * LINE - 8)
    return drawn
