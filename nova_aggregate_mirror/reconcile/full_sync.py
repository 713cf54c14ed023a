# SPDX-License-Identifier: Apache-2.0
"""Full sync: comparison of all of nova with all of placement, and repair.

Long because all steps share one comparison.
"""

from collections import abc
import contextlib
import dataclasses
import math

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import survey
from nova_aggregate_mirror import source

LOG = logging.getLogger(__name__)
UNLIMITED = comparison.UNLIMITED
Mode = provider_writes.Mode
Outcome = outcome.Outcome
AGGREGATE, PROVIDER, UNREAD = (
    outcome.AGGREGATE, outcome.PROVIDER, outcome.UNREAD)
Request = result.Request
Result = result.Result
Subject = outcome.Subject
MANY_NODES = 20
"""Compute nodes of a host that is converged after those with fewer."""
RETRIED = 50
"""Providers that failed before, between two checks of the time."""


def run(mirror: reconciler.Reconciler, rows: abc.Iterable[journal.Row] = (),
        request: Request = Request()) -> Result:
    """Compare all of nova with all of placement, and repair what differs.

    1. drain: mirror the given journal rows
    2. compare: read placement, then nova
    3. remember: add nova's aggregates to the ledger
    4. remove: remove aggregates that users deleted
    5. repair: add what providers lack; remove what is stale, if that was
       requested and the brake allows it
    6. observe, unless the request is limited to hosts or aggregates: note in
       the ledger the aggregates that nova does not have, and those without a
       provider in placement

    It ends early if the process stops, but not if the agent loses its lease.

    :raises MirrorError: when the sync could not start; nothing was changed
    """
    # Before the drain, so that an unknown name raises with nothing changed.
    selection = survey.select(mirror, request.aggregates)
    outcome = _drain(mirror, _covered(mirror, rows, request), request)
    try:
        compared = survey.read(mirror, selection, request.hosts)
    except exceptions.MirrorError as exc:
        return without_comparison(exc, request, outcome)
    # What the drain read is old: nova-compute may have created providers.
    outcome.missing, outcome.pending, outcome.current = set(), set(), {}
    if not request.write:
        # The drain has only computed what placement would have by now.
        compared = compared.after(outcome.changes)
    refused = compared.refusal(request.max_removed_share)
    # Without a limit of removals, the request is to only add.
    prune = request.max_removed_share is not None and not refused
    differences = associations.compare(compared, prune)
    if request.feeds_ledger:
        reconciler.write_journal(outcome, lambda: mirror.ledger.remember(
            compared.nova.aggregates))
    mode = Mode(prune=prune, write=request.write, only=compared.only,
                down=compared.nova.cells_down)
    outcome.failed |= {Subject(UNREAD, uuid): error for uuid, error
                       in compared.unread_aggregates.items()}
    removal = _remove(mirror, compared.deleted, mode)
    outcome.merge(removal, clears_failures=False)
    _repair(mirror, compared, request, mode, outcome)
    _restore_failed_removals(outcome, removal, compared)
    without_provider = {association.provider for association in differences
                        if association.state is associations.State.PENDING}
    # Neither a sync nor nova-compute can repair these contradictions.
    add_contradictions(outcome, survey.name_conflicts(
        mirror.nova, mirror.placement, without_provider, compared.nova))
    add_contradictions(outcome, compared.disputed_providers())
    add_contradictions(
        outcome, survey.listed_but_denied(mirror, compared, outcome.missing))
    removable = (survey.add_foreign(mirror, compared, outcome)
                 if request.foreign else frozenset[str]())
    if request.feeds_ledger and not compared.hosts and not compared.only:
        reconciler.write_journal(outcome, lambda: mirror.ledger.observe(
            compared.nova.aggregates, compared.without_provider()))
    drift = [association for association in differences
             if association.state in associations.DRIFT]
    return Result(
        outcome, nova=compared.requested_nova(),
        associations=associations.after_sync(
            differences, outcome, compared.nova),
        drift=drift, refused=refused, removable=removable, request=request)


def of_hosts(context: provider_writes.Context, hosts: frozenset[str],
             nodes: frozenset[str], patience: float) -> Result:
    """Compare some hosts with placement, and write nothing.

    Each compute node is a request, and a mapped host is read in its own cell.

    :param nodes: compute nodes of the hosts, as far as they are known; for
        any other, nova is read once more
    :param patience: see ``provider_writes.Mode``
    """
    request = Request(write=False, hosts=hosts)
    outcome = provider_writes.converge(
        context, [journal.Dirty(host, nodes) for host in hosts],
        Mode(write=False, patience=patience))
    # The ledger is empty: no former aggregates are looked for.
    compared = comparison.Comparison(
        outcome.current, outcome.truth or source.Nova({}, {}, {}), ledger={},
        hosts=hosts, unread_providers={
            subject.name: error for subject, error in outcome.failed.items()
            if subject.kind == PROVIDER})
    # A cell that is down has already failed each host that it may have.
    nova = dataclasses.replace(compared.requested_nova(), cells_down={})
    if not outcome.current and (outcome.outage or not outcome.truth):
        # Each host and node failed for the same reason, which is given once.
        error = outcome.outage or next(iter(outcome.failed.values()))
        outcome.failed.clear()
        return Result(outcome, nova, not_compared=error, request=request)
    add_contradictions(outcome, compared.disputed_providers())
    return Result(outcome, nova, associations.compare(compared),
                  request=request)


def without_comparison(error: exceptions.MirrorError, request: Request,
                       outcome: Outcome | None = None) -> Result:
    """Return the result of a sync that ``error`` ended before it compared."""
    outcome, nova = outcome or Outcome(), source.Nova({}, {}, {})
    # Of the associations, only what the drain has changed is known.
    return Result(outcome, nova, associations.after_sync((), outcome, nova),
                  not_compared=error, request=request)


def _covered(context: provider_writes.Context, rows: abc.Iterable[journal.Row],
             request: Request) -> list[journal.Row]:
    """Return the rows that the request covers entirely."""
    # A row is about all aggregates of its host.
    rows = [] if request.aggregates else list(rows)
    if not rows or not request.hosts:
        return rows
    nodes = frozenset[str]().union(*(row.dirty.nodes for row in rows))
    nova = context.nova.read((), nodes)
    covered = []
    for row in rows:
        hosts = map(nova.hosts_of, row.dirty.nodes)
        if request.hosts.issuperset({row.dirty.host}.union(*hosts)):
            covered.append(row)
    return covered


def _drain(mirror: reconciler.Reconciler, rows: abc.Collection[journal.Row],
           request: Request) -> Outcome:
    """Mirror the rows; without ``write``, compute what that would change."""
    if rows:
        mirror.display.step('Journal: %s to mirror'
                            % plurals.count(len(rows), 'operation'))
        survey.check_placement(mirror.placement, mirror.placement.providers(),
                               mirror.nova.read_all())
    if request.write:
        return reconciler.drain(mirror, rows)
    return mirror.converge((row.dirty for row in rows), Mode(
        write=False, patience=math.inf))


def _repair(mirror: reconciler.Reconciler, compared: comparison.Comparison,
            request: Request, mode: Mode, outcome: Outcome) -> None:
    """Converge the providers that differ, and remove expired aggregates."""
    nodes = [change.provider for change in compared.changes
             if change.add or mode.prune]
    nova = compared.nova
    text = 'Nova has %s and %s%s' % (
        plurals.count(len(nova.aggregates), 'aggregate'),
        plurals.count(len(nova.compute_nodes()), 'compute node'),
        problems.unread(nova))
    if nodes:
        text += '; ' + plurals.count(len(nodes), 'differs', 'differ')
    mirror.display.step(text, len(nodes))
    differing = frozenset(nodes)
    failed_before = {
        node: error for node, error in request.failed_before.items()
        if node in differing}
    healthy = [node for node in nodes if node not in failed_before]
    repaired = Outcome()
    for hosts in _groups(mirror, compared.dirty(healthy)):
        repaired.merge(mirror.converge(hosts, mode))
    if not repaired.outage:
        # Those silent in this sync have another try, after all others.
        failed_before |= _silent(repaired)
    repaired.merge(_retry(mirror, compared, failed_before, request, mode))
    if mode.prune:
        removal = _remove(mirror, compared.expired, mode)
        repaired.merge(removal, clears_failures=False)
    # Failures of the drain are cleared, too, if their providers are in sync.
    outcome.merge(repaired)


def _remove(mirror: reconciler.Reconciler, aggregates: abc.Iterable[str],
            mode: Mode) -> Outcome:
    """Remove aggregates that nova does not have from every provider.

    :param aggregates: UUIDs; an aggregate that nova has is kept
    """
    outcome = Outcome()
    for uuid in sorted(aggregates):
        if outcome.outage:
            outcome.failed[Subject(AGGREGATE, uuid)] = outcome.outage
        else:
            removal = mirror.remove(uuid, mode, _silent(outcome))
            outcome.merge(removal, clears_failures=False)
    return outcome


def _silent(outcome: Outcome) -> dict[str, exceptions.MirrorError]:
    """Map the providers that did not answer, while others did, to errors."""
    return {subject.name: error for subject, error in outcome.failed.items()
            if subject.kind == PROVIDER and error.is_outage}


def _restore_failed_removals(outcome: Outcome, removal: Outcome,
                             compared: comparison.Comparison) -> None:
    """Restore failed removals of aggregates that providers still have.

    The repair has cleared the failures of each provider that it converged.
    """
    current = {**compared.current, **outcome.current}
    last_read = dataclasses.replace(compared, current=current)
    later = last_read.after(outcome.changes)
    for subject, error in removal.failed.items():
        if later.current.get(subject.name, frozenset()) & compared.deleted:
            outcome.failed[subject] = error
            if subject in removal.unwritten:
                outcome.unwritten.add(subject)


def _groups(mirror: reconciler.Reconciler, hosts: list[journal.Dirty]
            ) -> list[list[journal.Dirty]]:
    """Group hosts: those that may delay others come later.

    Hosts with journal rows are mirrored by the drain, too, unless their
    providers fail; a large host needs two requests for each compute node.
    """
    first, journaled, large = [], [], []
    hosts_with_rows = frozenset[str]()
    if mirror.rows and len(hosts) > 1:
        with contextlib.suppress(exceptions.JournalUnavailable):
            hosts_with_rows = mirror.rows.hosts()
    for host in hosts:
        if len(host.nodes) >= MANY_NODES:
            large.append(host)
        elif host.host in hosts_with_rows:
            journaled.append(host)
        else:
            first.append(host)
    return [first, journaled, large]


def _retry(mirror: reconciler.Reconciler, compared: comparison.Comparison,
           failed_before: outcome.Errors, request: Request, mode: Mode
           ) -> Outcome:
    """Converge providers that failed before, while there is time for them.

    Some are tried in each sync, whatever the time. The others come first in
    ``failed``: the next sync tries them in this order.
    """
    outcome, nodes = Outcome(), list(failed_before)
    while nodes:
        batch, nodes = nodes[:RETRIED], nodes[RETRIED:]
        retried = mirror.converge(compared.dirty(batch), dataclasses.replace(
            mode, again_after_conflict=False,
            patience=request.time_to_retry()))
        outcome.merge(retried)
        is_outage = retried.outage and not retried.done
        if is_outage or request.time_to_retry() <= 0:
            break
    if nodes:
        LOG.info('%s that failed before: not tried again',
                 plurals.count(len(nodes), 'provider'))
    untried = {Subject(PROVIDER, node): failed_before[node] for node in nodes}
    outcome.failed = untried | outcome.failed
    return outcome


def add_contradictions(outcome: Outcome, errors: outcome.Errors) -> None:
    """Record why providers cannot be mirrored."""
    failed = {Subject(PROVIDER, node): error for node, error in errors.items()}
    outcome.failed |= failed
    outcome.unwritten |= failed.keys()
