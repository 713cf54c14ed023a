# SPDX-License-Identifier: Apache-2.0
"""A full sync: compare all of nova with all of placement, and repair."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import converge
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import survey
from nova_aggregate_mirror import source

Comparison = comparison.Comparison
Outcome = outcome.Outcome
Provider = outcome.Provider

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

    def covers(self, dirty: journal.Dirty, nodes: Mapping[str, str]) -> bool:
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
    nova: source.Nova
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


def run(mirror: reconciler.Reconciler, rows: Iterable[journal.Row] = (),
        request: Request = Request()) -> Sync:
    """Compare all of nova with all of placement, and repair what differs.

    1. drain: the journal's rows that are passed
    2. compare: read placement, and nova after it
    3. remember: the ledger learns which aggregates nova has
    4. remove: aggregates that users deleted
    5. repair: converge each provider that differs, if the brake allows it
    6. observe: the ledger notes what nova lacks and placement is empty of

    :param rows: of the journal, to drain first
    :raises MirrorError: when it could not begin; nothing was changed
    """
    scope = survey.scope(mirror.context, request.aggregates)
    outcome = _drain(mirror, _covered(mirror.context, rows, request), request)
    try:
        seen = survey.read(mirror.context, scope, request.hosts)
    except exceptions.MirrorError as exc:
        return Sync(outcome, source.Nova({}, {}, {}), drift=0,
                    not_compared=exc)
    if not request.write:
        seen = seen.after(outcome.changes)
    changes = seen.changes(request.hosts)
    refused = _refusal(seen, changes, request.max_removed_share)
    prune = request.max_removed_share is not None and not refused
    _remember(mirror.context, seen, request, outcome)
    _remove(mirror, seen.deleted, request, outcome)
    _repair(mirror, seen, changes, request, prune, outcome)
    _observe(mirror.context, seen, request, outcome)
    return Sync(
        outcome, seen.narrowed(request.hosts), refused=refused,
        foreign=seen.foreign(), drift=seen.drift(changes),
        stale=() if prune else tuple(dataclasses.replace(change, add=())
                                     for change in changes if change.remove))


def _covered(context: context.Context, rows: Iterable[journal.Row],
             request: Request) -> list[journal.Row]:
    """Those rows that the request is wholly about."""
    rows = list(rows)
    nodes: Mapping[str, str] = {}
    if rows and request.hosts:
        nodes = context.nova.read((), {
            node for row in rows for node in row.dirty.nodes}).nodes
    return [row for row in rows if request.covers(row.dirty, nodes)]


def _drain(mirror: reconciler.Reconciler, rows: Collection[journal.Row],
           request: Request) -> Outcome:
    """Mirror what the journal knows, or see what that would change."""
    context = mirror.context
    if rows:
        context.display.step('Journal: %d operation%s to mirror' % (
            len(rows), '' if len(rows) == 1 else 's'))
        survey.check_placement(context, context.placement.providers(),
                               context.nova.read_all())
    if request.write:
        return mirror.drain(rows)
    return mirror.converge((row.dirty for row in rows),
                           converge.Mode(write=False))


def _refusal(seen: Comparison, changes: list[plan.Change],
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


def _remember(context: context.Context, seen: Comparison, request: Request,
              outcome: Outcome) -> None:
    if request.write:
        outcome.write_journal(functools.partial(
            context.ledger.remember, seen.nova.aggregates))


def _remove(mirror: reconciler.Reconciler, aggregates: Iterable[str],
            request: Request, outcome: Outcome) -> None:
    outcome.add(mirror.remove(aggregates, converge.Mode(write=request.write)))


def _repair(mirror: reconciler.Reconciler, seen: Comparison,
            changes: Iterable[plan.Change], request: Request, prune: bool,
            outcome: Outcome) -> None:
    """Converge the providers that differ."""
    nodes = [change.provider for change in changes if change.add or prune]
    display = mirror.context.display
    display.step('Nova has %d compute nodes in %d aggregates; %d of them '
                 'differ' % (len(seen.nova.nodes), len(seen.nova.aggregates),
                             len(nodes)))
    display.expect(len(nodes))
    mode = converge.Mode(
        prune=prune, write=request.write, only=seen.only, whole=False)
    repaired = mirror.converge(seen.dirty(nodes), mode)
    repaired.mend(_once_more(mirror, seen, repaired, mode))
    if prune:
        _remove(mirror, seen.expired, request, repaired)
    # The journal's row may have failed there, and it is right now.
    outcome.mend(repaired)
    nova = seen.narrowed(request.hosts)
    outcome.pending |= {node: nova.nodes[node] for node
                        in plan.pending(nova.desired(), seen.current)}


def _once_more(mirror: reconciler.Reconciler, seen: Comparison,
               repaired: Outcome, mode: converge.Mode) -> Outcome:
    """Converge those at which placement failed, if they are the fewer.

    With many writers at once its database refuses a write now and then, as
    with a deadlock, and placement answers 500. One that is broken is not
    asked twice as much.
    """
    failed = [subject.uuid for subject, exc in repaired.failed.items()
              if isinstance(exc, exceptions.PlacementFailed)
              and isinstance(subject, Provider)
              and subject.uuid in seen.nova.nodes]
    if not failed or len(failed) > max(1, len(repaired.done)):
        return Outcome()
    mirror.context.display.step(
        'Placement failed at %d of them: once more' % len(failed))
    mirror.context.display.expect(len(failed))
    return mirror.converge(seen.dirty(failed), mode)


def _observe(context: context.Context, seen: Comparison, request: Request,
             outcome: Outcome) -> None:
    if request.write and seen.whole and not seen.only:
        outcome.write_journal(functools.partial(
            context.ledger.observe, seen.nova.aggregates, seen.empty()))
