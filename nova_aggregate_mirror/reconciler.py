# SPDX-License-Identifier: Apache-2.0
"""Makes placement right as nova is now: some hosts, or all of it."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math

from nova_aggregate_mirror import comparison
from nova_aggregate_mirror import converge as mirror_converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal as mirror_journal
from nova_aggregate_mirror import living
from nova_aggregate_mirror import plan
from nova_aggregate_mirror import progress as mirror_progress
from nova_aggregate_mirror import report as mirror_report
from nova_aggregate_mirror import source as mirror_source
from nova_aggregate_mirror import workers

BATCH = 200
"""Hosts whose truth is read from nova in one go; it bounds memory and the time
between reading the truth and writing it."""

WHATEVER = math.inf
"""A share of removals that is never too large."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a full sync is asked to do."""

    max_removed_share: float | None = None
    """Also remove what is ours and no longer true, unless that is more than
    this share of all, or looks like a damaged database. None only adds,
    ``WHATEVER`` removes in any case."""
    write: bool = True
    """Otherwise nothing is changed, in placement or in the journal."""
    hosts: frozenset[str] = frozenset()
    """Only these; none of them means all."""
    aggregates: frozenset[str] = frozenset()
    """Only these, by name or UUID; none of them means all."""

    def covers(self, dirty: mirror_journal.Dirty,
               aggregates: Collection[str], nodes: Mapping[str, str]) -> bool:
        """Whether the request is about all that a journal row is about.

        :param aggregates: the UUIDs of those of the request
        :param nodes: compute nodes of the row, to the hosts they are on now
        """
        if dirty.host:
            return not aggregates and (not self.hosts or self.hosts.issuperset(
                {dirty.host, *(nodes[node] for node in dirty.nodes
                               if node in nodes)}))
        return not self.hosts and (
            not aggregates or dirty.aggregate_uuid in aggregates)


@dataclasses.dataclass(frozen=True)
class Sync:
    """What a full sync saw and did, or would do."""

    outcome: mirror_converge.Outcome
    nova: mirror_source.Nova
    """As it was compared, with the members that were asked for."""
    drift: int
    """Associations that were missing or stale, as the comparison saw it."""
    stale: tuple[plan.Change, ...] = ()
    """Associations of ours that nova does not have, left as they are."""
    strangers: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    """Providers that are no compute node of nova, to their aggregates that
    are ours; they are left as they are."""
    refused: str = ''
    """Why nothing was removed although it should have been."""
    not_compared: exceptions.MirrorError | None = None
    """Why only the journal's rows were worked on."""


class Reconciler:
    """Hook, agent and operator alike go through here.

    :param stopping: whether to leave off before the next provider
    :param count: how many placement requests are made at once
    :param batch: hosts whose truth is read in one go
    """

    def __init__(self, journal: mirror_journal.Journal | living.LivingOnly,
                 source: mirror_source.Source,
                 report: mirror_report.ReportClient,
                 stopping: Callable[[], bool] = lambda: False,
                 count: int = 1,
                 progress: mirror_progress.Progress = mirror_progress.Silent(),
                 batch: int = BATCH) -> None:
        self._batch = batch
        self._journal = journal
        self._source = source
        self._report = report
        self._stopping = stopping
        self._progress = progress
        self._each = workers.Workers(count, stopping).each
        self._ends = mirror_converge.Ends(
            journal, source, report, self._each, progress)

    def _left(self, dirty: Collection[mirror_journal.Dirty],
              away: exceptions.MirrorError | None = None
              ) -> mirror_converge.Outcome | None:
        """What becomes of a batch that is not begun any more, if so.

        :param away: why no other one would come further
        """
        if away:
            return mirror_converge.Outcome(
                failed={one.host: away for one in dirty},
                unfinished=dict.fromkeys(dirty, away))
        if not self._stopping():
            return None
        return mirror_converge.Outcome(unfinished=dict.fromkeys(
            dirty, exceptions.Stopped('this process was told to end')))

    def close(self, rows: Iterable[mirror_journal.Row]
              ) -> mirror_converge.Outcome:
        """Converge what these rows are about, and close those that are right.

        :param rows: rows that were closable, or the caller's own, before
            this call; others may not be closed
        """
        rows = list(rows)
        outcome = self.converge((row.dirty for row in rows),
                                mirror_converge.Mode(always=True))
        try:
            self._journal.complete(row.id for row in rows
                                   if row.dirty not in outcome.unfinished)
        except exceptions.JournalUnavailable as exc:
            # What was written to placement is to be told nevertheless.
            outcome.failed['journal'] = exc
            for row in rows:
                outcome.unfinished.setdefault(row.dirty, exc)
        return outcome

    def drain(self, rows: Collection[mirror_journal.Row]
              ) -> mirror_converge.Outcome:
        """Converge what these rows are about; close those that may be closed.

        A row whose operation may still run is converged and kept.
        """
        closable = self._journal.closable(rows)
        outcome = self.close(closable)
        outcome.add(self.converge(
            row.dirty for row in rows if row not in closable))
        return outcome

    def _begin(self, rows: Collection[mirror_journal.Row], request: Request
               ) -> mirror_converge.Outcome:
        """What the journal knows, or what it would change."""
        self._progress.step('Journal: %d operations to mirror' % len(rows))
        if rows:
            self._check_placement(
                self._report.providers(), self._source.read_all())
        if request.write:
            return self.drain(rows)
        return self.converge((row.dirty for row in rows),
                             mirror_converge.Mode(write=False))

    def converge(self, dirty: Iterable[mirror_journal.Dirty],
                 mode: mirror_converge.Mode = mirror_converge.Mode()
                 ) -> mirror_converge.Outcome:
        """Make the providers of dirty hosts, and deleted aggregates, right."""
        # One host may have many rows, of which each names its own nodes.
        wanted = sorted(frozenset(dirty), key=lambda one: (
            one.host, one.aggregate_uuid, one.request_id, sorted(one.nodes)))
        hosts = [one for one in wanted if one.host]
        outcome = mirror_converge.Outcome()
        away: exceptions.MirrorError | None = None
        for start in range(0, len(hosts), self._batch):
            batch = hosts[start:start + self._batch]
            done = self._left(batch, away) or mirror_converge.hosts(
                self._ends, batch, mode)
            if not done.done:
                away = away or next(
                    (exc for exc in done.failed.values()
                     if isinstance(exc, mirror_converge.AWAY)), None)
            outcome.add(done)
        for one in wanted:
            if one.aggregate_uuid:
                outcome.add(self._left([one]) or mirror_converge.deleted(
                    self._ends, one, mode))
        return outcome

    def compare(self) -> tuple[mirror_source.Memberships, mirror_source.Nova]:
        """What placement has of nova's aggregates, and nova after that.

        :returns: every provider with its aggregates, and nova
        :raises MirrorError: when one of them could not be read
        """
        seen = self._compare(frozenset(self._source.aggregates()),
                             self._journal.ledger(), frozenset(), Request())
        return seen.current, seen.nova

    def sync(self, rows: Iterable[mirror_journal.Row] | None = (),
             request: Request = Request()) -> Sync:
        """Compare everything, and converge each host that differs.

        1. the journal's rows that were handed in, both ways
        2. placement: every provider and its aggregates
        3. nova: every host, read after placement
        4. plan: which hosts differ; only a hint
        5. converge each of those hosts
        6. the ledger: which UUIDs placement is empty of

        :param rows: of the journal, to drain first; None when there is no
            journal
        :raises MirrorError: when it could not begin; nothing was changed
        """
        ledger = self._journal.ledger()
        aggregates = self._source.aggregates()
        only = comparison.resolve(request.aggregates, aggregates, ledger)
        outcome = mirror_converge.Outcome()
        if rows is not None:
            outcome = self._begin(self._covered(rows, request, only), request)
        try:
            seen = self._compare(frozenset(aggregates), ledger, only, request)
        except exceptions.MirrorError as exc:
            return Sync(outcome, mirror_source.Nova({}, {}, {}), drift=0,
                        not_compared=exc)
        if not request.write:
            seen = seen.after(outcome.changes)
        return self._repair(seen, request, outcome)

    def _repair(self, seen: comparison.Comparison, request: Request,
                outcome: mirror_converge.Outcome) -> Sync:
        """Converge the providers that differ."""
        changes = seen.changes(request.hosts)
        refused, prune = '', request.max_removed_share is not None
        if request.max_removed_share not in (None, WHATEVER):
            refused = plan.check_safe(
                changes, seen.current, seen.nova.desired(), seen.owned,
                request.max_removed_share)
            prune = not refused
        nodes = [change.provider for change in changes if change.add or prune]
        self._progress.step('Nova has %d compute nodes in %d aggregates; %d '
                            'of them differ' % (len(seen.nova.nodes), len(
                                seen.nova.aggregates), len(nodes)))
        self._progress.expect(len(nodes))
        mode = mirror_converge.Mode(
            prune=prune, write=request.write, only=seen.only, whole=False)
        repaired = self.converge(seen.dirty(nodes), mode)
        repaired.mend(self._once_more(seen, repaired, mode))
        # The journal's row may have failed there, and it is right now.
        outcome.mend(repaired)
        nova = seen.narrowed(request.hosts)
        outcome.pending |= {node: nova.nodes[node] for node
                            in plan.pending(nova.desired(), seen.current)}
        if request.write:
            try:
                self._journal.emptied(*seen.emptied())
            except exceptions.JournalUnavailable as exc:
                # The next sync sees it, too.
                outcome.failed['journal'] = exc
        return Sync(
            outcome, nova, refused=refused,
            strangers={} if request.hosts else seen.strangers(),
            drift=sum(len(change.add) + len(change.remove)
                      for change in changes),
            stale=() if prune else tuple(
                dataclasses.replace(change, add=())
                for change in changes if change.remove))

    def _once_more(self, seen: comparison.Comparison,
                   repaired: mirror_converge.Outcome,
                   mode: mirror_converge.Mode) -> mirror_converge.Outcome:
        """Converge those at which placement failed, if they are the fewer.

        With many writers at once its database refuses a write now and then,
        as with a deadlock, and placement answers 500. One that is broken is
        not asked twice as much.
        """
        failed = [subject for subject, exc in repaired.failed.items()
                  if isinstance(exc, exceptions.PlacementFailed)
                  and subject in seen.nova.nodes]
        if not failed or len(failed) > max(1, len(repaired.done)):
            return mirror_converge.Outcome()
        self._progress.step('Placement failed at %d of them: once more'
                            % len(failed))
        self._progress.expect(len(failed))
        return self.converge(seen.dirty(failed), mode)

    def _covered(self, rows: Iterable[mirror_journal.Row], request: Request,
                 only: frozenset[str]) -> list[mirror_journal.Row]:
        """Those rows that the request is wholly about."""
        rows = list(rows)
        nodes: Mapping[str, str] = {}
        if rows and request.hosts:
            nodes = self._source.read((), {
                node for row in rows for node in row.dirty.nodes}).nodes
        return [row for row in rows
                if request.covers(row.dirty, only, nodes)]

    def _check_placement(self, providers: Collection[str],
                         nova: mirror_source.Nova) -> None:
        """Nothing of it would be found there, and nothing be kept.

        :raises WrongPlacement: placement has no compute node of nova's
        """
        if nova.nodes and not nova.nodes.keys() & providers:
            raise exceptions.WrongPlacement(
                'placement has %d resource providers, and none of them is one '
                'of nova\'s %d compute nodes; is this the right placement? %s'
                % (len(providers), len(nova.nodes), self._report.endpoint()))

    def _compare(self, aggregates: frozenset[str], ledger: frozenset[str],
                 only: frozenset[str], request: Request
                 ) -> comparison.Comparison:
        self._progress.step('Reading placement')
        unlikely = ledger - aggregates
        if only:
            aggregates, unlikely = aggregates & only, unlikely & only
        current = self._report.memberships(aggregates, unlikely, self._each)
        self._progress.step(
            'Reading nova; placement has %d providers' % len(current))
        nova = self._source.read_all()
        self._check_placement(current.keys(), nova)
        known = frozenset(nova.members) | frozenset(nova.nodes.values())
        unknown = sorted(request.hosts - known)
        if unknown and not nova.cells_down:
            raise exceptions.UnknownName(
                'nova has no host %s; "openstack compute service list" shows '
                'those that there are' % ', '.join(unknown))
        return comparison.Comparison(current, nova, ledger, only)
