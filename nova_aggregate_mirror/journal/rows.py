# SPDX-License-Identifier: Apache-2.0
"""Journal rows: one per operation that placement may not reflect yet."""

from collections import abc
import dataclasses
import time
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import api_processes
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import uuids

# Characters of an error that are stored.
ERROR_LENGTH = 1000

# Statements are built once, because building takes longer than executing.
_DIRTY, _ID = models.dirty.c, models.dirty.c.id == sa.bindparam('row')
_IDS = _DIRTY.id.in_(engines.SOME)
_INSERT = sa.insert(models.dirty)
_DELETE = sa.delete(models.dirty).where(_IDS)
_HAND_OVER = sa.update(models.dirty).where(_ID).values(
    running=False, attempts=_DIRTY.attempts + 1,
    last_error=sa.bindparam('error'), mirrored_at=None)
_SET_FAILED = sa.update(models.dirty).where(_ID).values(
    attempts=_DIRTY.attempts + 1, last_error=sa.bindparam('error'),
    mirrored_at=sa.bindparam('mirrored'))
# Running rows only: a row handed over meanwhile may have failed since.
_SET_MIRRORED = sa.update(models.dirty).where(_IDS, _DIRTY.running).values(
    last_error='', mirrored_at=sa.bindparam('now'))
_SET_PENDING = sa.update(models.dirty).where(_IDS).values(mirrored_at=None)
_ORDER = (_DIRTY.created_at, _DIRTY.id)
_ROWS = sa.select(models.dirty).order_by(*_ORDER)
_ROWS_OF = _ROWS.where(_IDS)
_OTHERS = sa.select(_DIRTY.id).where(
    _DIRTY.id.not_in(engines.SOME)).limit(1)
_BRIEFS = sa.select(_DIRTY.id, _DIRTY.running, _DIRTY.attempts,
                    _DIRTY.mirrored_at).order_by(*_ORDER)
_HOSTS = sa.select(_DIRTY.host)
_BACKLOG = sa.select(
    sa.func.count(), sa.func.count(_DIRTY.mirrored_at),
    sa.func.min(sa.case((_DIRTY.mirrored_at.is_(None), _DIRTY.created_at))))


class Rows:
    """Journal rows, for nova-api, the agent and the commands.

    Every method raises ``JournalUnavailable`` when the database is
    unavailable; nothing was written then, unless only the response to the
    COMMIT was lost. For ``lock_wait`` see ``Transactions.run``.

    :param ledger: updated in the transaction that writes a row
    :param presence: the row of a nova-api process, written with its records
    """

    def __init__(self, database: transactions.Transactions,
                 ledger: ledger.DatabaseLedger,
                 now: abc.Callable[[], float] = time.time,
                 presence: api_processes.Presence | None = None) -> None:
        self._database = database
        self._ledger = ledger
        self._now = now
        self._presence = presence

    def make(self, dirty: journal.Dirty) -> journal.Row:
        """Build the row of a new operation without writing it."""
        return journal.Row(
            id=uuidutils.generate_uuid(), dirty=dirty, running=True,
            created_at=self._now())

    def record(self, row: journal.Row, aggregates: abc.Iterable[str] = ()
               ) -> None:
        """Write a row; it is durable on return.

        :param aggregates: UUIDs of nova aggregates, added to the ledger in
            the same transaction
        """
        presence = self._presence
        if presence and not presence.begin_write():
            # Not due: this transaction leaves it out.
            presence = None
        with self._ledger.addition(aggregates) as add:
            def work(connection: Any) -> None:
                add(connection)
                connection.execute(_INSERT, _values(row))
                if presence:
                    presence.write(connection)

            self._database.run(work)
        if presence:
            presence.set_written()

    def close(self, ids: abc.Iterable[str], lock_wait: float | None = None
              ) -> int:
        """Delete rows whose operations placement reflects; return how many."""
        return self._write(_DELETE, ids, lock_wait)

    def hand_over(self, row: journal.Row, error: str) -> None:
        """Hand the row of a finished operation over to the agent.

        A missing row is inserted: when ``record`` fails, it is not known
        whether the row was written.
        """
        error = storable(error)

        def work(connection: Any) -> None:
            if not connection.execute(_HAND_OVER, {
                    'row': row.id, 'error': error}).rowcount:
                connection.execute(_INSERT, _values(dataclasses.replace(
                    row, running=False, attempts=1, last_error=error)))

        self._database.run(work)

    def set_failed(self, errors: abc.Mapping[str, str],
                   lock_wait: float | None = None,
                   mirrored: abc.Collection[str] = ()) -> None:
        """Record why rows could not be mirrored.

        They become pending, except those that are ``mirrored``.

        :param errors: IDs of rows, to why
        :param mirrored: IDs of rows that are in sync but for what a cell that
            does not answer may have: they stay in the journal
        """
        now = self._now()
        failures = [{'row': row, 'error': storable(error),
                     'mirrored': now if row in mirrored else None}
                    for row, error in sorted(errors.items())]

        def work(connection: Any) -> None:
            for failure in failures:
                connection.execute(_SET_FAILED, failure)

        self._database.run(work, lock_wait=lock_wait)

    def set_mirrored(self, ids: abc.Iterable[str],
                     lock_wait: float | None = None) -> None:
        """Record that running rows are mirrored; they stay in the journal."""
        self._write(_SET_MIRRORED, ids, lock_wait, now=self._now())

    def set_pending(self, ids: abc.Iterable[str],
                    lock_wait: float | None = None) -> None:
        """Record that rows may be out of sync again; they become pending."""
        self._write(_SET_PENDING, ids, lock_wait)

    def all(self) -> list[journal.Row]:
        """Read every row, oldest first."""
        return [_row(row) for row in self._read(_ROWS)]

    def get(self, ids: abc.Iterable[str]) -> list[journal.Row]:
        """Read those of a few rows that still exist."""
        return [_row(row) for row in self._read(_ROWS_OF, some=sorted(ids))]

    def has_others(self, ids: abc.Iterable[str]) -> bool:
        """Check whether the journal has any row except the given rows."""
        return bool(self._read(_OTHERS, some=sorted(ids)))

    def hosts(self) -> frozenset[str]:
        """Read the names of the hosts that have rows."""
        return frozenset(row.host for row in self._read(_HOSTS))

    def briefs(self) -> list[journal.Brief]:
        """Read what decides when each row is due, oldest row first."""
        return [journal.Brief(row.id, row.running, row.attempts,
                              row.mirrored_at is None)
                for row in self._read(_BRIEFS)]

    def backlog(self) -> journal.Backlog:
        """Count the operations that are still in the journal.

        The age depends on the clocks of the hosts that wrote the rows.
        """
        [(count, mirrored, oldest)] = self._read(_BACKLOG)
        age = 0.0 if oldest is None else self._now() - oldest
        # Clocks differ a little; one that is further ahead is to be seen.
        if age >= -api_processes.AHEAD:
            age = max(0.0, age)
        return journal.Backlog(
            pending=count - mirrored, waiting=mirrored, oldest_age=age)

    def _read(self, statement: Any, **values: Any) -> list[Any]:
        return self._database.run(
            lambda connection: list(connection.execute(statement, values)))

    def _write(self, statement: Any, ids: abc.Iterable[str],
               lock_wait: float | None = None, **values: Any) -> int:
        """Write to some rows; return how many were changed."""
        chunks = list(engines.chunks(ids))

        def work(connection: Any) -> int:
            return sum(connection.execute(statement, {
                'some': chunk, **values}).rowcount for chunk in chunks)

        return self._database.run(work, lock_wait=lock_wait)


def storable(text: str, length: int = ERROR_LENGTH) -> str:
    """Convert a text to ASCII, for databases of any character set."""
    plain = text[:length].replace('\0', r'\x00')
    # Cut again, because escapes are longer than what they replace.
    return plain.encode('ascii', 'backslashreplace').decode()[:length]


def _values(row: journal.Row) -> dict[str, Any]:
    return {
        'id': row.id, 'host': row.dirty.host,
        'nodes': ','.join(sorted(row.dirty.nodes)),
        'request_id': row.dirty.request_id, 'running': row.running,
        'created_at': row.created_at, 'attempts': row.attempts,
        'last_error': row.last_error, 'mirrored_at': row.mirrored_at}


def _row(row: Any) -> journal.Row:
    nodes = frozenset(map(uuids.canonical, filter(None, row.nodes.split(','))))
    return journal.Row(
        id=row.id, running=row.running, created_at=row.created_at,
        attempts=row.attempts, last_error=row.last_error,
        mirrored_at=row.mirrored_at,
        dirty=journal.Dirty(
            host=row.host, nodes=nodes, request_id=row.request_id))
