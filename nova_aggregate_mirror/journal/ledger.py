# SPDX-License-Identifier: Apache-2.0
"""Ledger of current and former UUIDs of nova aggregates."""

from collections import abc
import time
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.limits import engines

_LEDGER = models.ledger.c
ONE_UUID = _LEDGER.aggregate_uuid == sa.bindparam('uuid')
SOME_UUIDS = _LEDGER.aggregate_uuid.in_(engines.SOME)
_STORED = sa.select(_LEDGER.aggregate_uuid).where(SOME_UUIDS)
_MARK = sa.update(models.ledger).where(ONE_UUID).values(
    deleted_at=sa.bindparam('now'))


class DatabaseLedger:
    """Ledger in the journal's database, as far as nova-api uses it."""

    def __init__(self, database: engine.Database,
                 now: abc.Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now
        self._cache: frozenset[str] = frozenset()
        """UUIDs that the ledger has; it keeps them while nova has them."""
        self._deferred: set[str] = set()
        """UUIDs to be added; until then, they are foreign in placement."""

    def intersection(self, aggregates: abc.Iterable[str]) -> frozenset[str]:
        """Return the given UUIDs that the ledger has."""
        requested = frozenset(aggregates)
        if not requested:
            return requested
        return self._database.run(
            lambda connection: read_stored(connection, requested))

    def remember(self, aggregates: abc.Iterable[str]) -> None:
        """Add UUIDs of nova aggregates to the ledger."""
        current = frozenset(aggregates)
        if not current <= self._cache:
            self.add(current)

    def defer(self, aggregates: abc.Iterable[str]) -> None:
        """Add UUIDs in the next transaction that adds any."""
        self._deferred |= frozenset(aggregates) - self._cache

    def add(self, aggregates: abc.Iterable[str],
            work: abc.Callable[[Any], object] = lambda connection: None
            ) -> None:
        """Add UUIDs, and those deferred, in one transaction with the work."""
        self.defer(aggregates)
        additions, now = frozenset(self._deferred), self._now()

        def transact(connection: Any) -> None:
            insert_missing(connection, additions, now)
            work(connection)

        try:
            self._database.run(transact)
        except exceptions.JournalLocked:
            # Another session adds one: only other failures are made up for.
            self._deferred.clear()
            raise
        self._cache |= additions
        self._deferred -= additions

    def mark(self, aggregate: str) -> None:
        """Mark the UUID of an aggregate that a user is deleting.

        This is attempted during a back-off, too: later, only the mark may show
        that the UUID was nova's. Other UUIDs may be locked, and stay deferred.
        """
        now = self._now()
        self._deferred.add(aggregate)

        def work(connection: Any) -> None:
            insert_missing(connection, frozenset({aggregate}), now)
            connection.execute(_MARK, {'uuid': aggregate, 'now': now})

        self._database.run(work, insist=True)
        self._cache |= {aggregate}
        self._deferred.discard(aggregate)


def read_stored(connection: Any, aggregates: abc.Iterable[str]
                ) -> frozenset[str]:
    """Read which of the UUIDs the ledger has."""
    rows = engines.select(connection, _STORED, aggregates)
    return frozenset(uuid for uuid, in rows)


def insert_missing(connection: Any, aggregates: frozenset[str], now: float
                   ) -> None:
    """Add the UUIDs that the ledger does not have yet."""
    additions = sorted(aggregates - read_stored(connection, aggregates))
    if additions:
        # Another controller may insert the same UUID concurrently.
        connection.execute(models.insert_new(connection, models.ledger), [
            {'aggregate_uuid': uuid, 'created_at': now} for uuid in additions])
