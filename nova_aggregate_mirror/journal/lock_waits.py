# SPDX-License-Identifier: Apache-2.0
"""Writes to many journal rows, some of them locked by other sessions."""

from collections import abc

from nova_aggregate_mirror import exceptions

MOST_TIMEOUTS = 3
"""Waits for locks that time out in one step before it skips the rest."""


class RowLocks:
    """Writes of one step to many rows; a locked row is only its own failure.

    A server keeps the locks of a client that lost its power for hours. If a
    statement about many rows waits in vain, each is written by itself.
    """

    def __init__(self) -> None:
        self.locked: dict[str, exceptions.JournalLocked] = {}
        """Rows that could not be written, to the reason."""
        self.waited: set[str] = set()
        """Those whose own transaction waited in vain for the lock."""
        self._waits_left = MOST_TIMEOUTS
        self._last_error: exceptions.JournalLocked | None = None

    def write(self, statement: abc.Callable[[list[str]], object],
              rows: abc.Iterable[str]) -> None:
        """Write to rows; add to ``locked`` what is locked or was not tried.

        :param statement: writes to the rows with these IDs
        :param rows: IDs, in the order in which single rows are written
        """
        ids = [row for row in rows if row not in self.locked]
        error = self._attempt(statement, ids) if ids else None
        if error is None:
            return
        for row in ids:
            if len(ids) > 1:  # A single row has just been tried by itself.
                error = self._attempt(statement, [row])
            if error:
                self.locked[row] = error

    def _attempt(self, statement: abc.Callable[[list[str]], object],
                 ids: list[str]) -> exceptions.JournalLocked | None:
        """Write while waits are left; return the error of a wait in vain."""
        if not self._waits_left:
            return self._last_error
        try:
            statement(ids)
        except exceptions.JournalLocked as exc:
            self._waits_left -= 1
            self._last_error = exc
            if len(ids) == 1:  # Any of several rows may be the locked one.
                self.waited.update(ids)
            return exc
        return None
