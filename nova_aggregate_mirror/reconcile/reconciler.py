# SPDX-License-Identifier: Apache-2.0
"""Reconciliation of dirty hosts, journal rows and deleted aggregates."""

from collections import abc
import dataclasses
import functools
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes

Mode = provider_writes.Mode
Statement = abc.Callable[[list[str]], object]
"""A function that writes to the journal rows with these IDs."""
MOST_TIMEOUTS = 3
"""Waits for locks that time out in one step before it skips the rest."""


class Reconciler(provider_writes.Context):
    """Writes to placement about many hosts, for agent and operator."""

    remove = provider_writes.remove

    def converge(self, dirty_hosts: abc.Iterable[journal.Dirty],
                 mode: Mode = Mode()) -> outcome.Outcome:
        # A host may have several rows, each with its own nodes.
        remaining = sorted(frozenset(dirty_hosts), key=lambda dirty: (
            dirty.host, dirty.request_id, sorted(dirty.nodes)))
        result = outcome.Outcome()
        while remaining:
            batch = remaining[:self.batch]
            del remaining[:self.batch]
            partial = provider_writes.converge(self, batch, mode)
            result.merge(partial)
            if partial.outage and not partial.done:
                # Further batches would wait for the same outage or stop.
                reason = exceptions.NotTried.because_of(partial.outage)
                for dirty in remaining:
                    host = outcome.Subject(outcome.HOST, dirty.host)
                    result.failed[host] = result.hosts[dirty] = reason
                break
            conflicts = [error for error in partial.failed.values()
                         if isinstance(error, exceptions.GenerationConflict)]
            if len(conflicts) > provider_writes.MAX_FUTILE:
                # The next batches wait for no more conflicts.
                mode = dataclasses.replace(mode, again_after_conflict=False)
        return result


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

    def write(self, statement: Statement, rows: abc.Iterable[str]) -> None:
        """Write to rows; add to ``locked`` what is locked or was not tried.

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

    def _attempt(self, statement: Statement, ids: list[str]
                 ) -> exceptions.JournalLocked | None:
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


def drain(mirror: Reconciler, rows: abc.Collection[journal.Row],
          locks: RowLocks | None = None, patience: float = math.inf
          ) -> outcome.Outcome:
    """Converge the hosts of these rows; close the rows handed over.

    The row of an operation that may still run is converged and kept.

    :param patience: see ``provider_writes.Mode``
    """
    locks = locks or RowLocks()
    running = [row for row in rows if row.running]
    handed_over = [row for row in rows if not row.running]
    result = mirror.converge((row.dirty for row in handed_over),
                             Mode(always=True, patience=patience))
    if mirror.rows:
        _write_in_sync(result, handed_over, locks, mirror.rows.close)
    # A host that a row handed over has, too, has been converged above.
    others = {row.dirty for row in running} - result.hosts.keys()
    result.merge(mirror.converge(others, Mode(patience=patience)))
    # A failure clears ``mirrored_at``; a stop, or a cell that does not answer
    # but may have nodes of the host, does not.
    failed = {
        dirty for dirty, error in result.unfinished.items()
        if not isinstance(error, exceptions.Stopped)} - waiting(result)
    unmirrored = [row.id for row in rows if row.mirrored_at is not None
                  and row.dirty in failed]
    if mirror.rows:
        write_journal(result, functools.partial(
            locks.write, mirror.rows.set_pending, unmirrored))
        _write_in_sync(result, running, locks, mirror.rows.set_mirrored)
    for error in locks.locked.values():
        result.failed.setdefault(outcome.JOURNAL, error)
    return result


def _write_in_sync(result: outcome.Outcome, rows: abc.Iterable[journal.Row],
                   locks: RowLocks, statement: Statement) -> None:
    """Write to those of the rows that are in sync.

    If that fails, none of them is known to be, so that each is tried again.
    """
    ids = [row.id for row in rows if not result.hosts[row.dirty]]
    failure = write_journal(result, lambda: locks.write(statement, ids))
    if failure:
        for row in rows:
            result.hosts[row.dirty] = result.hosts[row.dirty] or failure


def waiting(result: outcome.Outcome) -> set[journal.Dirty]:
    """Return the unfinished dirty hosts whose own cells have answered.

    They are in sync but for nodes that another, silent cell may have.
    """
    return {dirty for dirty, error in result.unfinished.items()
            if outcome.Subject(outcome.HOST, dirty.host) not in result.failed
            and isinstance(error, exceptions.CellUnavailable)}


def write_journal(result: outcome.Outcome, write: abc.Callable[[], None]
                  ) -> exceptions.MirrorError | None:
    """Write to the journal; record a failure, and return it."""
    failure = exceptions.failure_of(write, exceptions.JournalUnavailable)
    if failure:
        # Changes made in placement must still be reported.
        result.failed[outcome.JOURNAL] = failure
    return failure
