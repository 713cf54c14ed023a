# SPDX-License-Identifier: Apache-2.0
"""Makes placement right as nova is now: some hosts, or all of it."""

from collections.abc import Callable
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
    stale: tuple[plan.Change, ...]
    """Associations of ours that nova does not have, left as they are."""


class Reconciler:
    """Hook, agent and operator alike go through here."""

    def __init__(self, journal: mirror_journal.Journal,
                 source: mirror_source.Source,
                 report: mirror_report.ReportClient) -> None:
        self._journal = journal
        self._source = source
        self._report = report

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
            outcome.add(converge.hosts(
                self._journal, self._source, self._report,
                hosts[start:start + BATCH], always, prune))
        for one in wanted:
            if one.aggregate_uuid:
                outcome.add(converge.deleted(
                    self._source, self._report, one, always))
        return outcome

    def sync(self, say: Callable[[str], object] = lambda line: None) -> Sync:
        """Converge every journalled host, then add whatever else is missing.

        1. journal: what is dirty, converged both ways
        2. placement: every provider and its aggregates
        3. nova: every host, read after placement
        4. plan: which hosts differ; only a hint
        5. converge each of those hosts, and remove nothing

        :param say: is told each step, for a person who waits
        :raises MirrorError: when placement, nova or the journal cannot be
            read at all; nothing was changed then except by step 1
        """
        rows = self._journal.rows()
        say('Journal: %d operations to mirror' % len(rows))
        closable = self._journal.closable(rows)
        outcome = self.close(closable)
        outcome.add(self.converge(
            row.dirty for row in rows if row not in closable))
        say('Reading placement')
        current = self._report.memberships(self._source.aggregates())
        say('Reading nova; placement has %d providers' % len(current))
        nova = self._source.read_all()
        if nova.nodes and not current:
            raise exceptions.WrongPlacement(
                'placement has no resource provider at all while nova has %d '
                'compute nodes; is this the right placement? %s'
                % (len(nova.nodes), self._report.endpoint()))
        owned = frozenset(nova.aggregates) | self._journal.ledger()
        changes = plan.compute(nova.desired(), current, owned)
        say('Nova has %d compute nodes in %d aggregates; %d providers differ'
            % (len(nova.nodes), len(nova.aggregates), len(changes)))
        outcome.add(self.converge(
            (mirror_journal.Dirty(host=nova.nodes[change.provider])
             for change in changes if change.add), prune=False))
        outcome.pending |= {node: nova.nodes[node] for node
                            in plan.pending(nova.desired(), current)}
        return Sync(outcome, nova, stale=tuple(
            dataclasses.replace(change, add=())
            for change in changes if change.remove))
