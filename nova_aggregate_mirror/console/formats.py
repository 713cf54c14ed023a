# SPDX-License-Identifier: Apache-2.0
"""Output formats of all commands: those of the openstack client."""

from collections import abc
import csv
import itertools
import json
import sys
from typing import Any
from typing import TextIO

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
    rendered: str = yaml.safe_dump(json.loads(text), sort_keys=False)
    return rendered


def print_rows(form: str, columns: abc.Sequence[str],
               rows: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Print rows as CSV, or as values separated by spaces without a header."""
    if form == 'csv':
        writer = csv.writer(sys.stdout, quoting=csv.QUOTE_NONNUMERIC,
                            lineterminator='\n')
        writer.writerows(itertools.chain([columns], rows))
        return
    for row in rows:
        print(*(' '.join(str('' if value is None else value).splitlines())
                for value in row))


def show(form: str, content: Any, columns: abc.Sequence[str],
         rows: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Print a document, or rows, in any format but ``table``."""
    if form in LINES:
        print_rows(form, columns, rows)
    else:
        print(document(form, content), end='')


def tell(lines: abc.Iterable[str], out: TextIO | None = None) -> None:
    """Print lines; by default to standard error, apart from the result."""
    for line in lines:
        print(printable.line(line), file=out or sys.stderr, flush=True)
