# SPDX-License-Identifier: Apache-2.0
"""SQL statements of the journal; each takes an open transaction.

It is long because rows, ledger and lease change in one transaction.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from nova_aggregate_mirror.journal.db import models

CHUNK = 500


class LeaseRow(NamedTuple):
    """The row of a lease; ``renewals`` counts its writes."""

    holder: str
    renewals: int
    seconds: float


_DIRTY, _LEDGER, _LEASE = models.dirty.c, models.ledger.c, models.lease.c
_ON_CONFLICT: dict[str, Callable[[sa.Table], Any]] = {
    'sqlite': sqlite.insert, 'postgresql': postgresql.insert}
# Statements are built once, because building takes longer than executing.
_SOME: 'sa.BindParameter[Any]' = sa.bindparam('some', expanding=True)
_INSERT = sa.insert(models.dirty)
_DELETE = sa.delete(models.dirty).where(_DIRTY.id.in_(_SOME))
_HAND_OVER = sa.update(models.dirty).where(
    _DIRTY.id == sa.bindparam('row')).values(
        running=False, attempts=_DIRTY.attempts + 1,
        last_error=sa.bindparam('error'), mirrored_at=None)
_SET_FAILED = sa.update(models.dirty).where(
    _DIRTY.id == sa.bindparam('row')).values(
        attempts=_DIRTY.attempts + 1, last_error=sa.bindparam('error'),
        mirrored_at=sa.bindparam('mirrored'))
# Running rows only: a row handed over meanwhile may have failed since.
_SET_MIRRORED = sa.update(models.dirty).where(
    _DIRTY.id.in_(_SOME), _DIRTY.running).values(
        last_error='', mirrored_at=sa.bindparam('now'))
_SET_PENDING = sa.update(models.dirty).where(
    _DIRTY.id.in_(_SOME)).values(mirrored_at=None)
_RETRY = sa.update(models.dirty).where(
    _DIRTY.id.in_(_SOME), _DIRTY.attempts > 0).values(attempts=0)
_ORDER = (_DIRTY.created_at, _DIRTY.id)
_ROWS = sa.select(models.dirty).order_by(*_ORDER)
_ROWS_OF = _ROWS.where(_DIRTY.id.in_(_SOME))
_OTHERS = sa.select(_DIRTY.id).where(_DIRTY.id.not_in(_SOME)).limit(1)
_BRIEF = sa.select(_DIRTY.id, _DIRTY.running, _DIRTY.attempts,
                   _DIRTY.mirrored_at).order_by(*_ORDER)
_EXTENT = sa.select(
    sa.func.count(), sa.func.count(sa.case((_DIRTY.running, 1))),
    sa.func.max(_DIRTY.created_at))
_BACKLOG = sa.select(
    sa.func.count(), sa.func.count(_DIRTY.mirrored_at),
    sa.func.min(sa.case((_DIRTY.mirrored_at.is_(None), _DIRTY.created_at))))
_INTERSECTION = sa.select(_LEDGER.aggregate_uuid).where(
    _LEDGER.aggregate_uuid.in_(_SOME))
_MARK = sa.update(models.ledger).where(
    _LEDGER.aggregate_uuid == sa.bindparam('uuid')).values(
        deleted_at=sa.bindparam('now'))
_UNMARK = sa.update(models.ledger).where(
    _LEDGER.aggregate_uuid == sa.bindparam('uuid'),
    _LEDGER.deleted_at == sa.bindparam('mark')).values(deleted_at=None)
_ABSENT = sa.update(models.ledger).where(
    _LEDGER.aggregate_uuid.in_(_SOME)).values(
        absent_since=sa.bindparam('since'))
_FORGET = sa.delete(models.ledger).where(_LEDGER.aggregate_uuid.in_(_SOME))


def insert(connection: Any, **values: Any) -> None:
    connection.execute(_INSERT, values)


def delete(connection: Any, ids: Collection[str]) -> int:
    return sum(connection.execute(_DELETE, {'some': chunk}).rowcount
               for chunk in _chunks(ids))


def hand_over(connection: Any, row: str, error: str) -> bool:
    """Hand a row over; return whether it existed."""
    return bool(connection.execute(
        _HAND_OVER, {'row': row, 'error': error}).rowcount)


def set_failed(connection: Any,
               values: Iterable[tuple[str, str, float | None]]) -> None:
    """Record failures: row, error, and when it was mirrored nevertheless."""
    for row, error, mirrored in values:
        connection.execute(_SET_FAILED, {
            'row': row, 'error': error, 'mirrored': mirrored})


def set_mirrored(connection: Any, ids: Collection[str], now: float) -> None:
    for chunk in _chunks(ids):
        connection.execute(_SET_MIRRORED, {'some': chunk, 'now': now})


def set_pending(connection: Any, ids: Collection[str]) -> None:
    for chunk in _chunks(ids):
        connection.execute(_SET_PENDING, {'some': chunk})


def retry(connection: Any, ids: Collection[str]) -> int:
    return sum(connection.execute(_RETRY, {'some': chunk}).rowcount
               for chunk in _chunks(ids))


def rows(connection: Any) -> list[Any]:
    """Read every row, oldest first."""
    return list(connection.execute(_ROWS))


def rows_of(connection: Any, ids: Collection[str]) -> list[Any]:
    """Read the given rows that exist, oldest first per chunk."""
    return [row for chunk in _chunks(ids)
            for row in connection.execute(_ROWS_OF, {'some': chunk})]


def has_others(connection: Any, ids: Collection[str]) -> bool:
    """Check whether there is any row except the given rows."""
    return connection.execute(_OTHERS, {'some': ids}).first() is not None


def briefs(connection: Any) -> list[Any]:
    """Read what decides when each row is due, oldest row first."""
    return list(connection.execute(_BRIEF))


def extent(connection: Any) -> tuple[int, int, float | None]:
    """Return (rows, running rows, created_at of the latest row)."""
    return tuple(connection.execute(_EXTENT).one())


def backlog(connection: Any) -> tuple[int, int, float | None]:
    """Return (rows, mirrored rows, created_at of the oldest pending row)."""
    return tuple(connection.execute(_BACKLOG).one())


def ledger(connection: Any) -> list[Any]:
    """Read every entry of the ledger."""
    return list(connection.execute(sa.select(models.ledger)))


def ledger_intersection(connection: Any, uuids: Collection[str]
                        ) -> frozenset[str]:
    return frozenset(
        uuid for chunk in _chunks(uuids)
        for uuid in connection.scalars(_INTERSECTION, {'some': chunk}))


def remember(connection: Any, uuids: frozenset[str], now: float) -> None:
    """Add the UUIDs that the ledger does not have yet."""
    additions = sorted(uuids - ledger_intersection(connection, uuids))
    if additions:
        # Another controller may insert the same UUID concurrently.
        connection.execute(_insert_new(connection, models.ledger), [
            {'aggregate_uuid': uuid, 'created_at': now} for uuid in additions])


def mark(connection: Any, uuid: str, now: float) -> None:
    """Mark a UUID as deleted by a user."""
    remember(connection, frozenset({uuid}), now)
    connection.execute(_MARK, {'uuid': uuid, 'now': now})


def unmark(connection: Any, marks: Mapping[str, float]) -> None:
    """Clear marks that have not changed since they were read."""
    for uuid, time in sorted(marks.items()):
        connection.execute(_UNMARK, {'uuid': uuid, 'mark': time})


def set_absent(connection: Any, uuids: Collection[str],
               since: float | None) -> None:
    for chunk in _chunks(uuids):
        connection.execute(_ABSENT, {'some': chunk, 'since': since})


def forget(connection: Any, uuids: Collection[str]) -> None:
    for chunk in _chunks(uuids):
        connection.execute(_FORGET, {'some': chunk})


def cells(connection: Any) -> frozenset[str]:
    """Read the cell UUIDs of the nova that the journal belongs to."""
    return frozenset(connection.scalars(sa.select(models.cells.c.cell_uuid)))


def set_cells(connection: Any, uuids: Iterable[str]) -> None:
    connection.execute(sa.delete(models.cells))
    connection.execute(_insert_new(connection, models.cells), [
        {'cell_uuid': uuid} for uuid in sorted(uuids)])


def lock(connection: Any, name: str) -> None:
    """Serialize transactions that lock the same name.

    The others wait for this transaction, or one transaction fails with a
    conflict and is retried: a deadlock on MySQL, also on Galera, where row
    locks are local to a server.
    """
    connection.execute(_insert_new(connection, models.lease), {
        'name': name, 'holder': '', 'renewals': 0, 'seconds': 0.0,
        'host': '', 'taken_at': 0.0})
    connection.execute(sa.update(models.lease).where(
        _LEASE.name == name).values(renewals=_LEASE.renewals + 1))


def lease(connection: Any, name: str) -> LeaseRow | None:
    row = connection.execute(sa.select(
        _LEASE.holder, _LEASE.renewals, _LEASE.seconds).where(
            _LEASE.name == name)).one_or_none()
    return None if row is None else LeaseRow(*row)


def take_lease(connection: Any, name: str, previous: LeaseRow | None,
               holder: str, seconds: float, host: str, now: float) -> bool:
    """Take or renew the lease unless its row has changed; return success.

    :param host: of the holder; stored with ``now`` when the lease is taken
    """
    values: dict[str, Any] = {'holder': holder, 'seconds': seconds}
    if previous is None or previous.holder != holder:
        values |= {'host': host, 'taken_at': now}
    if previous is None:
        return bool(connection.execute(
            _insert_new(connection, models.lease), {
                'name': name, 'renewals': 1, **values}).rowcount)
    return bool(connection.execute(sa.update(models.lease).where(
        _LEASE.name == name, _LEASE.holder == previous.holder,
        _LEASE.renewals == previous.renewals).values(
            renewals=previous.renewals + 1, **values)).rowcount)


def leave_lease(connection: Any, name: str, holder: str) -> None:
    connection.execute(sa.update(models.lease).where(
        _LEASE.name == name, _LEASE.holder == holder).values(
            holder='', renewals=_LEASE.renewals + 1))


def holder_of_lease(connection: Any, name: str) -> tuple[str, float] | None:
    """Read the host of the last holder, and when it took the lease."""
    row = connection.execute(sa.select(_LEASE.host, _LEASE.taken_at).where(
        _LEASE.name == name)).one_or_none()
    return None if row is None else (row.host, row.taken_at)


def write_process(connection: Any, process: str, **values: Any) -> None:
    """Write the row of a nova-api process, which may exist."""
    updated = connection.execute(sa.update(models.processes).where(
        models.processes.c.id == process).values(**values)).rowcount
    if not updated:
        connection.execute(_insert_new(connection, models.processes), {
            'id': process, **values})


def processes(connection: Any) -> list[Any]:
    """Read the nova-api processes, by host."""
    columns = models.processes.c
    return list(connection.execute(sa.select(models.processes).order_by(
        columns.host, columns.version, columns.id)))


def forget_processes(connection: Any, before: float) -> None:
    connection.execute(sa.delete(models.processes).where(
        models.processes.c.seen_at < before))


def try_tables(connection: Any, name: str) -> None:
    """Insert a row into each table; for a transaction that is rolled back.

    :param name: a value that no key has
    """
    for table in models.metadata.sorted_tables:
        connection.execute(sa.insert(table), {
            column.name: False if isinstance(column.type, sa.Boolean)
            else 0 if isinstance(column.type, (sa.Integer, sa.Float))
            else name if column.primary_key else ''
            for column in table.c if not column.nullable
            and column.autoincrement is not True})


def delete_lease(connection: Any, name: str) -> None:
    connection.execute(sa.delete(models.lease).where(_LEASE.name == name))


def _insert_new(connection: Any, table: sa.Table) -> Any:
    """Build an INSERT that ignores existing rows.

    A savepoint is no alternative: a server that rolls back a transaction for
    a deadlock drops the savepoint, which hides the deadlock from the caller.
    """
    name = connection.dialect.name
    if name in _ON_CONFLICT:
        return _ON_CONFLICT[name](table).on_conflict_do_nothing()
    return sa.insert(table).prefix_with('IGNORE')


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]
