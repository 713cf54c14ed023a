# SPDX-License-Identifier: Apache-2.0
"""The statements of the journal; each takes an open transaction."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from nova_aggregate_mirror.db import models

CHUNK = 500
# Rows that somebody has, of which only a look at locks can tell whether they
# are to be taken: few, and most of them are not.
TAKEN = 1000

Lease = tuple[str, int, float]

_DIRTY, _LEDGER, _LEASE = models.dirty.c, models.ledger.c, models.lease.c
_ON_CONFLICT = {'sqlite': sqlite.insert, 'postgresql': postgresql.insert}
# Statements are built once: that takes longer than to run one.
_SOME, _NOW, _HORIZON = (
    sa.bindparam('some', expanding=True), sa.bindparam('now'),
    sa.bindparam('horizon'))
_INSERT = sa.insert(models.dirty)
_DELETE = sa.delete(models.dirty).where(_DIRTY.id.in_(_SOME))
_HAND_OVER = sa.update(models.dirty).where(
    _DIRTY.id == sa.bindparam('row'),
    _DIRTY.owner.in_([sa.bindparam('by'), ''])).values(
        owner='', attempts=_DIRTY.attempts + 1,
        last_error=sa.bindparam('error'), next_attempt_at=_NOW)
_ROWS = sa.select(models.dirty).order_by(_DIRTY.id)
_BACKLOG = sa.select(
    sa.func.count(), sa.func.min(_DIRTY.created_at)).select_from(models.dirty)
_BY_TURN = sa.select(models.dirty).order_by(
    _DIRTY.next_attempt_at, _DIRTY.id)
_UNOWNED = _BY_TURN.where(_DIRTY.owner == '', sa.or_(
    _DIRTY.next_attempt_at <= _NOW, _DIRTY.next_attempt_at > _HORIZON))
_IS_FREE = sa.or_(
    _DIRTY.claimed_until <= _NOW, _DIRTY.claimed_until > _HORIZON)
_FREE = _UNOWNED.where(_IS_FREE).limit(sa.bindparam('limit', type_=sa.Integer))
_CLAIMED = _UNOWNED.where(sa.not_(_IS_FREE)).limit(TAKEN)
_OWNED = _BY_TURN.where(_DIRTY.owner != '').limit(TAKEN)
_CLAIM = sa.update(models.dirty).where(
    _DIRTY.id.in_(_SOME), _DIRTY.claimant == sa.bindparam('before'),
    _DIRTY.claimed_until == sa.bindparam('before_until')).values(
        claimant=sa.bindparam('by'), claimed_until=sa.bindparam('until'))
_LEDGER_UUIDS = sa.select(_LEDGER.aggregate_uuid)
_KNOWN = _LEDGER_UUIDS.where(_LEDGER.aggregate_uuid.in_(_SOME))


def insert(connection: Any, **values: Any) -> int:
    """Insert a row; returns its id."""
    return connection.execute(_INSERT, values).inserted_primary_key[0]


def delete(connection: Any, ids: Collection[int]) -> int:
    return sum(connection.execute(_DELETE, {'some': chunk}).rowcount
               for chunk in _chunks(ids))


def hand_over(connection: Any, row: int, owner: str, error: str, now: float
              ) -> None:
    # An agent may have closed it, and a server that lost its counter may have
    # given the number to another process since.
    connection.execute(_HAND_OVER, {
        'row': row, 'by': owner, 'error': error, 'now': now})


def forsake(connection: Any, owner: str,
            written: Collection[tuple[float, str]]) -> None:
    """Hand over what an owner wrote at these times for these requests."""
    for chunk in _chunks(written):
        connection.execute(sa.update(models.dirty).where(
            _DIRTY.owner == owner,
            sa.tuple_(_DIRTY.created_at, _DIRTY.request_id).in_(chunk)
        ).values(owner=''))


def rows(connection: Any) -> list[Any]:
    """Every row, oldest first."""
    return connection.execute(_ROWS).all()


def backlog(connection: Any) -> tuple[int, float]:
    """How many rows, and when the oldest was written."""
    count, oldest = connection.execute(_BACKLOG).one()
    return count, oldest or 0.0


def due(connection: Any, now: float, horizon: float,
        limit: int) -> list[Any]:
    """Rows that may be due, those that wait the longest first.

    :param horizon: a later next attempt than this is no sensible one
    """
    times = {'now': now, 'horizon': horizon}
    return [
        # The bulk, and then claimed rows and those of running operations.
        *connection.execute(_FREE, {**times, 'limit': limit}),
        *connection.execute(_CLAIMED, times),
        # Also those that wait: who cannot tell may have set them back.
        *connection.execute(_OWNED)]


def claim(connection: Any, seen: Iterable[Any], claimant: str,
          until: float) -> frozenset[int]:
    """Claim rows that are still as they were seen; returns their ids."""
    groups: dict[tuple[str, float], list[int]] = {}
    for row in seen:
        groups.setdefault((row.claimant, row.claimed_until), []).append(row.id)
    taken: set[int] = set()
    for (before, before_until), ids in sorted(groups.items()):
        for chunk in _chunks(ids):
            changed = connection.execute(_CLAIM, {
                'some': chunk, 'before': before, 'before_until': before_until,
                'by': claimant, 'until': until}).rowcount
            if changed == len(chunk):
                taken.update(chunk)
            elif changed:
                # Only a transaction of our own can have written this pair.
                taken.update(connection.scalars(sa.select(_DIRTY.id).where(
                    _DIRTY.id.in_(chunk), _DIRTY.claimant == claimant,
                    _DIRTY.claimed_until == until)))
    return frozenset(taken)


def disown(connection: Any, ids: Collection[int]) -> None:
    """Hand over rows whose owner is known to be done with them."""
    for chunk in _chunks(ids):
        connection.execute(sa.update(models.dirty).where(
            _DIRTY.id.in_(chunk)).values(owner=''))


def retry_later(connection: Any,
                later: Mapping[int, tuple[str, float]]) -> None:
    for row, (error, at) in sorted(later.items()):
        connection.execute(
            sa.update(models.dirty).where(_DIRTY.id == row).values(
                claimant='', claimed_until=0.0, next_attempt_at=at,
                last_error=error, attempts=_DIRTY.attempts + 1))


def release(connection: Any, ids: Collection[int]) -> None:
    for chunk in _chunks(ids):
        connection.execute(sa.update(models.dirty).where(
            _DIRTY.id.in_(chunk)).values(claimant='', claimed_until=0.0))


def retry_now(connection: Any, ids: Collection[int]) -> int:
    return sum(connection.execute(
        sa.update(models.dirty).where(_DIRTY.id.in_(chunk)).values(
            claimant='', claimed_until=0.0, next_attempt_at=0.0)).rowcount
        for chunk in _chunks(ids))


def ledger(connection: Any) -> frozenset[str]:
    return frozenset(connection.scalars(_LEDGER_UUIDS))


def known(connection: Any, uuids: Collection[str]) -> frozenset[str]:
    return frozenset(
        uuid for chunk in _chunks(uuids)
        for uuid in connection.scalars(_KNOWN, {'some': chunk}))


def remember(connection: Any, uuids: frozenset[str], now: float) -> None:
    """Enter UUIDs into the ledger, those that are not there yet."""
    missing = sorted(uuids - known(connection, uuids))
    if missing:
        # On a server another controller may enter the same one meanwhile.
        connection.execute(_insert_new(connection, models.ledger), [
            {'aggregate_uuid': uuid, 'created_at': now} for uuid in missing])


def emptied(connection: Any, empty: frozenset[str], others: frozenset[str],
            now: float, before: float) -> frozenset[str]:
    """Note since when UUIDs are empty; forget those that are since ``before``.

    :returns: the UUIDs that were forgotten
    """
    since = {row.aggregate_uuid: row.emptied_at for row in connection.execute(
        sa.select(models.ledger))}
    # What was noted before the clock was set back is noted anew.
    late = [uuid for uuid in empty & since.keys()
            if since[uuid] is None or since[uuid] > now]
    again = [uuid for uuid in others & since.keys()
             if since[uuid] is not None]
    old = [uuid for uuid in empty & since.keys()
           if since[uuid] is not None and since[uuid] < before]
    for uuids, value in ((late, now), (again, None)):
        for chunk in _chunks(uuids):
            connection.execute(sa.update(models.ledger).where(
                _LEDGER.aggregate_uuid.in_(chunk)).values(emptied_at=value))
    for chunk in _chunks(old):
        connection.execute(sa.delete(models.ledger).where(
            _LEDGER.aggregate_uuid.in_(chunk)))
    return frozenset(old)


def lease(connection: Any, name: str) -> Lease | None:
    found = connection.execute(sa.select(
        _LEASE.holder, _LEASE.renewals, _LEASE.seconds).where(
            _LEASE.name == name)).one_or_none()
    return None if found is None else tuple(found)


def take_lease(connection: Any, name: str, seen: Lease | None, holder: str,
               seconds: float) -> bool:
    """Compare and swap: whether the lease was as seen, and is ours now."""
    if seen is None:
        return bool(connection.execute(
            _insert_new(connection, models.lease), {
                'name': name, 'holder': holder, 'renewals': 1,
                'seconds': seconds}).rowcount)
    return bool(connection.execute(sa.update(models.lease).where(
        _LEASE.name == name, _LEASE.holder == seen[0],
        _LEASE.renewals == seen[1]).values(
            holder=holder, renewals=seen[1] + 1, seconds=seconds)).rowcount)


def leave_lease(connection: Any, name: str, holder: str) -> None:
    connection.execute(sa.update(models.lease).where(
        _LEASE.name == name, _LEASE.holder == holder).values(
            holder='', renewals=_LEASE.renewals + 1))


def _insert_new(connection: Any, table: sa.Table) -> Any:
    """An INSERT that leaves a row alone that is there.

    Not by a savepoint: a server that undoes a transaction for a deadlock
    undoes that too, and then it is no deadlock any more to whoever asks.
    """
    name = connection.dialect.name
    if name in _ON_CONFLICT:
        return _ON_CONFLICT[name](table).on_conflict_do_nothing()
    return sa.insert(table).prefix_with('IGNORE')


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]
