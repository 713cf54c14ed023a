# SPDX-License-Identifier: Apache-2.0
"""Checks of what the metadata of host aggregates means to nova.

Long because each finding comes with the commands of its repair.
"""

from collections import abc
import shlex

from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.audit import server_pages
from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import metadata_rules
from nova_aggregate_mirror import source

ZONE = metadata_rules.ZONE
TRAIT = 'trait:'
REQUIRED = 'required'
# Keys that nova does not read since it uses placement, to resource classes.
RATIOS = {'cpu_allocation_ratio': 'VCPU', 'ram_allocation_ratio': 'MEMORY_MB',
          'disk_allocation_ratio': 'DISK_GB'}
Zones = abc.Mapping[str, abc.Sequence[str]]
"""Availability zones to the UUIDs of their aggregates."""


def zones(deployment: inputs.Deployment) -> checks.Findings:
    """Check the availability zones of host aggregates, and nova's options."""
    by_zone: dict[str, list[str]] = {}
    for uuid, metadata in sorted(deployment.aggregates.metadata.items()):
        if ZONE in metadata:
            by_zone.setdefault(metadata[ZONE], []).append(uuid)
    return [*_names(deployment, by_zone), *_overlaps(deployment.aggregates),
            *_empty_zones(deployment.aggregates, by_zone),
            *_default_zone(deployment, by_zone),
            *_pinned_servers(deployment, by_zone)]


def _names(deployment: inputs.Deployment, by_zone: Zones
           ) -> abc.Iterator[checks.Finding]:
    """Report the names that mean something else to nova."""
    conf = deployment.conf
    reserved = {
        conf.default_availability_zone: (
            'is also the zone of hosts without a zone '
            '(default_availability_zone): requests for it are confined to '
            'these aggregates'),
        conf.internal_service_availability_zone: (
            'is also the zone of services other than nova-compute '
            '(internal_service_availability_zone): nova-api does not list it')}
    for zone, uuids in sorted(by_zone.items()):
        names = [deployment.aggregates.names[uuid] for uuid in uuids]
        reason = reserved.get(zone)
        if not reason and ':' in zone:
            reason = ('has a colon, after which nova expects a host: no '
                      'server can be created in it')
        if reason:
            yield checks.warning(
                'Availability zone %s of aggregate %s %s. Give it another '
                'name, when its hosts have no servers:'
                % (zone, checks.some(names), reason),
                *('openstack aggregate set --zone NAME %s'
                  % shlex.quote(name) for name in names))


def _overlaps(aggregates: source.Aggregates) -> abc.Iterator[checks.Finding]:
    """Report hosts in several zones, which nova's API does not allow."""
    for host, members in sorted(aggregates.members.items()):
        names = rules.zones(frozenset(members), aggregates.metadata)
        if len(names) > 1:
            yield checks.failure(
                'Host %s is in availability zones %s: it takes the servers of '
                'each of them. Nova\'s API refuses this, so that its database '
                'was changed otherwise. Keep one of:'
                % (host, checks.some(names)),
                *('openstack aggregate remove host %s %s' % (
                    shlex.quote(aggregates.names[uuid]), shlex.quote(host))
                  for uuid in sorted(members)
                  if ZONE in aggregates.metadata[uuid]))


def _empty_zones(aggregates: source.Aggregates, by_zone: Zones
                 ) -> abc.Iterator[checks.Finding]:
    """Report zones that have no host.

    The check of drift says what to do for hosts without a compute node.
    """
    used = frozenset[str]().union(*aggregates.members.values())
    empty = {zone: uuids for zone, uuids in by_zone.items()
             if used.isdisjoint(uuids)}
    if empty:
        yield checks.warning(
            'No host is in availability zone %s. Add a host, or remove the '
            'zone:' % checks.some(empty), *(
                'openstack aggregate unset --property %s %s' % (
                    ZONE, shlex.quote(aggregates.names[uuid]))
                for _zone, uuids in sorted(empty.items())[:checks.NAMES]
                for uuid in uuids))


def _default_zone(deployment: inputs.Deployment, by_zone: Zones
                  ) -> abc.Iterator[checks.Finding]:
    """Check the zone of requests that name none."""
    conf, nova = deployment.conf, deployment.nova
    zone, aggregates = conf.default_schedule_zone, deployment.aggregates
    # Nova-api accepts each zone that an enabled service is in.
    if not zone or zone == conf.internal_service_availability_zone:
        return
    default = conf.default_availability_zone
    has_host = any(zone in (rules.zones(
        aggregates.of_host(host), aggregates.metadata) or [default])
        for host in nova.hosts() | aggregates.members.keys())
    # A cell that is down, or a node still to be added, may have such a host.
    if zone in (*by_zone, default) and (
            has_host or nova.cells_down or not nova.nodes):
        return
    yield checks.failure(
        'default_schedule_zone is %s, and no host is in this availability '
        'zone: each request without a zone fails. Set the zone of an '
        'aggregate with hosts, or remove:' % zone, '[DEFAULT]',
        'default_schedule_zone = %s' % zone)


def _pinned_servers(deployment: inputs.Deployment, by_zone: Zones
                    ) -> abc.Iterator[checks.Finding]:
    """Report servers that are pinned to the zone of hosts without a zone."""
    zone = deployment.conf.default_availability_zone
    if zone in by_zone:
        return
    count, sampled = server_pages.count_pinned(zone)
    if count:
        yield checks.warning(
            '%s%s pinned to availability zone %s, which hosts have that are '
            'in no zone (default_availability_zone). Nova refuses to unshelve '
            'them on a host of a zone. To list those of them that are on a '
            'host, with the command that unpins each, run:' % (
                'Of the newest %d requests, ' % server_pages.NEWEST
                if sampled else '', plurals.count(
                    count, 'server is', 'servers are'), zone),
            '%s --rule default_zone' % commands.AUDIT)


def ratios(deployment: inputs.Deployment) -> checks.Findings:
    """Report allocation ratios, which nova reads from placement only."""
    aggregates, findings = deployment.aggregates, []
    for uuid, metadata in sorted(aggregates.metadata.items()):
        keys = [key for key in RATIOS if key in metadata]
        if not keys:
            continue
        repair = ['openstack aggregate unset %s %s' % (
            ' '.join('--property ' + key for key in keys),
            shlex.quote(aggregates.names[uuid]))]
        # An aggregate without a UUID is not in placement.
        if source.has_uuid(uuid):
            resources = ['--resource %s:allocation_ratio=%s' % (
                RATIOS[key], shlex.quote(metadata[key])) for key in keys]
            repair.insert(0, '%s inventory set --aggregate %s --amend %s' % (
                checks.PROVIDER, uuid, ' '.join(resources)))
        findings.append(checks.warning(
            'Aggregate %s has an allocation ratio, which nova ignores. '
            'Set it in placement for the hosts of the aggregate, then '
            'remove it from the aggregate. A ratio of the same name in '
            'nova.conf of a host overrides that of placement:'
            % aggregates.names[uuid], *repair))
    return findings


def isolation(deployment: inputs.Deployment) -> checks.Findings:
    """Check the hosts of aggregates that require traits of requests.

    Nova forbids them to other requests, and placement finds them for such
    requests only if they have the traits.
    """
    aggregates, nova, findings = deployment.aggregates, deployment.nova, []
    for uuid, metadata in sorted(aggregates.metadata.items()):
        name = aggregates.names[uuid]
        keys = sorted(key for key in metadata if key.startswith(TRAIT))
        ignored = [key for key in keys if metadata[key] != REQUIRED]
        if ignored:
            findings.append(checks.warning(
                'Aggregate %s is not isolated by %s: only the value "%s" '
                'counts. Set:' % (name, checks.some(ignored), REQUIRED),
                'openstack aggregate set %s %s' % (' '.join(
                    '--property %s=%s' % (shlex.quote(key), REQUIRED)
                    for key in ignored), shlex.quote(name))))
        required = [key for key in keys if key not in ignored]
        if not required:
            continue
        hosts = frozenset(host for host, within in aggregates.members.items()
                          if uuid in within)
        nodes = {node: nova.hosts_of(node) & hosts
                 for node in nova.nodes_of(hosts)}
        for key in required if nodes else ():
            findings += _lacking(name, key.removeprefix(TRAIT), nodes,
                                 deployment.client)
    return findings


def _lacking(aggregate: str, trait: str,
             nodes: abc.Mapping[str, abc.Collection[str]],
             placement: client.Client) -> abc.Iterator[checks.Finding]:
    """Report compute nodes that lack a trait that requests have to have."""
    try:
        having = placement.having(trait)
    except exceptions.RequestRejected:
        yield checks.failure(
            'Aggregate %s is isolated for requests with trait %s, which '
            'placement does not have: its hosts take no servers. Create the '
            'trait, and add it to each host:' % (aggregate, trait),
            checks.TRAIT + ' create ' + shlex.quote(trait))
        return
    except exceptions.MirrorError as exc:
        yield checks.failed(exc)
        return
    lacking = sorted(set(nodes) - having)
    if lacking:
        yield checks.warning(
            'Aggregate %s is isolated for requests with trait %s, which its '
            'hosts %s do not have: they take no servers. Add the trait to '
            'the traits of each of them:' % (
                aggregate, trait, checks.some(
                    {host for node in lacking for host in nodes[node]})),
            *('%s trait set --trait %s --trait ... %s' % (
                checks.PROVIDER, shlex.quote(trait), node)
              for node in lacking[:checks.NAMES]))


def unread_keys(deployment: inputs.Deployment) -> checks.Findings:
    """Report metadata that is meant for a filter which is not enabled."""
    conf, aggregates = deployment.conf, deployment.aggregates
    of_flavors = metadata_rules.Keys(frozenset(metadata_rules.extra_spec_keys(
        deployment.extra_specs).values()))
    keys = {row: row.keys or of_flavors
            for row in filter_table.FILTERS if row.host_filter}
    disabled = filter_table.disabled(conf)
    read = [keys[row] for row in keys if row not in disabled]
    readers = [(keys[row], '[filter_scheduler]', 'enabled_filters = '
                + ','.join([*conf.filter_scheduler.enabled_filters,
                            row.host_filter])) for row in disabled]
    if not conf.scheduler.enable_isolated_aggregate_filtering:
        readers.append((metadata_rules.Keys(prefixes=frozenset({TRAIT})),
                        '[scheduler]',
                        'enable_isolated_aggregate_filtering = true'))
    findings = []
    for unread, *lines in readers:
        names: dict[str, list[str]] = {}
        for uuid, metadata in sorted(aggregates.metadata.items()):
            for key in metadata:
                if key in unread and not any(
                        key in enabled for enabled in read):
                    names.setdefault(key, []).append(aggregates.names[uuid])
        if names:
            findings.append(checks.warning(
                'No enabled filter of nova or of this package reads %s: it '
                'confines no request. Set, or remove the key:' % ', '.join(
                    '%s of aggregate %s' % (key, checks.some(having))
                    for key, having in sorted(names.items())), *lines))
    return findings
