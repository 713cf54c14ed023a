# SPDX-License-Identifier: Apache-2.0
"""Check the links between built pages: ``python doc/links.py doc/build/html``.

Sphinx checks references that it resolves itself. It does not check raw links,
those of templates, and anchors in them.
"""

from collections.abc import Iterator
import html.parser
import pathlib
import sys
from urllib import parse


class Page(html.parser.HTMLParser):
    """The anchors of a page and the addresses that it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str,
                        attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.update(filter(None, (values.get('id'),
                                          values.get('name'))))
        self.links.update(filter(None, (values.get('href'),
                                        values.get('src'))))


def broken(folder: pathlib.Path) -> Iterator[str]:
    """Describe each link that leads to no file or no anchor, in page order."""
    pages = {path.resolve(): Page(path.read_text())
             for path in sorted(folder.rglob('*.html'))}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / parse.unquote(parts.path)).resolve()
            where = '%s: %s' % (path.relative_to(folder.resolve()), link)
            if not target.is_file():
                yield where + ': no such file'
            elif parts.fragment and target in pages and parse.unquote(
                    parts.fragment) not in pages[target].anchors:
                yield where + ': no such anchor'


if __name__ == '__main__':
    found = list(broken(pathlib.Path(sys.argv[1])))
    sys.exit('\n'.join(found) or None)
