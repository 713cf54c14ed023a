# SPDX-License-Identifier: Apache-2.0
"""Journal rows, as nova-api writes them: one per operation."""

from collections import abc
import dataclasses
import time
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import api_processes
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.limits import engines

ERROR_LENGTH = 1000  # Characters of an error that are stored.

# Statements are built once, because building takes longer than executing.
_DIRTY, ID = models.dirty.c, models.dirty.c.id == sa.bindparam('row')
IDS = _DIRTY.id.in_(engines.SOME)
_INSERT = sa.insert(models.dirty)
_DELETE = sa.delete(models.dirty).where(IDS)
_HAND_OVER = sa.update(models.dirty).where(ID).values(
    running=False, attempts=_DIRTY.attempts + 1,
    last_error=sa.bindparam('error'), mirrored_at=None)
_OTHERS = sa.select(_DIRTY.id).where(~ID).limit(1)


class Rows:
    """Rows of operations that placement may not reflect yet.

    For the errors of each method see ``Database.run``.

    :param ledger: updated in the transaction that writes a row
    :param presence: the row of a nova-api process, written with its records
    """

    def __init__(self, database: engine.Database,
                 ledger: ledger.DatabaseLedger,
                 now: abc.Callable[[], float] = time.time,
                 presence: api_processes.Presence | None = None) -> None:
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
            # Not due: this transaction leaves it out.
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

        def work(connection: Any) -> None:
            if not connection.execute(_HAND_OVER, {
                    'row': row.id, 'error': error}).rowcount:
                connection.execute(_INSERT, _values(dataclasses.replace(
                    row, running=False, attempts=1, last_error=error)))

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
