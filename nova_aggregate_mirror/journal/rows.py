# SPDX-License-Identifier: Apache-2.0
"""Journal rows, as nova-api writes them: one per operation and process."""

from collections import abc
import dataclasses
from importlib import metadata
import socket
import time
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import engines

ERROR_LENGTH = 1000  # Characters of an error that are stored.
VERSION = metadata.version(conf.PACKAGE)[:64]
"""The version that this process runs, also after an upgrade."""
INTERVAL = 3600.0
"""Seconds between two writes of the row of a process."""
RETRY, LONGEST = 60.0, 600.0
"""Seconds, at first and at most, until a write that failed is tried again: the
row then shows that the process can use the journal again."""
# Statements are built once, because building takes longer than executing.
_DIRTY = models.dirty.c
ONE_ROW = _DIRTY.id == sa.bindparam('row')
SOME_ROWS = _DIRTY.id.in_(engines.SOME)
_INSERT = sa.insert(models.dirty)
_DELETE = sa.delete(models.dirty).where(SOME_ROWS)
_HAND_OVER = sa.update(models.dirty).where(ONE_ROW).values(
    running=False, attempts=_DIRTY.attempts + 1,
    last_error=sa.bindparam('error'), mirrored_at=None)
_OTHERS = sa.select(_DIRTY.id).where(~ONE_ROW).limit(1)


class Presence:
    """The row of this process, a nova-api with the hook; for display."""

    def __init__(self, mode: str = conf.MIRROR,
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self._id = uuidutils.generate_uuid()
        self._mode = mode
        self._now, self._clock = now, clock
        self._pause = backoff.Backoff(RETRY, LONGEST)
        """Ends when the row is to be written next."""

    def begin_write(self) -> bool:
        """Return whether to write the row now; if so, postpone the next try.

        While the table cannot be written, each try fails together with the
        journal row that is recorded in the same transaction.
        """
        now = self._clock()
        if now < self._pause.until:
            return False
        self._pause.extend(now)
        return True

    def set_written(self) -> None:
        """Begin the ``INTERVAL`` after a transaction that wrote the row."""
        self._pause = backoff.Backoff(RETRY, LONGEST, self._clock() + INTERVAL)

    def write(self, connection: Any) -> None:
        """Write the row in a transaction of the caller."""
        values = {'host': socket.gethostname()[:255], 'mode': self._mode,
                  'version': VERSION, 'seen_at': self._now()}
        update = sa.update(models.processes).where(
            models.processes.c.id == self._id)
        # An UPDATE that changes nothing may count no row.
        if not connection.execute(update.values(**values)).rowcount:
            connection.execute(models.insert_new(
                connection, models.processes), {'id': self._id, **values})


class Rows:
    """Rows of operations that placement may not reflect yet.

    For the errors of each method see ``Database.run``.

    :param ledger: updated in the transaction that writes a row
    :param presence: of a nova-api process, written when it records a row
    """

    def __init__(self, database: engine.Database,
                 ledger: ledger.DatabaseLedger,
                 now: abc.Callable[[], float] = time.time,
                 presence: Presence | None = None) -> None:
        self._database, self._ledger = database, ledger
        self._now = now
        self._presence = presence

    def make(self, dirty: journal.Dirty) -> journal.Row:
        """Build the row of a new operation without writing it."""
        return journal.Row(uuidutils.generate_uuid(), dirty, running=True,
                           created_at=self._now())

    def record(self, row: journal.Row, aggregates: abc.Iterable[str] = ()
               ) -> None:
        """Write a row; it is durable on return.

        :param aggregates: UUIDs, added to the ledger in the same transaction
        """
        presence = self._presence
        if presence and not presence.begin_write():
            # The row of the process is not due.
            presence = None

        def work(connection: Any) -> None:
            connection.execute(_INSERT, _values(row))
            if presence:
                presence.write(connection)

        self._ledger.add(aggregates, work)
        if presence:
            presence.set_written()

    def close(self, ids: abc.Iterable[str]) -> int:
        """Delete rows whose operations placement reflects; return how many."""
        return self._write(_DELETE, ids)

    def hand_over(self, row: journal.Row, error: str) -> None:
        """Hand the row of a finished operation over to the agent.

        A missing row is inserted: a ``record`` that fails may have written it.
        """
        error = storable(error)
        handed_over = dataclasses.replace(
            row, running=False, attempts=1, last_error=error)

        def work(connection: Any) -> None:
            parameters = {'row': row.id, 'error': error}
            if not connection.execute(_HAND_OVER, parameters).rowcount:
                connection.execute(_INSERT, _values(handed_over))

        self._database.run(work)

    def has_others(self, row: journal.Row) -> bool:
        """Check whether the journal has any row but the given one."""
        return bool(self._database.read(_OTHERS, row=row.id))

    def _write(self, statement: Any, ids: abc.Iterable[str], **values: Any
               ) -> int:
        """Write to some rows; return how many were changed."""
        ids = sorted(ids)
        return self._database.run(lambda connection: engine.write(
            connection, statement, ids, **values))


def storable(text: str, length: int = ERROR_LENGTH) -> str:
    """Convert a text to ASCII, for databases of any character set."""
    plain = text[:length].replace('\0', r'\x00')
    # Cut again, because escapes are longer than what they replace.
    return plain.encode('ascii', 'backslashreplace').decode()[:length]


def _values(row: journal.Row) -> dict[str, Any]:
    values = dataclasses.asdict(row)
    dirty = values.pop('dirty')
    return {**values, **dirty, 'nodes': ','.join(sorted(row.dirty.nodes))}
