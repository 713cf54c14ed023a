# SPDX-License-Identifier: Apache-2.0
"""The ledger: which aggregate UUIDs are, or once were, nova's."""

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


class NoLedger:
    """The ledger of a deployment without a journal: only nova's own."""

    def entries(self) -> Mapping[str, journal.Entry]:
        return {}

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def remember(self, aggregates: Iterable[str]) -> None:
        pass

    def observe(self, present: Iterable[str], empty: Iterable[str]) -> None:
        pass


class DatabaseLedger:
    """The ledger in the journal's database.

    Every method raises ``JournalUnavailable`` when the database cannot be
    used.

    :param conf: nova's configuration, with this package's options
    :param now: seconds since the epoch
    :param clock: seconds of a clock that is never set
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
        """UUIDs that this process has seen in the ledger. They stay there
        for as long as nova has them."""
        self._marks: dict[tuple[str, float], float] = {}
        """Marks of UUIDs that nova still has, to when this process first saw
        them: the clocks of two hosts are never compared."""

    def entries(self) -> Mapping[str, journal.Entry]:
        """Read every UUID."""
        now, found = self._now(), self._database.run(queries.ledger)
        self._entered = frozenset(row.aggregate_uuid for row in found)
        return {row.aggregate_uuid: journal.Entry(
            row.deleted_at is not None,
            0.0 if row.absent_since is None
            else max(0.0, now - row.absent_since)) for row in found}

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        """Read which of these UUIDs are there."""
        wanted = frozenset(aggregates)
        if not wanted:
            return wanted
        return self._database.run(
            lambda connection: queries.known(connection, wanted))

    def remember(self, aggregates: Iterable[str]) -> None:
        """Enter UUIDs of nova aggregates."""
        wanted = frozenset(aggregates)
        if not wanted <= self._entered:
            with self.entering(wanted) as enter:
                self._database.run(enter)

    @contextlib.contextmanager
    def entering(self, aggregates: Iterable[str]
                 ) -> Iterator[Callable[[Any], None]]:
        """Enter UUIDs in a transaction of the caller.

        :returns: what is to be called with the connection; the transaction
            must be committed when the context is left
        """
        wanted, now = frozenset(aggregates), self._now()
        missing = wanted - self._entered
        yield lambda connection: queries.remember(connection, missing, now)
        self._entered |= wanted

    def mark(self, aggregate: str) -> None:
        """Mark the UUID of an aggregate that a user is about to delete."""
        now = self._now()
        self._database.run(
            lambda connection: queries.mark(connection, aggregate, now))
        self._entered |= {aggregate}

    def observe(self, present: Iterable[str], empty: Iterable[str]) -> None:
        """Note what a full sync of everything saw.

        A UUID that was absent for ``forget_after`` seconds, and that no
        provider is in any more, leaves the ledger. A mark that is older than
        any call of nova-api and whose aggregate is still there is cleared.

        :param present: UUIDs of nova's aggregates
        :param empty: UUIDs that no provider is in
        """
        present, empty, now = frozenset(present), frozenset(empty), self._now()
        oldest = now - self._conf.aggregate_mirror.forget_after

        def work(connection: Any) -> frozenset[str]:
            found = {row.aggregate_uuid: row
                     for row in queries.ledger(connection)}
            since = {uuid: row.absent_since for uuid, row in found.items()}
            absent = since.keys() - present
            # What was noted before the clock was set back is noted again.
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
        """Those of these marks that no running call can have made."""
        clock = self._clock()
        self._marks = {mark: self._marks.get(mark, clock)
                       for mark in marks.items()}
        longest = self._conf.aggregate_mirror.max_call_age
        return {uuid: deleted_at for (uuid, deleted_at), first
                in self._marks.items() if clock - first >= longest}
