# SPDX-License-Identifier: Apache-2.0
"""Which of several agents leads: a lease row in the journal's database."""

from collections.abc import Callable
import time

from oslo_utils import uuidutils

from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions

NAME = 'agent'


class Lease:
    """One agent's share in the contest.

    The clocks of two hosts are never compared: an agent that does not lead
    watches the row, and takes it when it has not changed for as long as it
    says itself. Every method raises ``JournalUnavailable`` when the database
    cannot be used.

    :param seconds: how long a lease lasts that is not renewed
    :param now: seconds of a clock that is never set
    """

    def __init__(self, database: transactions.Transactions, seconds: float,
                 now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._seconds = seconds
        self._now = now
        self._holder = uuidutils.generate_uuid()
        self._seen: queries.Lease | None = None
        self._since = 0.0

    def step(self) -> bool:
        """Renew the lease or try to get it.

        :returns: whether this agent leads
        """
        seen = read(self._database)
        if not self._is_free(seen):
            return False
        return self._database.run(lambda connection: queries.take_lease(
            connection, NAME, seen, self._holder, self._seconds))

    def leave(self) -> None:
        """Let another agent lead at once, if this one does."""
        self._database.run(lambda connection: queries.leave_lease(
            connection, NAME, self._holder))

    def _is_free(self, lease: queries.Lease | None) -> bool:
        if lease is None or lease[0] in ('', self._holder):
            return True
        if lease != self._seen:
            self._seen, self._since = lease, self._now()
        return self._now() - self._since >= lease[2]


def read(database: transactions.Transactions) -> queries.Lease | None:
    """Read holder, renewals and seconds of the lease; None without any."""
    return database.run(lambda connection: queries.lease(connection, NAME))
