# SPDX-License-Identifier: Apache-2.0
"""Check of drift: differences between nova and placement, by zone."""

from collections import abc

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.source import database

State = associations.State
VERBS = {State.MISSING: 'lacks', State.STALE: 'still has',
         State.STALE_KEPT: 'still has'}

DISCOVER = 'nova-manage cell_v2 discover_hosts'
RESTART = 'systemctl restart nova-compute'


def find(deployment: inputs.Deployment) -> checks.Findings:
    """Compare all of nova with all of placement."""
    options, store = deployment.conf.aggregate_mirror, deployment.journal
    try:
        zones = deployment.source.zones()
        mirror = reconciler.Reconciler(
            store.ledger if store else journal.Ledger(),
            deployment.source, deployment.client,
            count=options.sync_workers)
        sync = full_sync.run(mirror, request=full_sync.Request(
            max_removed_share=options.max_removed_share, write=False))
        if sync.not_compared:
            raise sync.not_compared
    except exceptions.WrongPlacement as exc:
        return [checks.warning('%s.' % exc)]
    findings = [
        *_differences(sync, zones),
        *_repair(sync, observes=conf.observes(deployment.conf)),
        *_unmirrored_hosts(sync), *_failures(sync)]
    if findings:
        return findings
    if not sync.nova.nodes:
        return [checks.skipped('nova has no compute node yet')]
    return [checks.good('Placement is in sync with nova: %s.' % plurals.count(
        len(sync.nova.aggregates), 'host aggregate'))]


def _differences(sync: full_sync.SyncOutcome,
                 zones: database.Zones) -> abc.Iterator[checks.Finding]:
    """List the differences by availability zone, or aggregate without one.

    Providers that are not compute nodes are listed by their UUID.
    """
    places: dict[str, dict[str, set[str]]] = {}
    for association in sync.associations:
        if association.state not in VERBS:
            continue
        if association.aggregate_uuid in zones:
            place = 'availability zone ' + zones[association.aggregate_uuid]
        elif association.aggregate:
            place = 'aggregate ' + association.aggregate
        else:
            place = 'deleted aggregate ' + association.aggregate_uuid
        places.setdefault(place, {}).setdefault(
            VERBS[association.state], set()).update(
                ['host %s' % host for host in association.hosts]
                or ['provider %s' % association.provider])
    for place, differences in sorted(places.items()):
        yield checks.warning('In placement, %s %s.' % (place, ' and '.join(
            '%s %s' % (verb, checks.some(hosts))
            for verb, hosts in sorted(differences.items()))))


def _repair(sync: full_sync.SyncOutcome, observes: bool
            ) -> abc.Iterator[checks.Finding]:
    """Report the repair; where nova is only observed, refusals alone."""
    if observes:
        if sync.refused:
            yield checks.failure(
                'Removals refused: %s.' % sync.refused.failure.observed)
        return
    states = {association.state for association in sync.associations}
    stale = states & {State.STALE, State.STALE_KEPT}
    if sync.refused:
        yield checks.failure(
            'Removals refused: %s:' % sync.refused,
            checks.SYNC + ' --prune --dry-run',
            checks.SYNC + ' --prune --force')
    elif stale or State.MISSING in states:
        yield checks.warning('To repair this now, run:', checks.SYNC + (
            ' --prune' if stale else ''))


def _unmirrored_hosts(sync: full_sync.SyncOutcome
                      ) -> abc.Iterator[checks.Finding]:
    """List the member hosts that cannot be mirrored now."""
    pending = {host for association in sync.associations
               if association.state is State.PENDING
               and outcome.Subject(outcome.PROVIDER, association.provider)
               not in sync.outcome.failed
               for host in association.hosts}
    unmapped, nodeless = sync.nova.unmapped, sync.nova.nodeless()
    for text, hosts, *cure in (
            ('No resource provider yet for %s. On each listed host, run:',
             pending, RESTART),
            ('No compute node for %s. On each listed host, run:',
             nodeless - unmapped, RESTART),
            ('No host mapping for %s. Run:', unmapped - nodeless, DISCOVER),
            ('Neither host mapping nor compute node for %%s: %s.'
             % result.RETIRED, unmapped & nodeless)):
        if hosts:
            yield checks.warning(text % checks.some(hosts), *cure)


def _failures(sync: full_sync.SyncOutcome) -> abc.Iterator[checks.Finding]:
    """List what could not be compared."""
    for fault in result.without_uuid(sync.nova):
        yield checks.failure('%s.' % fault)
    for problem in problems.of_cells(
            sync.nova.cells_down, 'its hosts are not compared'):
        yield checks.warning('%s.' % problem)
    failed = {subject: exc for subject, exc in sync.outcome.failed.items()
              if not isinstance(exc, exceptions.CellUnavailable)}
    if failed:
        subject = min(failed, key=str)
        failure = failed[subject].failure
        if len(failed) == 1:
            yield checks.failure('Not mirrored: %s: %s.' % (subject, failure))
            return
        yield checks.failure(
            'Not mirrored: %s. Reason for %s: %s. To list all, run:' % (
                checks.some(map(str, failed)), subject,
                failure.observed),
            checks.SYNC + ' --dry-run')
