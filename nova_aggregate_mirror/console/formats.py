# SPDX-License-Identifier: Apache-2.0
"""Output formats of all commands: those of the openstack client."""

from collections import abc
import csv
import json
import sys
from typing import Any
from typing import TextIO

from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable

FORMATS = ('csv', 'json', 'table', 'value', 'yaml')

DOCUMENTS = ('json', 'yaml')

LINES = ('csv', 'value')
"""Formats with a line for each row, and nothing else on standard output."""


def add_argument(parser: Any) -> None:
    parser.add_argument('-f', '--format', choices=FORMATS, default='table',
                        help='output format; the default is table')


def document(form: str, content: Any) -> str:
    """Render a document as JSON or YAML, with a line break at its end."""
    text = json.dumps(content, indent=2) + '\n'
    if form == 'json':
        return text
    # Imported here, so that commands start without it.
    import yaml
    return str(yaml.safe_dump(json.loads(text), sort_keys=False))


def show(form: str, content: Any, columns: abc.Sequence[str],
         rows: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Print in any format but ``table``: a document, or rows.

    CSV has a header; values are separated by spaces.
    """
    if form in DOCUMENTS:
        print(document(form, content), end='')
    elif form == 'csv':
        writer = csv.writer(sys.stdout, quoting=csv.QUOTE_NONNUMERIC,
                            lineterminator='\n')
        writer.writerows([columns, *rows])
    else:
        for row in rows:
            texts = ['' if value is None else str(value) for value in row]
            print(' '.join(' '.join(text.splitlines()) for text in texts))


def tell(lines: abc.Iterable[str], out: TextIO | None = None) -> None:
    """Print lines; by default to standard error, apart from the result."""
    for line in lines:
        print(printable.line(line), file=out or sys.stderr, flush=True)


def first_lines(texts: abc.Iterable[str], limit: int = plurals.SOME
                ) -> list[str]:
    """Return the first texts, and a line that counts the others."""
    shown = list(texts)
    others = len(shown) - limit
    return shown if others <= 0 else [
        *shown[:limit], '... and %d more' % others]
