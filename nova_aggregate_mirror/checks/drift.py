# SPDX-License-Identifier: Apache-2.0
"""Check of drift: differences between nova and placement, by zone."""

import collections
from collections import abc

from nova_aggregate_mirror import checks
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.source import database

State = associations.State
VERBS = {State.MISSING: 'lacks', State.STALE: 'still has',
         State.STALE_KEPT: 'still has'}

CODES = dict.fromkeys((
    exit_status.NOT_MAPPED, exit_status.NO_NODE, exit_status.NO_PROVIDER,
), checks.Code.WARNING)
"""Results for problems by their status; others are failures."""
LISTING = commands.SYNC + ' --dry-run --format json'
# Of the commands in the step of the brake, the other is not to be copied
# unread.
COMMANDS = {'removals_refused': (commands.SYNC + ' --prune --dry-run',)}
"""Commands to copy, by the kind of a failure."""


def find(deployment: checks.Deployment) -> checks.Findings:
    """Compare all of nova with all of placement."""
    options, store = deployment.conf.aggregate_mirror, deployment.journal
    observes = conf.observes(deployment.conf)
    try:
        zones = deployment.source.zones()
        mirror = reconciler.Reconciler(
            store.ledger if store else journal.Ledger(),
            deployment.source, deployment.client,
            each=workers.each(options.sync_workers))
        # Where nova is only observed, no step writes to placement, not even
        # that of the brake.
        request = full_sync.Request(
            None if observes else options.max_removed_share, write=False)
        judged = full_sync.run(mirror, request=request)
        if judged.not_compared:
            raise judged.not_compared
    except exceptions.WrongPlacement as exc:
        return [checks.Finding(
            checks.Code.WARNING, problems.Problem.of(exc))]
    findings = [*_differences(judged, zones)]
    stale = judged.select(State.STALE, State.STALE_KEPT)
    # A refusal of the brake has a step of its own.
    if not (observes or judged.refused) and (
            stale or judged.select(State.MISSING)):
        findings += checks.warning(
            'To repair this now, run:',
            commands.SYNC + (' --prune' if stale else ''))
    findings += _problems(judged)
    if findings:
        return findings
    if not judged.nova.nodes:
        return checks.skipped('nova has no compute node yet')
    return checks.good('Placement is in sync with nova: %s.' % plurals.count(
        len(judged.nova.aggregates), 'host aggregate'))


def _differences(judged: result.Result, zones: database.Zones
                 ) -> abc.Iterator[checks.Finding]:
    """List the differences by availability zone, or aggregate without one."""
    hosts = collections.defaultdict[tuple[str, str], set[str]](set)
    for association in judged.associations:
        if association.state not in VERBS:
            continue
        if association.aggregate_uuid in zones:
            place = 'availability zone ' + zones[association.aggregate_uuid]
        elif association.aggregate:
            place = 'aggregate ' + association.aggregate
        else:
            place = 'deleted aggregate ' + association.aggregate_uuid
        hosts[place, VERBS[association.state]].update(
            ['host %s' % host for host in association.hosts]
            or ['provider %s' % association.provider])
    for (place, verb), names in sorted(hosts.items()):
        yield from checks.warning('In placement, %s %s %s.' % (
            place, verb, checks.some(names)))


def _problems(judged: result.Result) -> abc.Iterator[checks.Finding]:
    """List what is not mirrored, and the commands once for each kind."""
    for group in problems.shortened(
            judged.problems, '"%s"' % LISTING, checks.NAMES):
        code = CODES.get(group[0].status, checks.Code.FAILURE)
        lines = COMMANDS.get(group[0].key[0], ())
        yield from (checks.Finding(code, problem) for problem in group[:-1])
        yield checks.Finding(code, group[-1], lines)
