# SPDX-License-Identifier: Apache-2.0
"""Checks of placement and neutron: credentials, endpoint, rights and drift.

Long because the way to placement and what is found there are one subject.
"""

import collections
from collections import abc
import contextlib
import re
import time
from typing import Any

from oslo_utils import uuidutils
from oslo_utils import versionutils

from nova_aggregate_mirror import checks
from nova_aggregate_mirror import commands
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.source import database

PATIENCE = 15.0
"""Seconds for an answer: a diagnosis tells a slow party from a silent one."""
EXAMPLE = {
    'auth_type': 'password', 'auth_url': 'https://keystone.example.org/v3',
    'username': '%(group)s', 'password': 'PASSWORD', 'project_name': 'service',
    'user_domain_name': 'Default', 'project_domain_name': 'Default'}
SLOW = (('A token, the catalog and placement\'s answer', 'keystone'),
        ('Placement\'s answer', 'placement'))
"""What two requests take time for, and who is slow if only one of them is."""
# Of a section without credentials, now and from the next major release on.
CONSEQUENCES = {
    'placement': ('operations stay in the journal', 'nova-api does not start'),
    'neutron': ('nova-scheduler cannot query neutron for the hosts of a '
                'routed network', 'nova-scheduler does not start')}
State = associations.State
VERBS = {State.MISSING: 'lacks', State.STALE: 'still has',
         State.STALE_KEPT: 'still has'}
CODES = dict.fromkeys((exit_status.NOT_MAPPED, exit_status.NO_NODE,
                       exit_status.NO_PROVIDER), checks.Code.WARNING)
"""Results for problems by their status; others are failures."""
LISTING = '"%s --dry-run --format json"' % commands.SYNC
# Of the commands in the step of the brake, the other is to be read first.
COMMANDS = {'removals_refused': (commands.SYNC + ' --prune --dry-run',)}
"""Commands to copy, by the kind of a failure."""


def credentials(deployment: checks.Deployment, group: str = 'placement'
                ) -> checks.Findings:
    """Check that nova.conf has complete credentials for a service."""
    conf = deployment.conf
    section = auth.section(conf, group)
    try:
        auth.load(conf, group)
        return []
    except exceptions.MissingCredentials as exc:
        names = [*exc.options] or ['auth_type']
        # Without a missing option, the error says what auth_type is.
        reason = exc.failure.observation if exc.options else str(exc)
    if 'auth_type' in names:
        # It is unknown which of the other options are used.
        values = {name: value.strip() for _file, group_name, name, value
                  in option_values.entries(conf) if group_name == section}
        names = [name for name in EXAMPLE
                 if name == 'auth_type' or not values.get(name)]
    now, later = CONSEQUENCES[group]
    lines = ['[%s]' % section]
    for name in names:
        value = EXAMPLE.get(name, name.upper()) % {'group': group}
        lines.append('%s = %s' % (name, value))
    if conf.aggregate_mirror.missing_credentials == 'fail':
        return checks.failure('%s: %s. Set:' % (reason, later), *lines)
    return checks.warning(
        '%s: %s, and from version 2 of this package on %s. Set:'
        % (reason, now, later), *lines)


def endpoint(deployment: checks.Deployment) -> checks.Findings:
    """Check that placement answers, with the microversion of our requests."""
    conf, placement = deployment.conf, deployment.client
    slow = ''
    for what, party in SLOW:
        began = time.monotonic()
        with deadline.within(PATIENCE):
            oldest, newest = placement.read('/', _versions, version='1.0')
        waited = time.monotonic() - began
        if waited > conf.aggregate_mirror.inline_timeout:
            slow = ('%s took %.1f s, and a request to nova-api waits for all '
                    'parties together %g s: see the log of %s.' % (
                        what, waited, conf.aggregate_mirror.inline_timeout,
                        party))
    text = 'Placement has microversions %s to %s' % (oldest, newest)
    first, needed, last = map(versionutils.convert_version_to_tuple, (
        oldest, client.MICROVERSION, newest))
    if last < needed:
        return checks.failure(
            '%s; %s is required. Upgrade placement to 2.0.0 (Train) or '
            'later first:' % (text, client.MICROVERSION),
            'pip install --upgrade openstack-placement',
            'placement-manage db sync')
    if needed < first:
        return checks.failure(
            '%s; %s is no longer supported. In nova-api\'s environment, run:'
            % (text, client.MICROVERSION), checks.UPGRADE)
    return checks.warning(slow) if slow else checks.good(
        '%s; %s is used. It answers at %s.' % (
            text, client.MICROVERSION, placement.endpoint()))


def _versions(call: errors.Call, answer: dict[str, Any]) -> tuple[str, str]:
    match answer:
        case {'versions': [{'min_version': str(oldest),
                            'max_version': str(newest)}, *_]} if all(
                re.fullmatch(r'\d+\.\d+', text) for text in (oldest, newest)):
            return oldest, newest
    raise call.malformed('no microversions')


def rights(deployment: checks.Deployment) -> checks.Findings:
    """Check that the account may read and write aggregates of providers."""
    placement = deployment.client
    # Placement checks the permissions before it looks for the provider.
    absent = client.Provider(uuidutils.generate_uuid(), frozenset(), 0)
    for request in (placement.probe, lambda: placement.get(absent.uuid),
                    lambda: placement.put(absent, frozenset())):
        with deadline.within(PATIENCE), contextlib.suppress(
                exceptions.ProviderNotFound):
            request()
    return checks.good('The account may list providers, and read and write '
                       'their aggregates.')


def neutron(deployment: checks.Deployment) -> checks.Findings:
    """Check that neutron answers to the credentials of [neutron]."""
    findings = credentials(deployment, 'neutron')
    if not findings:
        with deadline.within(PATIENCE):
            # A random ID: neutron may have no subnet to ask for.
            resources.Networks(deployment.conf).subnets(
                id=[uuidutils.generate_uuid()])
    return findings


def drift(deployment: checks.Deployment) -> checks.Findings:
    """Compare all of nova with all of placement."""
    options, store = deployment.conf.aggregate_mirror, deployment.journal
    observes = nova_aggregate_mirror.conf.observes(deployment.conf)
    try:
        zones = deployment.source.zones()
        mirror = reconciler.Reconciler(
            store.ledger if store else journal.Ledger(),
            deployment.source, deployment.client,
            for_each=workers.in_threads(options.sync_workers))
        # In mode observe no step, not even the brake's, writes to placement.
        request = full_sync.Request(
            None if observes else options.max_removed_share, write=False)
        judged = full_sync.run(mirror, request=request)
        if judged.not_compared:
            raise judged.not_compared
    except exceptions.WrongPlacement as exc:
        return [checks.Finding(checks.Code.WARNING, problems.Problem.of(exc))]
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
    for group in problems.shortened(judged.problems, LISTING, checks.NAMES):
        code = CODES.get(group[0].status, checks.Code.FAILURE)
        lines = COMMANDS.get(group[0].key[0], ())
        yield from (checks.Finding(code, problem) for problem in group[:-1])
        yield checks.Finding(code, group[-1], lines)
