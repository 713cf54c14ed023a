# SPDX-License-Identifier: Apache-2.0
"""Checks of nova's services: options, database, hook, filters and networks.

Long because nova-api and nova-scheduler read the same nova.conf.
"""

import contextlib
from importlib import metadata
from typing import Any

from oslo_config import cfg
from oslo_utils import importutils

from nova_aggregate_mirror import checks
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.hooks import attach
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import filter_table

# The bit of wsrep_sync_wait for reads, and the option of oslo.db for it.
READS, WAIT = 1, 'mysql_wsrep_sync_wait = 1'
MIRROR_HOOK = ('[aggregate_mirror]', 'hooks = mirror')
NAMESPACE, OPTION = filter_table.NAMESPACE, filter_table.OPTION
NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
GUARD, COUNTER = filter_table.GUARD, filter_table.COUNTER
SEGMENT_ADDRESSES = filter_table.SEGMENT_ADDRESSES
# Name of a segment's provider and aggregate. With a segment, neutron deletes
# its provider's first aggregate, even a zone: no finding suggests to add any.
SEGMENT = 'Neutron segment id %s'
# Segments of a request, whose length is limited.
BATCH = 100


def options(deployment: checks.Deployment) -> checks.Findings:
    """Check that each option has a valid value, and that no other is set.

    An invalid option gets its default, so that the other checks can run.
    """
    conf = deployment.conf
    findings: checks.Findings = []
    for mistake in option_values.override_mistakes(conf).values():
        findings += checks.failed(mistake)
    for text in option_values.unknown_names(conf):
        findings += checks.warning('%s.' % text)
    files = [*(conf.config_file or ()), *(conf.config_dir or ())]
    place = ', '.join(files) or 'the environment'
    return findings or checks.good('Options were read from %s.' % place)


def database(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova's API database can be read."""
    deployment.source.aggregates()
    return []


def galera(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova waits for the commits of the other Galera nodes."""
    nodes, sync_wait = deployment.source.galera()
    if nodes < 2:
        return checks.skipped('nova\'s API database is no Galera cluster')
    cluster = 'Nova\'s API database is a Galera cluster of %d nodes' % nodes
    # An operator who has set a value has decided.
    unset = [] if sync_wait & READS else [
        section for section in ('api_database', 'database')
        if deployment.conf[section].mysql_wsrep_sync_wait is None]
    if not unset:
        return checks.good('%s; mysql_wsrep_sync_wait or the servers\' '
                           'default is set.' % cluster)
    lines: list[str] = []
    for section in unset:
        lines += '[%s]' % section, WAIT
    return checks.warning(
        '%s, and nova reads from a node what that node has applied so far: '
        'a request may not see the change that a nova-api on another node '
        'has just confirmed. The mirror itself waits. Set this for all of '
        'nova\'s services, and restart them:' % cluster, *lines)


def hook(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova-api loads the hooks, and that nova is supported."""
    release = metadata.version('nova')
    if error := exceptions.failure_of(attach.check_nova):
        return checks.failure(
            'Nova %s is not supported by this release, and mirrors host '
            'aggregates itself, best effort: %s. In nova-api\'s environment, '
            'run:' % (release, error), checks.UPGRADE)
    error = exceptions.failure_of(lambda: attach.load(deployment.conf))
    # The check of the credentials reports those that are missing.
    if error and not isinstance(error, exceptions.MissingCredentials):
        return checks.failure(
            '%s. Until this is corrected, nova mirrors host aggregates '
            'itself, best effort. The default is:' % error, *MIRROR_HOOK)
    if error := exceptions.failure_of(host_states.check_nova):
        return checks.warning(
            'Nova %s is supported, except for "scheduling explain": %s. In '
            'nova-scheduler\'s environment, run:' % (release, error),
            checks.UPGRADE)
    observes = nova_aggregate_mirror.conf.observes(deployment.conf)
    return checks.good('Nova %s is supported%s.' % (
        release, ', and mirrors host aggregates itself: the mode is observe'
        if observes else ''))


def filters(deployment: checks.Deployment) -> checks.Findings:
    """Check that request filters and host filters exist and are paired."""
    conf = deployment.conf
    names = filter_table.configured(conf)
    findings = _filter_plugins(conf, names) + _host_filters(conf, names)
    if SEGMENT_ADDRESSES in names:
        findings += _addresses(conf, names)
    if names and not findings:
        return checks.good('%s; %s is enabled.' % (', '.join(names), GUARD))
    return findings


def _outside_segments(call: errors.Call, answer: Any) -> frozenset[str]:
    listed = client.parse_list(call, answer)
    names = {entry.get('name') for entry in answer['resource_providers']}
    return frozenset(uuid for uuid in listed if SEGMENT % uuid not in names)


def sharing(deployment: checks.Deployment) -> checks.Findings:
    """Check that no sharing provider is outside of a requested aggregate."""
    placement = deployment.client
    outside: list[str] = []
    # Placement requires every provider of a candidate in the aggregate.
    aggregates = frozenset(deployment.source.aggregates())
    path = '/resource_providers?required=' + client.SHARING
    # A segment may have no aggregate but its own.
    for provider in placement.read(path, _outside_segments):
        # A provider may have been deleted since it was listed.
        with contextlib.suppress(exceptions.ProviderNotFound):
            if not aggregates <= placement.get(provider).aggregates:
                outside.append(provider)
    if not outside:
        return []
    lines = ['%s aggregate set --generation GENERATION --aggregate '
             'AGGREGATE_UUID %s' % (checks.PROVIDER, provider)
             for provider in sorted(outside)[:checks.NAMES]]
    return checks.warning(
        'A request filter does not find hosts that get disk or other '
        'resources from a sharing provider, unless that provider is in the '
        'aggregate too. Not in all aggregates: %s. For each provider, list '
        'its current aggregates and those of the hosts that it serves; or '
        'remove request_filters from nova.conf:' % checks.some(outside),
        *lines)


def segments(deployment: checks.Deployment) -> checks.Findings:
    """Check that neutron shows subnets of all segments with aggregates."""
    # From a user without the role ``admin`` neutron hides subnets of other
    # projects; nova takes their networks for networks without segments.
    conf = deployment.conf
    prefix = SEGMENT % ''
    uuids = sorted(name.removeprefix(prefix)
                   for name in deployment.aggregates.names.values()
                   if name.startswith(prefix))
    if not uuids:
        return checks.skipped('no segment has an aggregate in nova')
    reader, hidden = resources.Networks(conf), set(uuids)
    for start in range(0, len(uuids), BATCH):
        with deadline.within(conf.aggregate_mirror.inline_timeout):
            hidden -= {subnet.segment for subnet in reader.subnets(
                segment_id=uuids[start:start + BATCH])}
    if not hidden:
        return []
    return checks.warning(
        'Neutron shows the user of [neutron] no subnet of %d of the %d '
        'segments that have an aggregate in nova: %s. Nova-scheduler does not '
        'confine servers of their networks to the hosts that reach them. '
        'Neutron shows the subnets of other projects to administrators only. '
        'Run:' % (len(hidden), len(uuids), checks.some(hidden)),
        auth.role_command(conf, 'neutron'))


def _filter_plugins(conf: cfg.ConfigOpts, names: list[str]) -> checks.Findings:
    """Check that request filters load, and host filters check their rules."""
    try:
        loaded = plugins.load(NAMESPACE, OPTION, names, conf)
    except exceptions.MirrorError as exc:
        installed = sorted(metadata.entry_points(group=NAMESPACE).names)
        valid = ', '.join(name for name in names if name in installed)
        return checks.failure(
            '%s. Nova-scheduler does not start. Available request filters: '
            '%s. Correct the name, reinstall the package of the filter, or '
            'remove it:' % (exc, ', '.join(installed)),
            '[aggregate_mirror]', 'request_filters = ' + valid)
    enabled = conf.filter_scheduler.enabled_filters
    if not names or GUARD in enabled:
        return []
    lines = _enabled_filters(names, enabled)
    unchecked = filter_table.unchecked(loaded, enabled)
    if unchecked:
        return checks.failure(
            'A request filter only narrows the query to placement. No host '
            'filter checks the hosts for %s: nova-scheduler does not start. '
            'Set:' % ', '.join(unchecked), *lines)
    return checks.warning(
        'Without %s only placement checks availability zones: a server may be '
        'scheduled to another zone while placement differs from nova. Set:'
        % GUARD, *lines)


def _enabled_filters(names: list[str], enabled: list[str]) -> tuple[str, str]:
    """Return the option with all host filters that request filters need."""
    needed = [GUARD, COUNTER] if SEGMENT_ADDRESSES in names else [GUARD]
    complete = ','.join(dict.fromkeys([*enabled, *needed]))
    return '[filter_scheduler]', 'enabled_filters = ' + complete


def _addresses(conf: cfg.ConfigOpts, names: list[str]) -> checks.Findings:
    """Check what the request filter for free addresses needs."""
    enabled = conf.filter_scheduler.enabled_filters
    findings: checks.Findings = []
    if COUNTER not in enabled:
        findings += checks.warning(
            'Of several servers that are requested together, more may be '
            'scheduled to a segment than it has addresses. Set:',
            *_enabled_filters(names, enabled))
    if not conf.scheduler.query_placement_for_routed_network_aggregates:
        findings += checks.warning(
            '%s has no effect, because nova-scheduler does not use the '
            'segments of networks. Set, or remove the filter from %s:'
            % (SEGMENT_ADDRESSES, OPTION), '[scheduler]',
            'query_placement_for_routed_network_aggregates = true')
    return findings


def _host_filters(conf: cfg.ConfigOpts, names: list[str]) -> checks.Findings:
    """Check that nova-scheduler finds the enabled and required filters."""
    available = conf.filter_scheduler.available_filters
    enabled = conf.filter_scheduler.enabled_filters
    own = frozenset({GUARD, COUNTER})
    handler = importutils.import_object(
        'nova.scheduler.filters.HostFilterHandler')
    classes = set(own)
    for path in available:
        # Calling this package's function would add request filters to nova.
        nova_path = NOVA_FILTERS if path == filter_table.ALL_FILTERS else path
        try:
            classes.update(host_filter.__name__ for host_filter
                           in handler.get_matching_classes([nova_path]))
        except Exception as exc:  # It may be the operator's own code.
            return checks.failure(
                'available_filters names %s, which cannot be used: %s. '
                'Correct it.' % (path, rehearsal.reason(exc)))
    not_found = [name for name in enabled if name not in classes]
    needs_own = names or not own.isdisjoint(enabled)
    if needs_own and filter_table.ALL_FILTERS not in available:
        text = ('nova-scheduler has neither the request filters nor %s and %s'
                % (GUARD, COUNTER))
    elif not_found:
        text = 'nova-scheduler does not start: it does not find %s' % (
            checks.some(not_found))
    else:
        return []
    paths = dict.fromkeys([NOVA_FILTERS, filter_table.ALL_FILTERS, *available])
    return checks.failure(
        'With the current available_filters, %s. Set, each on its own line:'
        % text, '[filter_scheduler]',
        *map('available_filters = {}'.format, paths))
