# SPDX-License-Identifier: Apache-2.0
"""Writes to many journal rows, some of them locked by other sessions."""

from collections import abc

from nova_aggregate_mirror import exceptions

MOST_TIMEOUTS = 3
"""Waits for locks that time out in one step before it skips the rest."""


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
        self._waits_left = MOST_TIMEOUTS
        self._last_error: exceptions.JournalLocked | None = None

    def write(self, statement: abc.Callable[[list[str]], object],
              rows: abc.Iterable[str]) -> None:
        """Write to rows; ``locked`` gets those that are, or were not tried.

        :param statement: writes to the rows with these IDs
        :param rows: IDs, in the order in which single rows are written
        """
        ids = [row for row in rows if row not in self.locked]
        error = (self._attempt(statement, ids) if self._waits_left
                 else self._last_error)
        if error is None:
            return
        for row in ids:
            # A single row has just been tried by itself.
            row_error = (self._attempt(statement, [row])
                         if self._waits_left and len(ids) > 1 else error)
            if row_error:
                self.locked[row] = row_error

    def _attempt(self, statement: abc.Callable[[list[str]], object],
                 ids: list[str]) -> exceptions.JournalLocked | None:
        """Write to the rows; return the error if the wait timed out."""
        try:
            if ids:
                statement(ids)
        except exceptions.JournalLocked as exc:
            self._waits_left -= 1
            self._last_error = exc
            if len(ids) == 1:  # Of several, it is not known which.
                self.waited.update(ids)
            return exc
        return None
