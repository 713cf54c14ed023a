# SPDX-License-Identifier: Apache-2.0
"""Makes placement right as nova is now: some hosts, or all of it."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import dataclasses

from nova_aggregate_mirror import converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal as mirror_journal
from nova_aggregate_mirror import plan
from nova_aggregate_mirror import report as mirror_report
from nova_aggregate_mirror import source as mirror_source

# Hosts whose truth is read from nova in one go; it bounds memory and the time
# between reading the truth and writing it.
BATCH = 200


@dataclasses.dataclass(frozen=True)
class Sync:
    """What a full sync saw and did."""

    outcome: converge.Outcome
    nova: mirror_source.Nova
    drift: int
    """Associations that were missing or stale, as the comparison saw it."""
    stale: tuple[plan.Change, ...] = ()
    """Associations of ours that nova does not have, left as they are."""
    refused: str = ''
    """Why nothing was removed although it should have been."""


class Reconciler:
    """Hook, agent and operator alike go through here.

    :param stopping: whether to leave off before the next batch of hosts
    """

    def __init__(self, journal: mirror_journal.Journal,
                 source: mirror_source.Source,
                 report: mirror_report.ReportClient,
                 stopping: Callable[[], bool] = lambda: False) -> None:
        self._journal = journal
        self._source = source
        self._report = report
        self._stopping = stopping

    def _left(self, dirty: Collection[mirror_journal.Dirty]
              ) -> converge.Outcome | None:
        """What becomes of a batch that is not begun any more, if so."""
        if not self._stopping():
            return None
        return converge.Outcome(unfinished=dict.fromkeys(
            dirty, exceptions.Stopped('this process was told to end')))

    def close(self, rows: Iterable[mirror_journal.Row]) -> converge.Outcome:
        """Converge what these rows are about, and close those that are right.

        :param rows: rows that were closable, or the caller's own, before
            this call; others may not be closed
        """
        rows = list(rows)
        outcome = self.converge((row.dirty for row in rows), always=True)
        self._journal.complete(row.id for row in rows
                               if row.dirty not in outcome.unfinished)
        return outcome

    def drain(self, rows: Collection[mirror_journal.Row]) -> converge.Outcome:
        """Converge what these rows are about; close those that may be closed.

        A row whose operation may still run is converged and kept.
        """
        closable = self._journal.closable(rows)
        outcome = self.close(closable)
        outcome.add(self.converge(
            row.dirty for row in rows if row not in closable))
        return outcome

    def converge(self, dirty: Iterable[mirror_journal.Dirty], *,
                 always: bool = False, prune: bool = True) -> converge.Outcome:
        """Make the providers of dirty hosts, and deleted aggregates, right.

        :param always: write even where nothing differs. The new generation
            kills every write that is still on its way, so that a journal row
            may be closed after it.
        :param prune: also remove what is ours and no longer true
        """
        # One host may have many rows, of which each names its own nodes.
        wanted = sorted(frozenset(dirty), key=lambda one: (
            one.host, one.aggregate_uuid, one.request_id, sorted(one.nodes)))
        hosts = [one for one in wanted if one.host]
        outcome = converge.Outcome()
        for start in range(0, len(hosts), BATCH):
            batch = hosts[start:start + BATCH]
            outcome.add(self._left(batch) or converge.hosts(
                self._journal, self._source, self._report, batch, always,
                prune))
        for one in wanted:
            if one.aggregate_uuid:
                outcome.add(self._left([one]) or converge.deleted(
                    self._source, self._report, one, always))
        return outcome

    def sync(self, rows: Collection[mirror_journal.Row] = (),
             max_removed_share: float | None = None,
             say: Callable[[str], object] = lambda line: None) -> Sync:
        """Compare everything, and converge each host that differs.

        1. the journal's rows that were handed in, both ways
        2. placement: every provider and its aggregates
        3. nova: every host, read after placement
        4. plan: which hosts differ; only a hint
        5. converge each of those hosts
        6. the ledger: which UUIDs placement is empty of

        :param rows: of the journal, to drain first
        :param max_removed_share: also remove what is ours and no longer
            true, unless that is more than this share of all; None only adds
        :param say: is told each step, for a person who waits
        :raises MirrorError: when placement, nova or the journal cannot be
            read at all; nothing was changed then except by step 1
        """
        outcome = self.drain(rows)
        ledger = self._journal.ledger()
        say('Reading placement')
        aggregates = frozenset(self._source.aggregates())
        current = self._report.memberships(aggregates, ledger - aggregates)
        say('Reading nova; placement has %d providers' % len(current))
        nova = self._source.read_all()
        if nova.nodes and not current:
            raise exceptions.WrongPlacement(
                'placement has no resource provider at all while nova has %d '
                'compute nodes; is this the right placement? %s'
                % (len(nova.nodes), self._report.endpoint()))
        owned = frozenset(nova.aggregates) | ledger
        changes = plan.compute(nova.desired(), current, owned)
        say('Nova has %d compute nodes in %d aggregates; %d providers differ'
            % (len(nova.nodes), len(nova.aggregates), len(changes)))
        refused, prune = '', max_removed_share is not None
        if max_removed_share is not None:
            refused = plan.check_safe(changes, current, nova.desired(), owned,
                                      max_removed_share)
            prune = not refused
        outcome.add(self.converge(
            (mirror_journal.Dirty(host=nova.nodes[change.provider])
             for change in changes if change.add or prune), prune=prune))
        outcome.pending |= {node: nova.nodes[node] for node
                            in plan.pending(nova.desired(), current)}
        self._journal.emptied(*_emptied(ledger, nova, current))
        return Sync(
            outcome, nova, refused=refused,
            drift=sum(len(change.add) + len(change.remove)
                      for change in changes),
            stale=() if prune else tuple(
                dataclasses.replace(change, add=())
                for change in changes if change.remove))


def _emptied(ledger: frozenset[str], nova: mirror_source.Nova,
             current: mirror_source.Memberships
             ) -> tuple[frozenset[str], frozenset[str]]:
    """Ledgered UUIDs that neither nova nor placement has, and the others."""
    present = frozenset(nova.aggregates).union(*current.values())
    return ledger - present, ledger & present
