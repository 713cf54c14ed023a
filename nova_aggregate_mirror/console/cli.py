# SPDX-License-Identifier: Apache-2.0
"""Command line of both clients: arguments, output formats and progress."""

import argparse
from collections import abc
import contextlib
import csv
import io
import itertools
import json
import sys
import time
from typing import Any
from typing import TextIO

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import full_sync

LONGEST = 86400
"""Maximum number of seconds to wait: a day."""
FORMATS = ('csv', 'json', 'table', 'value', 'yaml')
DOCUMENTS = ('json', 'yaml')
LINES = ('csv', 'value')
"""Formats with a line for each row, and nothing else on standard output."""
INTERVAL = 3.0
"""Minimum seconds between two progress lines of the same step."""


def add_foreign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--foreign', action='store_true',
        help='also list the aggregates of compute nodes that are not nova\'s; '
             'one more request per provider')


def add_scope(parser: argparse.ArgumentParser, aggregate: str, host: str,
              given: str) -> None:
    add = parser.add_argument
    add('--aggregate', action='append', default=[], metavar=aggregate,
        dest='aggregates',
        help='only associations with this aggregate (%s); may be repeated'
             % given)
    # Not as ``host``, which is an option of nova.
    add('--host', action='append', default=[], metavar=host, dest='hosts',
        help='only the compute nodes of this host; may be repeated')


def add_servers(parser: argparse.ArgumentParser, zone: str, host: str,
                project: str) -> None:
    add = parser.add_argument
    add('--zone', metavar=zone,
        help='only servers that request this availability zone, or are on '
             'its hosts')
    add('--host', action='append', default=[], metavar=host, dest='hosts',
        help='only servers on this host; may be repeated')
    add('--project', metavar=project,
        help='only servers of this project (name or ID)')


def request(arguments: argparse.Namespace, prune: bool,
            max_removed_share: float) -> full_sync.Request:
    """Return the request that the command line describes.

    :raises InvalidConfiguration: for --force without prune
    """
    if arguments.force and not prune:
        raise exceptions.InvalidConfiguration(
            '--force only applies to removals: add --prune')
    share = full_sync.UNLIMITED if arguments.force else max_removed_share
    return full_sync.Request(
        share if prune else None, write=not arguments.dry_run,
        hosts=frozenset(arguments.hosts),
        aggregates=frozenset(arguments.aggregates), foreign=arguments.foreign)


def number(most: int) -> abc.Callable[[str], int]:
    """Return an argument type: the integers from 1 to a maximum."""
    # Argparse says "invalid number value", by the name of the function.
    def number(text: str) -> int:
        value = int(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(
                '%s is not between 1 and %d' % (text, most))
        return value

    return number


def pair(text: str) -> tuple[str, str]:
    """Split KEY=VALUE; the value may be empty."""
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError('%r is not KEY=VALUE' % text)
    return name, value


def add_format(parser: Any) -> None:
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
    out = io.StringIO()
    if form in DOCUMENTS:
        out.write(document(form, content))
    elif form == 'csv':
        writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC,
                            lineterminator='\n')
        writer.writerows([columns, *rows])
    else:
        for row in rows:
            texts = ['' if value is None else str(value) for value in row]
            line = ' '.join(' '.join(text.splitlines()) for text in texts)
            out.write(line + '\n')
    print(printable.lines(out.getvalue()), end='')


def tell(lines: abc.Iterable[str], out: TextIO | None = None) -> None:
    """Print lines; by default to standard error, apart from the result."""
    for line in lines:
        print(printable.line(line), file=out or sys.stderr, flush=True)


def first_lines(texts: abc.Iterable[str], limit: int = plurals.SOME
                ) -> list[str]:
    """Return the first texts, and a line that counts the others."""
    shown = list(texts)
    more = len(shown) - limit
    return shown if more <= 0 else [*shown[:limit], '... and %d more' % more]


class ProgressLines(reconcile.Progress):
    """A line per step, and the number of completed providers in long steps."""

    def __init__(self, now: abc.Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._printed_at = now()
        self._count, self._numbers = 0, itertools.count(1)

    def step(self, text: str, providers: int = 0) -> None:
        self._print(text)
        self._count, self._numbers = providers, itertools.count(1)

    def advance(self) -> None:
        # Unlike +=, next() of a count is atomic among threads.
        number = next(self._numbers)
        if self._count:
            self.tell('%d of %s done' % (
                number, plurals.count(self._count, 'provider')))

    def tell(self, text: str) -> None:
        if self._now() - self._printed_at >= INTERVAL:
            self._print(text)

    def _print(self, text: str) -> None:
        self._printed_at = self._now()
        # Nothing that is done depends on a reader.
        with contextlib.suppress(BrokenPipeError):
            tell([text])


def progress(quiet: bool = False) -> reconcile.Progress:
    """Return the progress output of a command."""
    return reconcile.Progress() if quiet else ProgressLines()
