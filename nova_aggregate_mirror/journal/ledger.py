# SPDX-License-Identifier: Apache-2.0
"""Ledger of current and former UUIDs of nova aggregates."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import math
import time
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions


class DatabaseLedger:
    """Ledger in the journal's database.

    Every method raises ``JournalUnavailable`` when the database is
    unavailable.

    :param conf: nova's configuration, with this package's options
    :param now: the wall clock, in seconds since the epoch
    :param clock: a monotonic clock, in seconds
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 database: transactions.Transactions,
                 now: Callable[[], float] = time.time,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._conf = conf
        self._database = database
        self._now = now
        self._clock = clock
        self._entered: frozenset[str] = frozenset()
        """UUIDs that this process has seen in the ledger. The ledger keeps
        them while nova has them."""
        self._owed: set[str] = set()
        """UUIDs that could not be entered. Operations are mirrored without
        the journal, too, and a UUID that is only in placement is foreign."""
        self._marks: dict[tuple[str, float], float] = {}
        """Marks of UUIDs that nova still has, to when this process first saw
        them, because the clocks of different hosts are never compared."""

    def entries(self) -> Mapping[str, journal.Entry]:
        """Read all entries, keyed by UUID."""
        now, found = self._now(), self._database.run(queries.ledger)
        self._entered = frozenset(row.aggregate_uuid for row in found)
        return {row.aggregate_uuid: journal.Entry(
            row.deleted_at is not None,
            0.0 if row.absent_since is None
            else max(0.0, now - row.absent_since)) for row in found}

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        """Return those of the given UUIDs that the ledger has."""
        wanted = frozenset(aggregates)
        if not wanted:
            return wanted
        return self._database.run(
            lambda connection: queries.known(connection, wanted))

    def remember(self, aggregates: Iterable[str]) -> None:
        """Add UUIDs of nova aggregates to the ledger."""
        wanted = frozenset(aggregates)
        if not wanted <= self._entered:
            with self.entering(wanted) as enter:
                self._database.run(enter)

    def owe(self, aggregates: Iterable[str]) -> None:
        """Add UUIDs in the next transaction that adds any."""
        self._owed |= frozenset(aggregates) - self._entered

    @contextlib.contextmanager
    def entering(self, aggregates: Iterable[str]
                 ) -> Iterator[Callable[[Any], None]]:
        """Add UUIDs in a transaction of the caller.

        If it is not committed, a later transaction adds them.

        :returns: a function to call with the connection; the transaction
            must be committed before the context exits
        """
        now = self._now()
        self.owe(aggregates)
        missing = frozenset(self._owed)
        yield lambda connection: queries.remember(connection, missing, now)
        self._entered |= missing
        self._owed -= missing

    def mark(self, aggregate: str) -> None:
        """Mark the UUID of an aggregate that a user is deleting.

        This is attempted during a back-off, too: later, nothing but the mark
        may show that the UUID was nova's.
        """
        now = self._now()
        self._owed.add(aggregate)
        self._database.run(
            lambda connection: queries.mark(connection, aggregate, now),
            insist=True)
        self._entered |= {aggregate}
        self._owed.discard(aggregate)

    def observe(self, present: Iterable[str], empty: Iterable[str]) -> None:
        """Record the result of an unrestricted full sync.

        A UUID that has been absent for ``forget_after`` seconds, and whose
        aggregate has no providers any more, is deleted from the ledger. A
        mark older than ``max_call_age`` seconds is cleared if nova still has
        the aggregate.

        :param present: UUIDs of nova's aggregates
        :param empty: UUIDs of aggregates without providers
        """
        present, empty, now = frozenset(present), frozenset(empty), self._now()
        oldest = now - self._conf.aggregate_mirror.forget_after

        def work(connection: Any) -> frozenset[str]:
            found = {row.aggregate_uuid: row
                     for row in queries.ledger(connection)}
            since = {uuid: row.absent_since for uuid, row in found.items()}
            absent = since.keys() - present
            # A time in the future was recorded before the clock was set back.
            queries.set_absent(connection, [
                uuid for uuid in absent
                if since[uuid] is None or since[uuid] > now], now)
            queries.set_absent(connection, [
                uuid for uuid in since.keys() & present
                if since[uuid] is not None], None)
            forgotten = frozenset(
                uuid for uuid in absent & empty
                if (math.inf if since[uuid] is None else since[uuid]) < oldest)
            queries.forget(connection, forgotten)
            queries.unmark(connection, self._outdated({
                uuid: found[uuid].deleted_at for uuid in found.keys() & present
                if found[uuid].deleted_at is not None}))
            return forgotten

        self._entered -= self._database.run(work)

    def _outdated(self, marks: Mapping[str, float]) -> Mapping[str, float]:
        """Return the marks that are older than any running call."""
        clock = self._clock()
        self._marks = {mark: self._marks.get(mark, clock)
                       for mark in marks.items()}
        longest = self._conf.aggregate_mirror.max_call_age
        return {uuid: deleted_at for (uuid, deleted_at), first
                in self._marks.items() if clock - first >= longest}
