# SPDX-License-Identifier: Apache-2.0
"""The ledger, as full syncs read and update it."""

from collections import abc
import time
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror import uuids

FORGET_AFTER = 7 * 24 * 3600
"""Seconds for which an absent UUID stays, so that a late write is owned."""
_ENTRIES = sa.select(models.ledger)
_UNMARK = sa.update(models.ledger).where(
    ledger.ONE_UUID, models.ledger.c.deleted_at == sa.bindparam('mark')
).values(deleted_at=None)
_SET_ABSENT = sa.update(models.ledger).where(ledger.SOME_UUIDS).values(
    absent_since=sa.bindparam('since'))
_FORGET = sa.delete(models.ledger).where(ledger.SOME_UUIDS)


class SyncedLedger(ledger.DatabaseLedger, journal.Ledger):
    """Ledger with the absences of aggregates from nova."""

    def __init__(self, conf: cfg.ConfigOpts, database: engine.Database,
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        super().__init__(database, now)
        self._conf, self._clock = conf, clock
        self._marks: dict[tuple[str, float], float] = {}
        """Marks of UUIDs that nova still has, to when this process first saw
        them, because the clocks of different hosts are never compared."""

    def entries(self) -> abc.Mapping[str, journal.LedgerEntry]:
        now, entries = self._now(), {}
        for row in self._database.read(_ENTRIES):
            if uuids.is_uuid(row.aggregate_uuid):
                since = now if row.absent_since is None else row.absent_since
                entries[row.aggregate_uuid] = journal.LedgerEntry(
                    deleted=row.deleted_at is not None,
                    absent=max(0.0, now - since))
        self._cache = frozenset(entries)
        return entries

    def observe(self, present: abc.Iterable[str], empty: abc.Iterable[str]
                ) -> None:
        """Record the result of an unrestricted full sync.

        A UUID that is absent for ``FORGET_AFTER`` and has no provider is
        deleted, as is a text that is no UUID, from before this was checked. A
        mark older than ``max_call_age`` is cleared if nova has the aggregate.
        """
        present, empty, now = frozenset(present), frozenset(empty), self._now()

        def work(connection: Any) -> set[str]:
            forgotten, newly_absent, returned = set(), [], []
            marks: dict[str, float] = {}
            for row in connection.execute(_ENTRIES).all():
                uuid, since = row.aggregate_uuid, row.absent_since
                if not uuids.is_uuid(uuid):
                    forgotten.add(uuid)
                elif uuid in present:
                    if since is not None:
                        returned.append(uuid)
                    if row.deleted_at is not None:
                        marks[uuid] = row.deleted_at
                elif since is None or since > now:
                    # ``since`` is in the future after a clock was set back.
                    newly_absent.append(uuid)
                elif uuid in empty and since < now - FORGET_AFTER:
                    forgotten.add(uuid)
            engine.write(connection, _SET_ABSENT, newly_absent, since=now)
            engine.write(connection, _SET_ABSENT, returned, since=None)
            engine.write(connection, _FORGET, forgotten)
            # A mark is cleared only if it is still the one that was read.
            for uuid, deleted_at in sorted(self._watch(marks).items()):
                connection.execute(_UNMARK, {'uuid': uuid, 'mark': deleted_at})
            return forgotten

        forgotten = self._database.run(work)
        self._cache -= forgotten

    def _watch(self, marks: abc.Mapping[str, float]) -> dict[str, float]:
        """Note new marks; return those older than any running call."""
        now = self._clock()
        # A second deletion of an aggregate has a time, and an age, of its own.
        self._marks = {mark: self._marks.get(mark, now)
                       for mark in marks.items()}
        longest = self._conf.aggregate_mirror.max_call_age
        return {uuid: deleted_at for (uuid, deleted_at), seen_at
                in self._marks.items() if now - seen_at >= longest}
