# SPDX-License-Identifier: Apache-2.0
"""Journal rows: one for each operation that placement may not show yet."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import time
from typing import Any

from oslo_utils import uuidutils

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.journal import ledger

# Characters of an error; more help nobody, and a column is as long as it is.
ERROR_LENGTH = 1000


class Rows:
    """The journal rows, for nova-api, the agent and the commands.

    Every method raises ``JournalUnavailable`` when the database cannot be
    used; nothing was written then, unless only the answer to the COMMIT was
    lost.

    :param ledger: is fed in the transaction that writes a row
    :param now: seconds since the epoch
    """

    def __init__(self, database: transactions.Transactions,
                 ledger: ledger.DatabaseLedger,
                 now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._ledger = ledger
        self._now = now

    def make(self, dirty: journal.Dirty) -> journal.Row:
        """Make the row of an operation that begins; nothing is written."""
        return journal.Row(
            id=uuidutils.generate_uuid(), dirty=dirty, running=True,
            created_at=self._now())

    def record(self, row: journal.Row, aggregates: Iterable[str] = ()) -> None:
        """Write a row; durable on return.

        :param aggregates: UUIDs of nova aggregates that enter the ledger in
            the same transaction
        """
        with self._ledger.entering(aggregates) as enter:
            def work(connection: Any) -> None:
                enter(connection)
                _insert(connection, row)

            self._database.run(work)

    def close(self, ids: Iterable[str]) -> int:
        """Close rows: placement shows what they were about.

        :returns: how many were there
        """
        ids = sorted(ids)
        return self._database.run(
            lambda connection: queries.delete(connection, ids))

    def hand_over(self, row: journal.Row, error: str) -> None:
        """Leave a row to the agent: its operation has ended.

        A row that is not there is written, because it is not known whether
        ``record`` wrote it.
        """
        error = storable(error)

        def work(connection: Any) -> None:
            if not queries.hand_over(connection, row.id, error):
                _insert(connection, dataclasses.replace(
                    row, running=False, attempts=1, last_error=error))

        self._database.run(work)

    def failed(self, errors: Mapping[str, str]) -> None:
        """Note why rows could not be mirrored: they are pending."""
        errors = {row: storable(error) for row, error in errors.items()}
        self._database.run(
            lambda connection: queries.failed(connection, errors))

    def mirrored(self, ids: Iterable[str]) -> None:
        """Note that rows are mirrored, and stay because they may run."""
        ids, now = sorted(ids), self._now()
        self._database.run(
            lambda connection: queries.mirrored(connection, ids, now))

    def not_mirrored(self, ids: Iterable[str]) -> None:
        """Note that rows that were mirrored may not be any more."""
        ids = sorted(ids)
        self._database.run(
            lambda connection: queries.not_mirrored(connection, ids))

    def retry(self, ids: Iterable[str]) -> int:
        """Let the agent try rows that failed at once.

        :returns: how many had failed
        """
        ids = sorted(ids)
        return self._database.run(
            lambda connection: queries.retry(connection, ids))

    def all(self) -> list[journal.Row]:
        """Read every row, oldest first."""
        return [_row(found) for found in self._database.run(queries.rows)]

    def some(self, ids: Iterable[str]) -> list[journal.Row]:
        """Read those of these rows that are still there."""
        ids = sorted(ids)
        return [_row(found) for found in self._database.run(
            lambda connection: queries.these(connection, ids))]

    def briefs(self) -> list[journal.Brief]:
        """Read what tells when each row is due, oldest row first."""
        return [journal.Brief(found.id, found.running, found.attempts,
                              found.mirrored_at is None)
                for found in self._database.run(queries.briefs)]

    def backlog(self) -> journal.Backlog:
        """Read how much is left.

        The age is by the clocks of the hosts that wrote the rows.
        """
        count, mirrored, began = self._database.run(queries.backlog)
        return journal.Backlog(
            count - mirrored, mirrored,
            0.0 if began is None else max(0.0, self._now() - began))


def storable(text: str, length: int = ERROR_LENGTH) -> str:
    """Make a text fit for every database, whatever its character set.

    :param length: characters that are kept
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


def _row(found: Any) -> journal.Row:
    return journal.Row(
        id=found.id, running=found.running, created_at=found.created_at,
        attempts=found.attempts, last_error=found.last_error,
        mirrored_at=found.mirrored_at,
        dirty=journal.Dirty(host=found.host, nodes=frozenset(
            filter(None, found.nodes.split(','))),
            request_id=found.request_id))
