# SPDX-License-Identifier: Apache-2.0
"""``journal list`` and ``journal forget``: the rows of the journal."""

import argparse
import collections
from collections import abc
import sys
import time
from typing import Any

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import stored_rows
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

COLUMNS = ('id', 'host', 'state', 'detail', 'age', 'attempts', 'last_error')
IN_TABLE = ('host, id', 'detail', 'age', 'attempts')
"""The columns of a table; below it, each error has its hosts."""


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('id', nargs='+', help='IDs of the rows')
    parser.add_argument('--force', action='store_true',
                        help='also delete rows whose operations may still run')


def show(journal_rows: stored_rows.StoredRows, form: str, name: str,
         now: abc.Callable[[], float] = time.time) -> int:
    """Print all rows of the journal with this name; return the status."""
    rows = journal_rows.all()
    cells = []
    for row in rows:
        age = '%d s' % max(0, now() - row.created_at)
        cells.append((row.id, row.dirty.host, row.state, row.detail, age,
                      row.attempts, row.last_error))
    if form != 'table':
        formats.show(form, [_document(row) for row in rows], COLUMNS, cells)
    elif not rows:
        print('The journal %s is empty: no operation is pending.' % name)
    else:
        print('Journal: %s' % name)
        in_table = [((host, identifier), *others) for
                    identifier, host, _state, *others, _error in cells]
        print(terminal_tables.render(IN_TABLE, in_table))
        _show_errors(rows)
    return exit_status.OK


def _show_errors(rows: abc.Iterable[journal.Row]) -> None:
    """Print each error once, with its hosts."""
    hosts = collections.defaultdict[str, set[str]](set)
    for row in rows:
        if row.last_error:
            hosts[row.last_error].add(row.dirty.host)
    for error, names in hosts.items():
        print(printable.line('%s: %s' % (plurals.some(names), error)))


def forget(journal_rows: stored_rows.StoredRows, ids: abc.Collection[str],
           force: bool = False) -> int:
    """Delete rows, running ones only with force; return the exit status."""
    rows = [row for row in journal_rows.all() if row.id in ids]
    running = [row for row in rows if row.running and not force]
    closed = journal_rows.close(row.id for row in rows if row not in running)
    print('%s forgotten' % plurals.count(closed, 'row'), flush=True)
    status, unknown = exit_status.OK, set(ids) - {row.id for row in rows}
    if unknown:
        print('The journal has no row %s; see "%s"' % (
            ', '.join(sorted(unknown)), commands.LIST), file=sys.stderr)
        status = exit_status.COULD_NOT_RUN
    for row in running:
        print('Row %s was kept: its operation may still run. The agent closes '
              'it once its host is mirrored and [aggregate_mirror] '
              'max_call_age has passed; --force deletes it now' % row.id,
              file=sys.stderr)
        status = exit_status.REFUSED
    return status


def _document(row: journal.Row) -> dict[str, Any]:
    return {
        'id': row.id,
        'host': row.dirty.host,
        'nodes': sorted(row.dirty.nodes),
        'request_id': row.dirty.request_id or None,
        'state': row.state,
        'detail': row.detail,
        'created_at': dates.iso(row.created_at),
        'mirrored_at': (None if row.mirrored_at is None
                        else dates.iso(row.mirrored_at)),
        'attempts': row.attempts,
        'last_error': row.last_error or None,
    }
