# SPDX-License-Identifier: Apache-2.0
"""Full sync: comparison of all of nova with all of placement, and repair.

Long because all steps share one comparison.
"""

from collections import abc
import dataclasses
import functools
import math

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import brake
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import occupied_names
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import survey
from nova_aggregate_mirror import source

LOG = logging.getLogger(__name__)

Association = associations.Association
Comparison = comparison.Comparison
Outcome = outcome.Outcome
PROVIDER = outcome.PROVIDER
Subject = outcome.Subject

UNLIMITED = math.inf
"""A share of removals that no sync exceeds."""

MANY_NODES = 20
"""Compute nodes of a host that is converged after those with fewer."""

RETRIED = 50
"""Providers that failed before, between two checks of the time."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The scope of a full sync, and its limits."""

    max_removed_share: float | None = None
    """Also remove stale owned associations, unless they exceed this share of
    all owned associations or suggest a damaged database. None only adds, and
    removes aggregates that users deleted; ``UNLIMITED`` disables the brake."""
    write: bool = True
    """False changes nothing, in placement or in the journal."""
    observes: bool = False
    """With ``write`` false, whether the ledger is written all the same."""
    hosts: frozenset[str] = frozenset()
    """Only these hosts; empty means all."""
    aggregates: frozenset[str] = frozenset()
    """Only these aggregates, by name or UUID; empty means all."""
    foreign: bool = False
    """Also read each provider of a compute node, for the aggregates that
    nova never had while the ledger exists."""
    may_retry: abc.Callable[[], bool] = lambda: True
    """Whether there is time for more providers whose last attempt failed:
    they come last, and the rest is left to the next sync."""

    @property
    def feeds_ledger(self) -> bool:
        return self.write or self.observes

    def covers(self, dirty: journal.Dirty, nova: source.Nova) -> bool:
        """Check whether the request covers everything in a journal row."""
        return not self.aggregates and (
            not self.hosts or self.hosts.issuperset(
                {dirty.host}.union(*map(nova.hosts_of, dirty.nodes))))


@dataclasses.dataclass(frozen=True)
class SyncOutcome:
    """The result of a full sync or of a dry run."""

    outcome: Outcome
    nova: source.Nova
    """Nova as it was compared, limited to the requested members."""
    associations: abc.Sequence[Association] = ()
    """Those that were not in sync, or changed, with the state afterwards."""
    drift: abc.Sequence[Association] = ()
    """Those that the comparison found missing or stale."""
    refused: exceptions.RemovalsRefused | None = None
    """Why the brake refused the removals, if it did."""
    not_compared: exceptions.MirrorError | None = None
    """Why only journal rows were processed, if so."""
    removable: frozenset[str] = frozenset()
    """Foreign aggregates of compute nodes alone."""

    @property
    def uncompared(self) -> frozenset[str]:
        """Member hosts without compute node, or whose cell is silent."""
        return self.nova.nodeless().union(self.nova.hosts_down)


def run(mirror: reconciler.Reconciler, rows: abc.Iterable[journal.Row] = (),
        request: Request = Request()) -> SyncOutcome:
    """Compare all of nova with all of placement, and repair what differs.

    1. drain: mirror the given journal rows
    2. compare: read placement, then nova
    3. remember: add nova's aggregates to the ledger
    4. remove: remove aggregates that users deleted
    5. repair: converge each provider that differs, if the brake allows it
    6. observe: note in the ledger the aggregates that nova does not have, and
       those without a provider in placement

    :raises MirrorError: when the sync could not start; nothing was changed
    """
    selection = survey.select(mirror.context, request.aggregates)
    outcome = _drain(mirror, _covered(mirror.context, rows, request), request)
    try:
        compared = survey.read(mirror.context, selection, request.hosts)
    except exceptions.MirrorError as exc:
        return uncompared(exc, outcome)
    if not request.write:
        compared = compared.with_changes(outcome.changes)
    changes = compared.changes(request.hosts)
    refused = _refusal(compared, changes, request.max_removed_share)
    prune = request.max_removed_share is not None and not refused
    differences = associations.compare(compared, changes, request.hosts, prune)
    if request.feeds_ledger:
        outcome.write_journal(functools.partial(
            mirror.context.ledger.remember, compared.nova.aggregates))
    mode = provider_writes.Mode(
        prune=prune, write=request.write, only=compared.only, whole=False,
        down=compared.nova.cells_down, silent={})
    outcome.add(mirror.remove(compared.deleted, mode))
    _repair(mirror, compared, changes, request, mode, outcome)
    _find_contradictions(
        mirror.context, compared, differences, request.hosts, outcome)
    removable = survey.find_foreign(
        mirror.context, compared, request.hosts, mode, outcome
    ) if request.foreign else frozenset[str]()
    _observe(mirror.context, compared, request, outcome)
    return SyncOutcome(
        outcome, compared.narrowed(request.hosts),
        associations.after_sync(differences, outcome, compared.nova),
        [association for association in differences
         if association.state in associations.DRIFT], refused,
        removable=removable)


def uncompared(error: exceptions.MirrorError, outcome: Outcome | None = None
               ) -> SyncOutcome:
    """Return a sync without a comparison."""
    outcome, nova = outcome or Outcome(), source.Nova({}, {}, {})
    return SyncOutcome(
        outcome, nova, associations.after_sync((), outcome, nova),
        not_compared=error)


def _covered(context: context.Context, rows: abc.Iterable[journal.Row],
             request: Request) -> list[journal.Row]:
    """Return the rows that the request covers entirely."""
    rows = list(rows)
    nova = source.Nova({}, {}, {})
    if rows and request.hosts:
        nova = context.nova.read((), {
            node for row in rows for node in row.dirty.nodes})
    return [row for row in rows if request.covers(row.dirty, nova)]


def _drain(mirror: reconciler.Reconciler, rows: abc.Collection[journal.Row],
           request: Request) -> Outcome:
    """Mirror the rows; a provider without an answer has a second chance."""
    context = mirror.context
    if rows:
        context.display.step('Journal: %s to mirror'
                             % plurals.count(len(rows), 'operation'))
        survey.check_placement(context, context.placement.providers(),
                               context.nova.read_all())
    if request.write:
        return mirror.drain(rows, silent={})
    return mirror.converge((row.dirty for row in rows), provider_writes.Mode(
        write=False, silent={}))


def _refusal(compared: Comparison, changes: list[plan.Change],
             share: float | None) -> exceptions.RemovalsRefused | None:
    """Return why the brake refuses the requested removals, if it does."""
    if share is None or share == UNLIMITED:
        return None
    return brake.refusal(
        changes, compared.current, compared.nova.desired(), compared.owned,
        share, sum(len(aggregates & compared.expired)
                   for aggregates in compared.other_providers().values()))


def _repair(mirror: reconciler.Reconciler, compared: Comparison,
            changes: abc.Iterable[plan.Change], request: Request,
            mode: provider_writes.Mode, outcome: Outcome) -> None:
    """Converge the providers that differ."""
    nodes = [change.provider for change in changes
             if change.add or mode.prune]
    display = mirror.context.display
    text = 'Nova has %s and %s' % (
        plurals.count(len(compared.nova.aggregates), 'aggregate'),
        plurals.count(len(compared.nova.compute_nodes()), 'compute node'))
    if nodes:
        text += '; ' + plurals.count(len(nodes), 'differs', 'differ')
    display.step(text)
    display.expect(len(nodes))
    failing = (mirror.context.failing.select(nodes)
               if mirror.context.failing else {})
    repaired = Outcome()
    for dirty in _in_order(mirror, compared.dirty(
            node for node in nodes if node not in failing)):
        repaired.add(mirror.converge(dirty, mode))
    retried, untried = _retry(mirror, compared, failing, request, mode)
    repaired.add(retried)
    repaired.mend(_once_more(mirror, compared, repaired, mode, untried))
    if mode.prune:
        repaired.add(mirror.remove(compared.expired, mode))
    # A journal row may have failed for a provider that is in sync now.
    outcome.mend(repaired)


def _in_order(mirror: reconciler.Reconciler,
              dirty: list[journal.Dirty]) -> list[list[journal.Dirty]]:
    """Group hosts: those that may delay others come later.

    Hosts with journal rows are mirrored by the drain, too, unless their
    providers fail; a large host needs two requests for each compute node.
    """
    groups: list[list[journal.Dirty]] = [[], [], []]
    journaled = mirror.journaled_hosts() if len(dirty) > 1 else frozenset()
    for host in dirty:
        groups[2 if len(host.nodes) >= MANY_NODES
               else 1 if host.host in journaled else 0].append(host)
    return groups


def _retry(mirror: reconciler.Reconciler, compared: Comparison,
           failing: abc.Mapping[str, exceptions.MirrorError], request: Request,
           mode: provider_writes.Mode) -> tuple[Outcome, frozenset[str]]:
    """Converge providers that failed before, while there is time for them.

    Some are tried in each sync, whatever the time.

    :param failing: these providers, to their previous errors
    :returns: the outcome, and the providers that were not tried: they have
        their previous errors
    """
    outcome, nodes = Outcome(), list(failing)
    mode = dataclasses.replace(mode, retries=False)
    while nodes:
        retried = mirror.converge(compared.dirty(nodes[:RETRIED]), mode)
        outcome.add(retried)
        del nodes[:RETRIED]
        if not request.may_retry() or (
                not retried.done and retried.outage(mode.silent or ())):
            break
    if nodes:
        LOG.info('%s that failed before: no time to try them again',
                 plurals.count(len(nodes), 'provider'))
        outcome.failed |= {
            Subject(PROVIDER, node): failing[node] for node in nodes}
    return outcome, frozenset(nodes)


def _once_more(mirror: reconciler.Reconciler, compared: Comparison,
               repaired: Outcome, mode: provider_writes.Mode,
               untried: frozenset[str]) -> Outcome:
    """Retry the providers for which placement failed, if they are a minority.

    Placement's database occasionally refuses one of several concurrent writes,
    for example after a deadlock, and placement answers 500.
    """
    failed = [subject.name for subject, exc in repaired.failed.items()
              if isinstance(exc, exceptions.ServiceFailed)
              and subject.kind == PROVIDER
              and subject.name in compared.nova.nodes
              and subject.name not in untried]
    if not failed or len(failed) > max(1, len(repaired.done)):
        return Outcome()
    mirror.context.display.step(
        'Retrying %s after errors of placement'
        % plurals.count(len(failed), 'compute node'))
    mirror.context.display.expect(len(failed))
    return mirror.converge(compared.dirty(failed), mode)


def _find_contradictions(context: context.Context, compared: Comparison,
                         differences: abc.Iterable[Association],
                         hosts: abc.Collection[str], outcome: Outcome) -> None:
    """Report what neither a sync nor nova-compute can repair."""
    conflicts = occupied_names.find(context, {
        association.provider for association in differences
        if association.state is associations.State.PENDING
    }, compared.nova.compute_nodes())
    conflicts |= compared.contradictions(hosts)
    outcome.unwritten |= {Subject(PROVIDER, node) for node in conflicts}
    outcome.failed |= {
        Subject(PROVIDER, node): exc for node, exc in conflicts.items()}


def _observe(context: context.Context, compared: Comparison, request: Request,
             outcome: Outcome) -> None:
    if request.feeds_ledger and compared.whole and not compared.only:
        outcome.write_journal(functools.partial(
            context.ledger.observe, compared.nova.aggregates,
            compared.empty()))
