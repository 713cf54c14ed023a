# SPDX-License-Identifier: Apache-2.0
"""Write the diagrams of the documentation as SVG, without system packages.

``python doc/pictures.py`` writes doc/source/pictures. Each picture has its own
background, and follows the reader's choice of light or dark.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import pathlib
import sys
from xml.sax import saxutils

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dashboard  # noqa: E402

PICTURES = pathlib.Path(__file__).parent / 'source' / 'pictures'
STYLE = '''<style>
.page { fill: #ffffff } .box { fill: #eef3fa; stroke: #33507a }
.line { stroke: #33507a; fill: none; stroke-width: 1.5 }
.life { stroke: #9aa7b8; stroke-dasharray: 4 4 } .bad { stroke: #b3261e }
.head { fill: context-stroke } text { fill: #1c2733; font: 14px sans-serif;
paint-order: stroke; stroke: #ffffff; stroke-width: 4px }
.grid { stroke: #d5dce5 }
.curve { fill: none; stroke-width: 2.5 } .one { stroke: #1f5fbf }
.two { stroke: #b3261e; stroke-dasharray: 8 4 }
.three { stroke: #2d7d46; stroke-dasharray: 2 3 }
.four { stroke: #8a5a00; stroke-dasharray: 12 3 }
.five { stroke: #7a3fa0; stroke-dasharray: 6 2 2 2 }
.six { stroke: #4a5563; stroke-dasharray: 1 4 }
.box + text { stroke: none } text.bad { fill: #b3261e; stroke: #ffffff }
@media screen and (prefers-color-scheme: dark) {
.page { fill: #14181d } .box { fill: #202b39; stroke: #8fb1e3 }
.line { stroke: #8fb1e3 } .life { stroke: #5b6775 } .bad { stroke: #ff8a80 }
.grid { stroke: #323c48 }
.one { stroke: #7fb0ff } .two { stroke: #ff8a80 } .three { stroke: #7fd69a }
.four { stroke: #e0b45c } .five { stroke: #cfa3ee } .six { stroke: #b4bfcc }
text { fill: #e4e9ef; stroke: #14181d }
text.bad { fill: #ff8a80; stroke: #14181d } }
</style>
<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4"
orient="auto"><path class="head" d="M0,0 L9,4 L0,8 z"/></marker></defs>'''
COLUMN = 185
ROW = 38

# From, to, text; a leading "!" marks a failure.
Step = tuple[int, int, str]
PARTS = ('user', 'nova-api', 'journal', 'nova database', 'placement', 'agent')
STOCK = ('user', 'nova-api', 'nova database', 'placement')
SEQUENCES: dict[str, tuple[Sequence[str], Sequence[Step]]] = {
    'add-host-healthy': (PARTS[:5], (
        (0, 1, 'add host'), (1, 2, 'record the host'),
        (1, 3, 'add the host'), (1, 4, 'read provider, write aggregates'),
        (1, 2, 'close the row'), (1, 0, '200'))),
    'add-host-outage': (PARTS, (
        (0, 1, 'add host'), (1, 2, 'record the host'),
        (1, 3, 'add the host'), (1, 4, '!refused, or no answer in time'),
        (1, 2, 'hand the row over'), (1, 0, '200'),
        (5, 4, '!probe: refused'), (5, 4, 'probe: placement is back'),
        (5, 3, 'read aggregates of the host'),
        (5, 4, 'write aggregates'), (5, 2, 'close the row'))),
    'add-host-killed': (PARTS, (
        (0, 1, 'add host'), (1, 2, 'record the host'),
        (1, 3, 'add the host'), (1, 1, '!killed'),
        (5, 2, 'row is overdue (2 x inline_timeout)'),
        (5, 3, 'read aggregates of the host'),
        (5, 4, 'write aggregates'), (5, 2, 'close the row later'))),
    'drift': (STOCK, (
        (0, 1, 'add host'), (1, 2, 'add the host'),
        (1, 3, '!refused'), (1, 0, '!500'),
        (0, 1, 'add host again'), (1, 0, '!409: is there already'),
        (0, 1, 'remove another host'), (1, 2, 'remove the host'),
        (1, 3, '!503'), (1, 0, '!200, but still in placement'))),
}
# Name, left, top; and arrows between names with their texts.
BOXES = {'user': (20, 130), 'nova-api': (230, 130), 'journal': (500, 20),
         'nova database': (500, 130), 'placement': (500, 240),
         'agent': (770, 130)}
ARROWS = (('user', 'nova-api', 'change'), ('nova-api', 'journal', 'record'),
          ('nova-api', 'nova database', 'nova\'s method'),
          ('nova-api', 'placement', 'converge'),
          ('agent', 'journal', 'drain'), ('agent', 'nova database', 'read'),
          ('agent', 'placement', 'converge'))
WIDTH, HEIGHT = 130, 50


def text(left: float, top: float, said: str, kind: str = '') -> str:
    """Return a centred text."""
    return '<text class="%s" x="%d" y="%d" text-anchor="middle">%s</text>' % (
        kind, left, top, saxutils.escape(said))


def box(left: float, top: float, name: str) -> str:
    """Return a box with its name."""
    return ('<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>'
            % (left, top, WIDTH, HEIGHT) + text(
                left + WIDTH / 2, top + HEIGHT / 2 + 5, name))


def arrow(ends: Sequence[float], kind: str = '') -> str:
    """Return an arrow from the first point to the second."""
    return ('<path class="line %s" marker-end="url(#head)" '
            'd="M%d,%d L%d,%d"/>' % (kind, *ends))


def sequence(parts: Sequence[str], steps: Sequence[Step]) -> str:
    """Return a sequence diagram: a column per part, a row per step."""
    middle = [20 + WIDTH / 2 + COLUMN * n for n in range(len(parts))]
    bottom = 110 + ROW * len(steps)
    shapes = [box(at - WIDTH / 2, 15, name)
              for at, name in zip(middle, parts)]
    shapes += ['<path class="life" d="M%d,65 L%d,%d"/>' % (at, at, bottom)
               for at in middle]
    for number, (start, end, said) in enumerate(steps):
        top = 105 + ROW * number
        kind = 'bad' if said.startswith('!') else ''
        if start != end:
            shapes.append(arrow((middle[start], top, middle[end], top), kind))
        shapes.append(text((middle[start] + middle[end]) / 2, top - 6,
                           said.removeprefix('!'), kind))
    return picture(middle[-1] + WIDTH / 2 + 20, bottom + 10, shapes)


def architecture() -> str:
    """Return the parts and what each does to another."""
    shapes = []
    for start, end, said in ARROWS:
        (left, top), (right, down) = BOXES[start], BOXES[end]
        forward = left < right
        ends = (left + (WIDTH if forward else 0), top + HEIGHT / 2,
                right + (0 if forward else WIDTH), down + HEIGHT / 2)
        shapes += [arrow(ends), text((ends[0] + ends[2]) / 2,
                                     (ends[1] + ends[3]) / 2 - 10, said)]
    shapes += [box(*at, name) for name, at in BOXES.items()]
    shapes.append(text(295, 200, 'with the hook'))
    return picture(920, 310, shapes)


def picture(width: float, height: float, shapes: Iterable[str]) -> str:
    """Return a whole SVG file."""
    return '\n'.join([
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">' % (
            width, height), STYLE,
        '<rect class="page" width="100%" height="100%"/>', *shapes,
        '</svg>', ''])


def pictures() -> dict[str, str]:
    """Return the text of each picture by its file name."""
    made = {name: sequence(*one) for name, one in SEQUENCES.items()}
    return {name + '.svg': one for name, one in sorted(
        {**made, 'architecture': architecture(),
         'dashboard': picture(*dashboard.picture()),
         }.items())}


def main() -> None:
    """Write all pictures."""
    for name, content in pictures().items():
        (PICTURES / name).write_text(content)


if __name__ == '__main__':
    main()
