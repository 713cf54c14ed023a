# SPDX-License-Identifier: Apache-2.0
"""Leader election of the agents: a lease row in the journal's database."""

from collections.abc import Callable
import time

from oslo_utils import uuidutils

from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions

NAME = 'agent'


class Lease:
    """Candidacy of one agent for the lease.

    The clocks of different hosts are never compared: an agent that does not
    lead watches the row, and takes the lease when the row has not changed for
    the number of seconds that the row states. Every method raises
    ``JournalUnavailable`` when the database is unavailable.

    :param seconds: how long a lease lasts without renewal
    :param now: a monotonic clock, in seconds
    """

    def __init__(self, database: transactions.Transactions, seconds: float,
                 now: Callable[[], float] = time.monotonic) -> None:
        self.renewal = seconds / 3
        """Seconds between renewals: two may fail."""
        self._database = database
        self._seconds = seconds
        self._now = now
        self._holder = uuidutils.generate_uuid()
        self._held: queries.Lease | None = None
        """The lease as this agent has last written it; None if another agent
        may have written since."""
        self._seen: queries.Lease | None = None
        self._since = 0.0

    def step(self) -> bool:
        """Renew the lease or try to take it.

        :returns: whether this agent leads
        """
        # Only the holder writes: what it has written need not be read.
        held, self._held = self._held, None
        if held and self._take(held):
            return True
        seen = read(self._database)
        return self._is_free(seen) and self._take(seen)

    def leave(self) -> None:
        """Release the lease, if this agent holds it."""
        self._database.run(lambda connection: queries.leave_lease(
            connection, NAME, self._holder))

    def _take(self, seen: queries.Lease | None) -> bool:
        """Take the lease unless it has changed since ``seen``."""
        taken = self._database.run(lambda connection: queries.take_lease(
            connection, NAME, seen, self._holder, self._seconds))
        if taken:
            self._held = (
                self._holder, seen[1] + 1 if seen else 1, self._seconds)
        return taken

    def _is_free(self, lease: queries.Lease | None) -> bool:
        if lease is None or lease[0] in ('', self._holder):
            return True
        if lease != self._seen:
            self._seen, self._since = lease, self._now()
        return self._now() - self._since >= lease[2]


def read(database: transactions.Transactions) -> queries.Lease | None:
    """Read holder, renewals and seconds of the lease; None without a lease."""
    return database.run(lambda connection: queries.lease(connection, NAME))
