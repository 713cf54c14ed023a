# SPDX-License-Identifier: Apache-2.0
"""``journal list``, ``retry`` and ``forget``: what is still to be mirrored."""

from collections.abc import Callable
from collections.abc import Collection
import datetime
import json
import sys
import time
from typing import Any

import prettytable

from nova_aggregate_mirror import journal as mirror_journal

OK = 0
NO_SUCH_ROW = 1
STILL_RUNNING = 2

WIDTH = 60
COLUMNS = ('id', 'subject', 'state', 'age', 'attempts', 'last_error')


def show(journal: mirror_journal.Journal, form: str,
         now: Callable[[], float] = time.time) -> int:
    """List what is still to be mirrored, oldest first."""
    rows = journal.rows()
    ended = {row.id for row in journal.closable(rows)}
    if form == 'json':
        print(json.dumps([_document(row, row.id in ended, now())
                          for row in rows], indent=2))
        return OK
    if not rows:
        print('The journal is empty: nothing is left to be mirrored.')
        return OK
    table = prettytable.PrettyTable(COLUMNS)
    table.align, table.max_width = 'l', WIDTH
    for row in rows:
        table.add_row([
            row.id, subject(row.dirty), state(row, row.id in ended, now()),
            '%d s' % max(0, now() - row.created_at), row.attempts,
            row.last_error])
    print(table)
    return OK


def retry(journal: mirror_journal.Journal, ids: Collection[int]) -> int:
    """Let the agents try rows at once, whatever they wait for.

    :param ids: none means every row
    """
    present = {row.id for row in journal.rows()}
    status = _complain(set(ids) - present)
    count = journal.retry_now(set(ids) & present if ids else present)
    print('Rows that are due now: %d' % count)
    return status


def forget(journal: mirror_journal.Journal, ids: Collection[int]) -> int:
    """Take rows out of the journal although they are not mirrored.

    What they were about is then right only after the next full sync. A row of
    an operation that still runs is left.
    """
    rows = [row for row in journal.rows() if row.id in ids]
    status = _complain(set(ids) - {row.id for row in rows})
    ended = [row.id for row in journal.closable(rows)]
    for row in rows:
        if row.id not in ended:
            print('Row %d was left: its operation still runs, or its process '
                  'is on another host and may still live' % row.id,
                  file=sys.stderr)
            status = STILL_RUNNING
    print('Rows forgotten: %d' % journal.complete(ended))
    return status


def _complain(unknown: Collection[int]) -> int:
    for number in sorted(unknown):
        print('There is no row %d: "nova-aggregate-mirror-manage journal '
              'list" shows those that there are' % number, file=sys.stderr)
    return NO_SUCH_ROW if unknown else OK


def subject(dirty: mirror_journal.Dirty) -> str:
    if dirty.host:
        return 'host %s' % dirty.host
    return 'deleted aggregate %s' % dirty.aggregate_uuid


def state(row: mirror_journal.Row, ended: bool, now: float) -> str:
    if not ended:
        return 'its operation runs'
    if row.claimant and row.claimed_until > now:
        return 'an agent works on it'
    if row.next_attempt_at > now:
        return 'next attempt in %d s' % (row.next_attempt_at - now)
    return 'due'


def _document(row: mirror_journal.Row, ended: bool,
              now: float) -> dict[str, Any]:
    return {
        'id': row.id,
        'host': row.dirty.host or None,
        'nodes': sorted(row.dirty.nodes),
        'aggregate_uuid': row.dirty.aggregate_uuid or None,
        'request_id': row.dirty.request_id or None,
        'state': state(row, ended, now),
        'created_at': _time(row.created_at),
        'next_attempt_at': _time(row.next_attempt_at),
        'attempts': row.attempts,
        'last_error': row.last_error or None,
    }


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(
        seconds, datetime.timezone.utc).isoformat(timespec='seconds')
