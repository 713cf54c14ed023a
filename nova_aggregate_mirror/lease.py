# SPDX-License-Identifier: Apache-2.0
"""Which of several agents leads: a lease row in the journal's database."""

from collections.abc import Callable
import time

from nova_aggregate_mirror import journal as mirror_journal


class Lease:
    """One agent's share in the contest.

    The clocks of two hosts are never compared: who does not lead watches the
    row, and takes it when it has not changed for as long as it says itself.

    :param name: of the lease
    :param seconds: how long a lease lasts that is not renewed
    :param now: seconds of a clock that is never set
    """

    def __init__(self, journal: mirror_journal.Journal, name: str,
                 seconds: float,
                 now: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._name = name
        self._seconds = seconds
        self._now = now
        self._seen: tuple[str, int, float] | None = None
        self._since = 0.0

    def step(self) -> bool:
        """Renew the lease or try to get it; whether this agent leads now.

        :raises JournalUnavailable: when nobody can tell
        """
        lease = self._journal.lease(self._name)
        if not self._journal.holds(lease) and not self._is_free(lease):
            return False
        return self._journal.take_lease(self._name, lease, self._seconds)

    def leave(self) -> None:
        """Let another agent lead at once."""
        self._journal.leave_lease(self._name)

    def _is_free(self, lease: tuple[str, int, float] | None) -> bool:
        if lease is None or not lease[0] or self._journal.is_dead(lease[0]):
            return True
        if lease != self._seen:
            self._seen, self._since = lease, self._now()
        return self._now() - self._since >= lease[2]
