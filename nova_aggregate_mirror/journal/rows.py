# SPDX-License-Identifier: Apache-2.0
"""Journal rows: one per operation that placement may not reflect yet."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import time
from typing import Any

from oslo_utils import uuidutils

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.journal import presence
from nova_aggregate_mirror import uuids

# Characters of an error that are stored.
ERROR_LENGTH = 1000


class Rows:
    """Journal rows, for nova-api, the agent and the commands.

    Every method raises ``JournalUnavailable`` when the database is
    unavailable; nothing was written then, unless only the response to the
    COMMIT was lost.

    :param ledger: updated in the transaction that writes a row
    :param now: the wall clock, in seconds since the epoch
    :param presence: the row of a nova-api process, written with its records
    """

    def __init__(self, database: transactions.Transactions,
                 ledger: ledger.DatabaseLedger,
                 now: Callable[[], float] = time.time,
                 presence: presence.Presence | None = None) -> None:
        self._database = database
        self._ledger = ledger
        self._now = now
        self._presence = presence

    def make(self, dirty: journal.Dirty) -> journal.Row:
        """Build the row of a new operation without writing it."""
        return journal.Row(
            id=uuidutils.generate_uuid(), dirty=dirty, running=True,
            created_at=self._now())

    def record(self, row: journal.Row, aggregates: Iterable[str] = ()) -> None:
        """Write a row; it is durable on return.

        :param aggregates: UUIDs of nova aggregates, added to the ledger in
            the same transaction
        """
        with self._ledger.addition(aggregates) as add, (
                self._presence.addition() if self._presence
                else contextlib.nullcontext()) as write:
            def work(connection: Any) -> None:
                add(connection)
                _insert(connection, row)
                if write:
                    write(connection)

            self._database.run(work)

    def close(self, ids: Iterable[str], lock_wait: float | None = None
              ) -> int:
        """Delete rows whose operations placement reflects.

        :param lock_wait: see ``Transactions.run``
        :returns: how many rows existed
        """
        ids = sorted(ids)
        return self._database.run(
            lambda connection: queries.delete(connection, ids),
            lock_wait=lock_wait)

    def hand_over(self, row: journal.Row, error: str) -> None:
        """Hand the row of a finished operation over to the agent.

        A missing row is inserted: when ``record`` fails, it is not known
        whether the row was written.
        """
        error = storable(error)

        def work(connection: Any) -> None:
            if not queries.hand_over(connection, row.id, error):
                _insert(connection, dataclasses.replace(
                    row, running=False, attempts=1, last_error=error))

        self._database.run(work)

    def set_failed(self, errors: Mapping[str, str],
                   lock_wait: float | None = None,
                   mirrored: Collection[str] = ()) -> None:
        """Record why rows could not be mirrored; they become pending.

        :param lock_wait: see ``Transactions.run``
        :param mirrored: rows that are in sync but for what a cell that does
            not answer may have: they stay in the journal, but not as pending
        """
        now = self._now()
        values = [(row, storable(error), now if row in mirrored else None)
                  for row, error in sorted(errors.items())]
        self._database.run(
            lambda connection: queries.set_failed(connection, values),
            lock_wait=lock_wait)

    def set_mirrored(self, ids: Iterable[str], lock_wait: float | None = None
                     ) -> None:
        """Record that running rows are mirrored; they stay in the journal.

        :param lock_wait: see ``Transactions.run``
        """
        ids, now = sorted(ids), self._now()
        self._database.run(
            lambda connection: queries.set_mirrored(connection, ids, now),
            lock_wait=lock_wait)

    def set_pending(self, ids: Iterable[str], lock_wait: float | None = None
                    ) -> None:
        """Record that rows may be out of sync again; they become pending.

        :param lock_wait: see ``Transactions.run``
        """
        ids = sorted(ids)
        self._database.run(
            lambda connection: queries.set_pending(connection, ids),
            lock_wait=lock_wait)

    def retry(self, ids: Iterable[str]) -> int:
        """Make failed rows due immediately.

        :returns: how many rows had failed
        """
        ids = sorted(ids)
        return self._database.run(
            lambda connection: queries.retry(connection, ids))

    def all(self) -> list[journal.Row]:
        """Read every row, oldest first."""
        return list(map(_row, self._database.run(queries.rows)))

    def get(self, ids: Iterable[str]) -> list[journal.Row]:
        """Read the given rows that still exist."""
        ids = sorted(ids)
        return list(map(_row, self._database.run(
            lambda connection: queries.rows_of(connection, ids))))

    def has_others(self, ids: Iterable[str]) -> bool:
        """Check whether the journal has any row except the given rows."""
        ids = sorted(ids)
        return self._database.run(
            lambda connection: queries.has_others(connection, ids))

    def briefs(self) -> list[journal.Brief]:
        """Read what decides when each row is due, oldest row first."""
        return [journal.Brief(row.id, row.running, row.attempts,
                              row.mirrored_at is None)
                for row in self._database.run(queries.briefs)]

    def extent(self) -> tuple[int, int, float]:
        """Return (rows, running rows, created_at of the latest row).

        The time is that of the host that wrote it; 0 without rows.
        """
        count, running, latest = self._database.run(queries.extent)
        return count, running, latest or 0.0

    def backlog(self) -> journal.Backlog:
        """Count the operations that are still in the journal.

        The age depends on the clocks of the hosts that wrote the rows.
        """
        count, mirrored, oldest = self._database.run(queries.backlog)
        return journal.Backlog(
            count - mirrored, mirrored,
            0.0 if oldest is None else max(0.0, self._now() - oldest))


def storable(text: str, length: int = ERROR_LENGTH) -> str:
    """Convert a text to ASCII, for databases of any character set.

    :param length: maximum number of characters
    """
    plain = text[:length].replace('\0', r'\x00')
    return plain.encode('ascii', 'backslashreplace').decode()[:length]


def _insert(connection: Any, row: journal.Row) -> None:
    queries.insert(
        connection, id=row.id, host=row.dirty.host,
        nodes=','.join(sorted(row.dirty.nodes)),
        request_id=row.dirty.request_id, running=row.running,
        created_at=row.created_at, attempts=row.attempts,
        last_error=row.last_error, mirrored_at=row.mirrored_at)


def _row(row: Any) -> journal.Row:
    return journal.Row(
        id=row.id, running=row.running, created_at=row.created_at,
        attempts=row.attempts, last_error=row.last_error,
        mirrored_at=row.mirrored_at,
        dirty=journal.Dirty(host=row.host, nodes=frozenset(
            map(uuids.canonical, filter(None, row.nodes.split(',')))),
            request_id=row.request_id))
