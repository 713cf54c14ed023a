# SPDX-License-Identifier: Apache-2.0
"""Checks of what the metadata of host aggregates means to nova."""

import collections
from collections import abc
import shlex

from oslo_config import cfg

from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import checks
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.source import keyed_aggregates

Findings = checks.Findings
ZONE = constraints.ZONE
TRAIT = 'trait:'
TRAITS = keyed_aggregates.Keys(prefixes=frozenset({TRAIT}))
REQUIRED = 'required'
RATIOS = {'cpu_allocation_ratio': 'VCPU', 'ram_allocation_ratio': 'MEMORY_MB',
          'disk_allocation_ratio': 'DISK_GB'}
"""Keys that nova leaves to placement, to resource classes."""
Row = tuple[abc.Callable[[cfg.ConfigOpts, str, str], bool], str,
            tuple[str, ...]]
"""Pattern of a key and its value, sentence, commands for each such key."""
ByZone = abc.Mapping[str, list[str]]
"""Zone to the names of the aggregates that have it."""
UNSET = 'openstack aggregate unset --property availability_zone '
REMOVE = 'openstack aggregate remove host %s %s'
RENAME = ('openstack aggregate set --zone NAME {name}',)
ZONES = (
    (lambda conf, key, value: key == ZONE and (
     value == conf.default_availability_zone),
     'has the zone of hosts without a zone (default_availability_zone): '
     'requests for it are confined to such aggregates. Without servers, set '
     'another:', RENAME),
    (lambda conf, key, value: key == ZONE and (
     value == conf.internal_service_availability_zone),
     'has the zone of other services (internal_service_availability_zone), '
     'which nova-api does not list. Without servers, set another:', RENAME),
    (lambda _conf, key, value: key == ZONE and ':' in value,
     'has a zone with a colon, after which nova expects a host: no server '
     'can be created in it. Set another zone:', RENAME))
ALLOCATION = ((
    lambda _conf, key, _value: key in RATIOS,
    'has {keys}, which nova ignores. Set the ratio in placement for the hosts '
    'of the aggregate, then remove it from the aggregate. A ratio of the same '
    'name in nova.conf of a host overrides that of placement:', (
        checks.PROVIDER + ' inventory set --aggregate {uuid} --amend '
        '--resource {resource}:allocation_ratio={value}',
        'openstack aggregate unset --property {key} {name}')),)
ISOLATION = ((
    lambda _conf, key, value: key.startswith(TRAIT) and value != REQUIRED,
    'is not isolated by {keys}: only the value "required" counts. Set:',
    ('openstack aggregate set --property {key}=required {name}',)),)


def _lint(rows: abc.Iterable[Row], deployment: checks.Deployment) -> Findings:
    """Report the aggregates with metadata that a row is about."""
    findings: Findings = []
    for uuid, metadata in sorted(deployment.aggregates.metadata.items()):
        name = deployment.aggregates.names[uuid]
        for pattern, sentence, templates in rows:
            keys = [key for key, value in sorted(metadata.items())
                    if pattern(deployment.conf, key, value)]
            lines: list[str] = []
            for key in keys:
                lines += [template.format(
                    uuid=uuid, name=shlex.quote(name), key=shlex.quote(key),
                    value=shlex.quote(metadata[key]), resource=RATIOS.get(key))
                    for template in templates
                    # Placement has no aggregate without a UUID.
                    if keyed_aggregates.has_uuid(uuid)
                    or '{uuid}' not in template]
            if keys:
                text = sentence.format(keys=checks.some(keys))
                findings += checks.warning(
                    'Aggregate %s %s' % (name, text), *lines)
    return findings


def ratios(deployment: checks.Deployment) -> Findings:
    """Report allocation ratios, which nova reads from placement only."""
    return _lint(ALLOCATION, deployment)


def zones(deployment: checks.Deployment) -> Findings:
    """Check the availability zones of host aggregates, and nova's options."""
    by_zone = collections.defaultdict[str, list[str]](list)
    for uuid, metadata in sorted(deployment.aggregates.metadata.items()):
        if ZONE in metadata:
            by_zone[metadata[ZONE]].append(deployment.aggregates.names[uuid])
    return [*_lint(ZONES, deployment),
            *_hosts_of_zones(deployment.aggregates, by_zone),
            *_default_zone(deployment, by_zone),
            *_pinned_servers(deployment.conf, by_zone)]


def _hosts_of_zones(aggregates: keyed_aggregates.Aggregates, by_zone: ByZone
                    ) -> Findings:
    """Report hosts in several zones, and zones without a host."""
    findings: Findings = []
    used = set[str]()
    for host, uuids in sorted(aggregates.members.items()):
        zones_of_host = rules.zones(host, aggregates)
        used.update(zones_of_host)
        if len(zones_of_host) > 1:
            zoned = [aggregates.names[uuid] for uuid in sorted(uuids)
                     if ZONE in aggregates.metadata[uuid]]
            lines = [REMOVE % (shlex.quote(name), shlex.quote(host))
                     for name in zoned]
            findings += checks.failure(
                'Host %s is in availability zones %s, which nova\'s API '
                'refuses: it takes the servers of each. Keep one of:'
                % (host, checks.some(zones_of_host)), *lines)
    # A host without a compute node counts: the check "Drift" reports it.
    for zone in sorted(by_zone.keys() - used):
        lines = [UNSET + shlex.quote(name) for name in by_zone[zone]]
        findings += checks.warning('No host is in availability zone %s. Add a '
                                   'host, or remove the zone:' % zone, *lines)
    return findings


def _default_zone(deployment: checks.Deployment, by_zone: ByZone) -> Findings:
    """Check the zone of requests that name none."""
    conf, nova = deployment.conf, deployment.nova
    aggregates = deployment.aggregates
    zone, default = conf.default_schedule_zone, conf.default_availability_zone
    # Nova-api accepts the internal zone, because enabled services are in it.
    if zone in (None, '', conf.internal_service_availability_zone):
        return []
    if zone in (*by_zone, default):
        # A cell that is down, or a node to be added, may have such a host.
        if nova.cells_down or not nova.nodes:
            return []
        for host in nova.hosts() | aggregates.members.keys():
            if zone in (rules.zones(host, aggregates) or [default]):
                return []
    return checks.failure(
        'No host is in zone %s, so that each request without a zone fails. '
        'Set the zone of an aggregate with hosts, or remove:' % zone,
        '[DEFAULT]', 'default_schedule_zone = %s' % zone)


def _pinned_servers(conf: cfg.ConfigOpts, by_zone: ByZone) -> Findings:
    """Report servers that are pinned to the zone of hosts without a zone."""
    zone = conf.default_availability_zone
    # Servers may be pinned to a zone that aggregates have.
    count = 0 if zone in by_zone else readers.count_pinned(zone)
    if not count:
        return []
    return checks.warning(
        'Of the newest %d requests, %s pinned to availability zone %s, that '
        'of hosts without a zone (default_availability_zone). Nova refuses to '
        'unshelve them on a host of a zone. To list those of them that are on '
        'a host, with the command that unpins each, run:' % (
            readers.NEWEST, plurals.count(
                count, 'server is', 'servers are'), zone),
        commands.AUDIT + ' --rule default_zone')


def isolation(deployment: checks.Deployment) -> Findings:
    """Check the hosts that nova forbids to requests without a trait."""
    aggregates = deployment.aggregates
    findings = _lint(ISOLATION, deployment)
    for uuid, metadata in sorted(aggregates.metadata.items()):
        for key in sorted(metadata):
            if key.startswith(TRAIT) and metadata[key] == REQUIRED:
                findings += _lacking(deployment, uuid, key.removeprefix(TRAIT))
    return findings


def _lacking(deployment: checks.Deployment, uuid: str, trait: str) -> Findings:
    """Report compute nodes that lack a trait that requests have to have."""
    aggregates, nova = deployment.aggregates, deployment.nova
    hosts = frozenset(host for host, uuids in aggregates.members.items()
                      if uuid in uuids)
    nodes = nova.nodes_of(hosts)
    if not nodes:
        return []
    text = ('Aggregate %s is isolated for requests with trait %s, which'
            % (aggregates.names[uuid], trait))
    try:
        providers = deployment.client.providers(required=trait)
    except exceptions.RequestRejected:
        text += ' placement does not have: its hosts take no servers. '
        if not trait.startswith('CUSTOM_'):
            return checks.failure(text + 'Correct the key.')
        return checks.failure(
            text + 'Create the trait, and add it to each host:',
            checks.TRAIT + ' create ' + shlex.quote(trait))
    except exceptions.MirrorError as exc:
        return checks.failed(exc)
    lacking = sorted(nodes - providers)
    if not lacking:
        return []
    names = hosts & frozenset[str]().union(*map(nova.hosts_of, lacking))
    lines = ['%s trait set --trait %s --trait ... %s' % (
        checks.PROVIDER, shlex.quote(trait), node)
        for node in lacking[:checks.NAMES]]
    return checks.warning(
        '%s its hosts %s do not have: they take no servers. Add the trait to '
        'those of each of them:' % (text, checks.some(names)), *lines)


def unread_keys(deployment: checks.Deployment) -> Findings:
    """Report metadata that is meant for a filter which is not enabled."""
    conf, aggregates = deployment.conf, deployment.aggregates
    extra_specs = constraints.extra_spec_keys(deployment.extra_specs)
    flavor_keys = keyed_aggregates.Keys(frozenset(extra_specs.values()))
    confines_tenants = conf.scheduler.limit_tenants_to_placement_aggregate
    rows = [row for row in filter_table.FILTERS if row.host_filter]
    enabled = [row for row in rows if filter_table.enabled(row.name, conf)
               or (confines_tenants and row.keys == constraints.TENANT_KEYS)]
    read = [row.keys or flavor_keys for row in enabled]
    unread = collections.defaultdict[str, list[str]](list)
    for uuid, metadata in aggregates.metadata.items():
        for key in metadata:
            if not any(key in keys for keys in read):
                unread[key].append(aggregates.names[uuid])
    meant = {row.host_filter: row.keys or flavor_keys
             for row in rows if row not in enabled}
    missing = [name for name, keys in meant.items()
               if any(key in keys for key in unread)]
    # One line for all: the last of several would be in effect.
    complete = ','.join([*conf.filter_scheduler.enabled_filters, *missing])
    options = [(keys, '[filter_scheduler]', 'enabled_filters = ' + complete)
               for keys in meant.values()]
    if not conf.scheduler.enable_isolated_aggregate_filtering:
        options.append((TRAITS, '[scheduler]',
                        'enable_isolated_aggregate_filtering = true'))
    findings: Findings = []
    for keys, *lines in options:
        texts = ['%s of aggregate %s' % (key, checks.some(names))
                 for key, names in sorted(unread.items()) if key in keys]
        if texts:
            findings += checks.warning(
                'No enabled filter of nova or of this package reads %s: it '
                'confines no request. Set, or remove the key:'
                % ', '.join(texts), *lines)
    return findings
