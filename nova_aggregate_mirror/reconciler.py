# SPDX-License-Identifier: Apache-2.0
"""Makes placement right as nova is now: some hosts, or all of it."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import math

from nova_aggregate_mirror import comparison
from nova_aggregate_mirror import converge as mirror_converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror import outcome as mirror_outcome
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror import plan
from nova_aggregate_mirror import progress as mirror_progress
from nova_aggregate_mirror import source as mirror_source

Outcome = mirror_outcome.Outcome

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
    this share of all, or looks like a damaged database. None only adds, and
    removes what users deleted; ``WHATEVER`` removes in any case."""
    write: bool = True
    """Otherwise nothing is changed, in placement or in the journal."""
    hosts: frozenset[str] = frozenset()
    """Only these; none of them means all."""
    aggregates: frozenset[str] = frozenset()
    """Only these, by name or UUID; none of them means all."""

    def covers(self, dirty: journal.Dirty, nodes: Mapping[str, str]
               ) -> bool:
        """Whether the request is about all that a journal row is about.

        :param nodes: compute nodes of the row, to the hosts they are on now
        """
        return not self.aggregates and (
            not self.hosts or self.hosts.issuperset(
                {dirty.host, *(nodes[node] for node in dirty.nodes
                               if node in nodes)}))


@dataclasses.dataclass(frozen=True)
class Sync:
    """What a full sync saw and did, or would do."""

    outcome: Outcome
    nova: mirror_source.Nova
    """As it was compared, with the members that were asked for."""
    drift: int
    """Associations that were missing or stale, as the comparison saw it."""
    stale: tuple[plan.Change, ...] = ()
    """Associations of ours that nova does not have, left as they are."""
    foreign: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    """Providers that are no compute node of nova, to their aggregates that
    are ours, as they were compared."""
    refused: exceptions.RemovalsRefused | None = None
    """Why nothing was removed although it should have been."""
    not_compared: exceptions.MirrorError | None = None
    """Why only the journal's rows were worked on."""


class Reconciler:
    """Hook, agent and operator alike go through here.

    :param stopping: whether to leave off before the next provider
    :param count: how many placement requests are made at once
    :param batch: hosts whose truth is read in one go
    """

    def __init__(self, ledger: journal.Ledger,
                 source: mirror_source.Source,
                 report: client.Client,
                 rows: rows.Rows | None = None,
                 stopping: Callable[[], bool] = lambda: False,
                 count: int = 1,
                 progress: mirror_progress.Progress = mirror_progress.Silent(),
                 batch: int = BATCH) -> None:
        self._batch = batch
        self._ledger = ledger
        self._source = source
        self._report = report
        self._rows = rows
        self._stopping = stopping
        self._progress = progress
        self._each = parallel.Workers(count, stopping).each
        self._ends = mirror_converge.Ends(
            ledger, source, report, self._each, progress)

    def close(self, rows: Iterable[journal.Row]) -> Outcome:
        """Converge what these rows are about, and close those that are right.

        :param rows: rows that were handed over, or the caller's own, before
            this call; others may not be closed
        """
        rows = list(rows)
        outcome = self.converge((row.dirty for row in rows),
                                mirror_converge.Mode(always=True))
        done = [row.id for row in rows if row.dirty not in outcome.unfinished]
        try:
            if done and self._rows:
                self._rows.close(done)
        except exceptions.JournalUnavailable as exc:
            # What was written to placement is to be reported nevertheless.
            outcome.failed[mirror_outcome.Journal()] = exc
            for row in rows:
                outcome.unfinished.setdefault(row.dirty, exc)
        return outcome

    def drain(self, rows: Collection[journal.Row]) -> Outcome:
        """Converge what these rows are about; close those handed over.

        A row whose operation may still run is converged and kept.
        """
        outcome = self.close(row for row in rows if not row.running)
        running = [row for row in rows if row.running]
        kept = self.converge(row.dirty for row in running)
        done = [row.id for row in running if row.dirty not in kept.unfinished]
        if self._rows and done:
            self._note(kept, functools.partial(self._rows.mirrored, done))
        outcome.add(kept)
        lost = [row.id for row in rows if row.mirrored_at is not None
                and row.dirty in outcome.unfinished and not isinstance(
                    outcome.unfinished[row.dirty], exceptions.Stopped)]
        if self._rows and lost:
            self._note(outcome,
                       functools.partial(self._rows.not_mirrored, lost))
        return outcome

    def remove(self, aggregates: Iterable[str],
               mode: mirror_converge.Mode = mirror_converge.Mode()
               ) -> Outcome:
        """Remove aggregates that nova does not have from every provider.

        :param aggregates: UUIDs; one that nova has is left alone
        """
        outcome = Outcome()
        away: exceptions.MirrorError | None = None
        for uuid in sorted(aggregates):
            subject = mirror_outcome.Aggregate(uuid)
            if away or self._stopping():
                outcome.failed[subject] = away or _stopped()
                continue
            done = mirror_converge.deleted(self._ends, uuid, mode)
            away = _away(done)
            outcome.add(done)
        return outcome

    def converge(self, dirty: Iterable[journal.Dirty],
                 mode: mirror_converge.Mode = mirror_converge.Mode()
                 ) -> Outcome:
        """Make the providers of dirty hosts right."""
        # One host may have many rows, of which each names its own nodes.
        wanted = sorted(frozenset(dirty), key=lambda one: (
            one.host, one.request_id, sorted(one.nodes)))
        outcome = Outcome()
        away: exceptions.MirrorError | None = None
        for start in range(0, len(wanted), self._batch):
            batch = wanted[start:start + self._batch]
            if away or self._stopping():
                outcome.add(_not_begun(batch, away))
                continue
            done = mirror_converge.hosts(self._ends, batch, mode)
            away = None if done.done else _away(done)
            outcome.add(done)
        return outcome

    def compare(self) -> tuple[mirror_source.Memberships, mirror_source.Nova]:
        """What placement has of nova's aggregates, and nova after that.

        :returns: every provider with its aggregates, and nova
        :raises MirrorError: when one of them could not be read
        """
        seen = self._compare(frozenset(self._source.aggregates()),
                             self._ledger.entries(), frozenset(), Request())
        return seen.current, seen.nova

    def sync(self, rows: Iterable[journal.Row] = (),
             request: Request = Request()) -> Sync:
        """Compare everything, and converge each host that differs.

        1. the journal's rows that were handed in, both ways
        2. placement: every provider and its aggregates
        3. nova: every host, read after placement
        4. the ledger learns nova's aggregates; what users deleted is removed
        5. plan: which hosts differ; only a hint
        6. converge each of those hosts
        7. the ledger: what nova lacks, and what placement is empty of

        :param rows: of the journal, to drain first
        :raises MirrorError: when it could not begin; nothing was changed
        """
        ledger = self._ledger.entries()
        aggregates = self._source.aggregates()
        only = comparison.resolve(request.aggregates, aggregates, ledger)
        outcome = self._begin(self._covered(rows, request), request)
        try:
            seen = self._compare(frozenset(aggregates), ledger, only, request)
        except exceptions.MirrorError as exc:
            return Sync(outcome, mirror_source.Nova({}, {}, {}), drift=0,
                        not_compared=exc)
        if request.write:
            self._note(outcome, functools.partial(
                self._ledger.remember, seen.nova.aggregates))
        else:
            seen = seen.after(outcome.changes)
        outcome.add(self.remove(
            seen.deleted, mirror_converge.Mode(write=request.write)))
        return self._repair(seen, request, outcome)

    def _begin(self, rows: Collection[journal.Row], request: Request
               ) -> Outcome:
        """Converge what the journal knows, or see what that would change."""
        if rows:
            self._progress.step('Journal: %d operation%s to mirror' % (
                len(rows), '' if len(rows) == 1 else 's'))
            self._check_placement(
                self._report.providers(), self._source.read_all())
        if request.write:
            return self.drain(rows)
        return self.converge((row.dirty for row in rows),
                             mirror_converge.Mode(write=False))

    def _repair(self, seen: comparison.Comparison, request: Request,
                outcome: Outcome) -> Sync:
        """Converge the providers that differ."""
        changes = seen.changes(request.hosts)
        refused = _refusal(seen, changes, request.max_removed_share)
        prune = request.max_removed_share is not None and not refused
        nodes = [change.provider for change in changes if change.add or prune]
        self._progress.step('Nova has %d compute nodes in %d aggregates; %d '
                            'of them differ' % (len(seen.nova.nodes), len(
                                seen.nova.aggregates), len(nodes)))
        self._progress.expect(len(nodes))
        mode = mirror_converge.Mode(
            prune=prune, write=request.write, only=seen.only, whole=False)
        repaired = self.converge(seen.dirty(nodes), mode)
        repaired.mend(self._once_more(seen, repaired, mode))
        if prune:
            repaired.add(self.remove(
                seen.expired, mirror_converge.Mode(write=request.write)))
        # The journal's row may have failed there, and it is right now.
        outcome.mend(repaired)
        nova = seen.narrowed(request.hosts)
        outcome.pending |= {node: nova.nodes[node] for node
                            in plan.pending(nova.desired(), seen.current)}
        if request.write and seen.whole and not seen.only:
            self._note(outcome, functools.partial(
                self._ledger.observe, seen.nova.aggregates, seen.empty()))
        return Sync(
            outcome, nova, refused=refused, foreign=seen.foreign(),
            drift=seen.drift(changes),
            stale=() if prune else tuple(
                dataclasses.replace(change, add=())
                for change in changes if change.remove))

    @staticmethod
    def _note(outcome: Outcome, write: Callable[[], None]) -> None:
        """Write into the journal; a failure does not end the run."""
        try:
            write()
        except exceptions.JournalUnavailable as exc:
            outcome.failed[mirror_outcome.Journal()] = exc

    def _once_more(self, seen: comparison.Comparison,
                   repaired: Outcome, mode: mirror_converge.Mode) -> Outcome:
        """Converge those at which placement failed, if they are the fewer.

        With many writers at once its database refuses a write now and then,
        as with a deadlock, and placement answers 500. One that is broken is
        not asked twice as much.
        """
        failed = [subject.uuid for subject, exc in repaired.failed.items()
                  if isinstance(exc, exceptions.PlacementFailed)
                  and isinstance(subject, mirror_outcome.Provider)
                  and subject.uuid in seen.nova.nodes]
        if not failed or len(failed) > max(1, len(repaired.done)):
            return Outcome()
        self._progress.step('Placement failed at %d of them: once more'
                            % len(failed))
        self._progress.expect(len(failed))
        return self.converge(seen.dirty(failed), mode)

    def _covered(self, rows: Iterable[journal.Row], request: Request
                 ) -> list[journal.Row]:
        """Those rows that the request is wholly about."""
        rows = list(rows)
        nodes: Mapping[str, str] = {}
        if rows and request.hosts:
            nodes = self._source.read((), {
                node for row in rows for node in row.dirty.nodes}).nodes
        return [row for row in rows if request.covers(row.dirty, nodes)]

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

    def _compare(self, aggregates: frozenset[str],
                 ledger: Mapping[str, journal.Entry],
                 only: frozenset[str], request: Request
                 ) -> comparison.Comparison:
        self._progress.step('Reading placement')
        unlikely = frozenset(ledger) - aggregates
        if only:
            aggregates, unlikely = aggregates & only, unlikely & only
        current = self._report.memberships(aggregates, unlikely, self._each)
        self._progress.step(
            'Reading nova; placement has %d providers' % len(current))
        nova = self._source.read_all()
        self._check_placement(current.keys(), nova)
        # A user's deletion is marked before nova forgets the aggregate.
        ledger = self._ledger.entries()
        known = frozenset(nova.members) | frozenset(nova.nodes.values())
        unknown = sorted(request.hosts - known)
        if unknown and not nova.cells_down:
            raise exceptions.UnknownName(
                'nova has no host %s; "openstack compute service list" shows '
                'those that there are' % ', '.join(unknown))
        return comparison.Comparison(
            current, nova, ledger, only, whole=not request.hosts)


def _refusal(seen: comparison.Comparison, changes: list[plan.Change],
             share: float | None) -> exceptions.RemovalsRefused | None:
    """Why the removals that were asked for are not made, if so."""
    if share in (None, WHATEVER):
        return None
    try:
        plan.check_safe(changes, seen.current, seen.nova.desired(),
                        seen.owned, share, sum(
                            len(aggregates & seen.expired)
                            for aggregates in seen.foreign().values()))
    except exceptions.RemovalsRefused as exc:
        return exc
    return None


def _away(outcome: Outcome) -> exceptions.MirrorError | None:
    """Why the next request would fail in the same way, if so."""
    return next((exc for exc in outcome.failed.values()
                 if isinstance(exc, mirror_converge.AWAY)), None)


def _not_begun(dirty: Collection[journal.Dirty],
               away: exceptions.MirrorError | None) -> Outcome:
    """What becomes of a batch that is not begun any more.

    :param away: why no other one would come further; None when this process
        stops
    """
    if away is None:
        return Outcome(unfinished=dict.fromkeys(dirty, _stopped()))
    return Outcome(
        failed={mirror_outcome.Host(one.host): away for one in dirty},
        unfinished=dict.fromkeys(dirty, away))


def _stopped() -> exceptions.Stopped:
    return exceptions.Stopped('this process was told to end')
