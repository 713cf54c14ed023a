# SPDX-License-Identifier: Apache-2.0
"""Reconciliation of journal rows, dirty hosts and deleted aggregates."""

from collections import abc
import dataclasses
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror import source

HOST, JOURNAL = outcome.HOST, outcome.JOURNAL
Mode = provider_writes.Mode
Outcome = outcome.Outcome
Subject = outcome.Subject


class Reconciler(context.Context):
    """Single code path to placement for hook, agent and operator."""

    remove = provider_writes.remove

    def converge_and_close(
            self, rows: abc.Iterable[journal.Row],
            before: source.Memberships | None = None,
            close: abc.Callable[[list[str]], object] | None = None,
            patience: float = math.inf) -> Outcome:
        """Converge the hosts of these rows, and close the rows in sync.

        :param rows: rows that were handed over before this call, or the
            caller's own rows; no other row may be closed
        :param before: provider to the aggregates that nova had for it before
            the caller's own operation; with the same after it, it is not
            written
        :param close: closes rows by their IDs; by default in one transaction
        :param patience: see ``Mode``
        """
        rows = list(rows)
        dirty = [row.dirty for row in rows]
        outcome = self.converge(dirty, Mode(
            always=True, before=before or {}, patience=patience))
        try:
            if outcome.skipped_writes and not self._are_settled(
                    outcome.skipped_writes, rows):
                # Without ``before``, which kept the providers from a write.
                outcome.add(self.converge(
                    dirty, Mode(always=True, patience=patience)))
            ids = [row.id for row in rows if not outcome.hosts[row.dirty]]
            if ids and self.rows:
                (close or self.rows.close)(ids)
        except exceptions.JournalUnavailable as exc:
            # Changes made in placement must still be reported.
            outcome.failed[JOURNAL] = exc
            for request in dirty:
                outcome.hosts[request] = outcome.hosts[request] or exc
        return outcome

    def _are_settled(self, generations: abc.Mapping[str, int],
                     rows: abc.Iterable[journal.Row]) -> bool:
        """Check whether providers that were not written may stay so."""
        # Two operations, of which one reverted the other, may both have found
        # no change. The later one sees the row of the other, or its write: the
        # rows come first, because a row is closed after its write.
        if self.rows and self.rows.has_others(row.id for row in rows):
            return False
        try:
            return all(
                self.placement.get(provider).generation == generation
                for provider, generation in sorted(generations.items()))
        except exceptions.MirrorError:
            # The next converge has the same error and reports it.
            return False

    def converge(self, dirty: abc.Iterable[journal.Dirty],
                 mode: Mode = Mode()) -> Outcome:
        """Converge the providers of dirty hosts."""
        # A host may have several rows, each with its own nodes.
        requests = sorted(frozenset(dirty), key=lambda request: (
            request.host, request.request_id, sorted(request.nodes)))
        outcome = Outcome()
        reason: exceptions.MirrorError | None = None
        for start in range(0, len(requests), self.batch):
            batch = requests[start:start + self.batch]
            if reason:
                for request in batch:
                    outcome.failed[Subject(HOST, request.host)] = reason
                    outcome.hosts[request] = reason
                continue
            partial = provider_writes.converge(self, batch, mode)
            if partial.outage and not partial.done:
                # Each further batch would wait for the same outage, or for
                # the end of this process.
                reason = exceptions.NotTried.because_of(partial.outage)
            outcome.add(partial)
            if sum(isinstance(exc, exceptions.GenerationConflict) for exc
                   in partial.failed.values()) > provider_writes.MAX_FUTILE:
                # The next batches wait for no more conflicts.
                mode = dataclasses.replace(mode, retries=False)
        return outcome
