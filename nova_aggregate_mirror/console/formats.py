# SPDX-License-Identifier: Apache-2.0
"""Output formats of all commands: those of the openstack client."""

from collections import abc
import csv
import json
import sys
from typing import Any

FORMATS = ('csv', 'json', 'table', 'value', 'yaml')

DOCUMENTS = ('json', 'yaml')

LINES = ('csv', 'value')
"""Formats with a line for each row, and nothing else on standard output."""


def add_argument(parser: Any) -> None:
    parser.add_argument(
        '-f', '--format', choices=FORMATS, default='table',
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


def lines(form: str, rows: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Print rows as CSV or as values that are separated by spaces."""
    if form == 'csv':
        csv.writer(sys.stdout, quoting=csv.QUOTE_NONNUMERIC,
                   lineterminator='\n').writerows(rows)
        return
    for row in rows:
        print(*(' '.join(str('' if value is None else value).splitlines())
                for value in row))


def show(form: str, content: Any, columns: abc.Sequence[str],
         rows: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Print a result in any format but ``table``."""
    if form not in LINES:
        print(document(form, content), end='')
        return
    if form == 'csv':
        lines(form, [columns])
    lines(form, rows)
