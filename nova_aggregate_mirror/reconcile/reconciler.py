# SPDX-License-Identifier: Apache-2.0
"""Reconciliation of dirty hosts and of deleted aggregates."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes


class Reconciler(context.Context):
    """Writes to placement about many hosts, for agent and operator."""

    remove = provider_writes.remove

    def converge(self, dirty: abc.Iterable[journal.Dirty],
                 mode: provider_writes.Mode = provider_writes.Mode()
                 ) -> outcome.Outcome:
        """Converge the providers of dirty hosts."""
        # A host may have several rows, each with its own nodes.
        requests = sorted(frozenset(dirty), key=lambda request: (
            request.host, request.request_id, sorted(request.nodes)))
        result = outcome.Outcome()
        for start in range(0, len(requests), self.batch):
            batch = requests[start:start + self.batch]
            partial = provider_writes.converge(self, batch, mode)
            result.add(partial)
            if partial.outage and not partial.done:
                # Each further batch would wait for the same outage, or for
                # the end of this process.
                reason = exceptions.NotTried.because_of(partial.outage)
                for request in requests[start + self.batch:]:
                    host = outcome.Subject(outcome.HOST, request.host)
                    result.failed[host] = result.hosts[request] = reason
                break
            conflicts = [error for error in partial.failed.values()
                         if isinstance(error, exceptions.GenerationConflict)]
            if len(conflicts) > provider_writes.MAX_FUTILE:
                # The next batches wait for no more conflicts.
                mode = dataclasses.replace(mode, retries=False)
        return result
