# SPDX-License-Identifier: Apache-2.0
"""Writes to many journal rows, some of them locked by other sessions."""

from collections import abc

from nova_aggregate_mirror import exceptions

LOCK_WAIT = 1.0
"""Seconds that a write waits for the lock of a row."""
LOST_WAITS = 3
"""Waits for locks that the writes of one step lose at most."""


class RowLocks:
    """Writes of one step to many rows; a locked row is only its own failure.

    A server keeps the locks of a client that lost its power for hours, and a
    statement about many rows waits for each of them. If it waits in vain, each
    row is written in a transaction of its own.
    """

    def __init__(self) -> None:
        self.locked: dict[str, exceptions.JournalLocked] = {}
        """Rows that could not be written, to the reason."""
        self.waited: set[str] = set()
        """Those of them whose own transaction waited; no time was left for
        the others."""
        self._left = LOST_WAITS
        self._error: exceptions.JournalLocked | None = None

    def write(self, statement: abc.Callable[[list[str], float], object],
              rows: abc.Iterable[str]) -> None:
        """Write to those of the rows that no other session locks.

        :param statement: takes IDs, and the seconds to wait for a lock
        :param rows: IDs, in the order in which single rows are written
        """
        ids = [row for row in rows if row not in self.locked]
        error = self._error if not self._left else self._attempt(
            statement, ids)
        if error is None:
            return
        for row in ids:
            lost: exceptions.JournalLocked | None = error
            if self._left and len(ids) > 1:
                lost = self._attempt(statement, [row])
            if lost:
                self.locked[row] = lost

    def _attempt(self, statement: abc.Callable[[list[str], float], object],
                 ids: list[str]) -> exceptions.JournalLocked | None:
        try:
            if ids:
                statement(ids, LOCK_WAIT)
        except exceptions.JournalLocked as exc:
            self._left -= 1
            self._error = exc
            if len(ids) == 1:
                self.waited.update(ids)
            return exc
        return None
