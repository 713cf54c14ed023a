# SPDX-License-Identifier: Apache-2.0
"""Reasons why a compute node does not pass a step, and remedies: pure.

Long because all reasons are here, in the order of the steps.
"""

from collections import abc
import dataclasses
import shlex

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror import source

Condition = placement_query.Condition
Facts = facts.Facts
Reason = explanation.Reason

COMPUTE_FILTER = 'ComputeFilter'
DISABLED = 'COMPUTE_STATUS_DISABLED'
OWNER = 'OWNER_NOVA'
_SYNC_HOST = '%s --host %s' % (commands.SYNC, explanation.HOST)
_ENABLE = ('openstack compute service set --enable %s nova-compute'
           % explanation.HOST)
_SEE_TREE = ('see "openstack resource provider inventory list" and "usage '
             'show" of the host and of the providers below it or shared with '
             'it')

ACCEPTABLE = Reason(explanation.ACCEPTABLE, explanation.ACCEPTABLE)
NO_PROVIDER = Reason(
    'no_provider', 'without a resource provider', 'placement has no provider '
    'of this compute node', result.NO_PROVIDER)
NOT_RETURNED = Reason(
    'cut', 'not among the candidates of placement', 'it meets each condition',
    'raise [placement] max_allocation_candidates of placement if it is set; '
    'if not, placement has changed meanwhile: run the command again')
OTHER_CELL = Reason(
    'cell', 'in another cell than the server', '', 'nova moves servers to '
    'another cell only in a resize or cold migration, if its policy allows '
    'that')
NO_SERVICE = Reason(
    'no_service', 'without a nova-compute service', '',
    'restart nova-compute on the host: it creates its service; if it has '
    'servers it does not start: restore its row in the table services of its '
    'cell')
DISABLED_CELL = Reason(
    'disabled_cell', 'in a disabled cell', '', 'enable the cell with '
    '"nova-manage cell_v2 update_cell --enable --cell_uuid" and its UUID from '
    '"list_cells"; then restart nova-scheduler')
NO_STATE = Reason(
    'no_state', 'without a host state in nova-scheduler', 'the compute node '
    'was deleted meanwhile', 'run the command again')
LEFT_OUT = Reason(
    'ignored', 'the host to leave', 'the server is on it')
NOT_REQUESTED = Reason('not_requested', 'not the requested host')
UNMAPPED = Reason(
    'unmapped', 'mapped to no cell', 'if nova-scheduler chooses the host, '
    'nova-conductor fails the creation', 'nova-manage cell_v2 discover_hosts '
    '--by-service')
# Options of nova-compute that reserve a resource of its host.
_RESERVATIONS = {
    name: 'lower [DEFAULT] %s of the host, and restart nova-compute' % option
    for name, option in (('VCPU', 'reserved_host_cpus'),
                         ('MEMORY_MB', 'reserved_host_memory_mb'),
                         ('DISK_GB', 'reserved_host_disk_mb'))}
_COMPARE_AGGREGATES = (
    'check the aggregates of the host and their metadata with "openstack '
    'aggregate show"')
# Filter to a phrase for the summary and advice.
_PHRASES: abc.Mapping[str, tuple[str, str]] = {
    'AffinityFilter': ('on the wrong side of an affinity', 'see the hints'),
    **{row.host_filter: (row.phrase, _COMPARE_AGGREGATES)
       for row in filter_table.FILTERS if row.host_filter},
    filter_table.GUARD: (
        'in other aggregates in nova than in placement', commands.SYNC),
    'ComputeCapabilitiesFilter': (
        'without a capability that the flavor requires',
        'compare the flavor\'s extra specs with "openstack hypervisor show"'),
    'DifferentHostFilter': (
        'with a server to keep apart from', 'change the hint different_host'),
    'ImagePropertiesFilter': (
        'unable to run the image',
        'compare architecture, hypervisor type and machine mode of the image '
        'with the host'),
    'IoOpsFilter': (
        'busy with other servers', 'wait until builds, resizes and snapshots '
        'on the host have finished, or raise max_io_ops_per_host'),
    'IsolatedHostsFilter': (
        'isolated for other images', 'see [filter_scheduler] isolated_hosts '
        'and isolated_images'),
    'JsonFilter': ('excluded by the hint query', 'change the hint query'),
    'NumInstancesFilter': (
        'full', 'raise max_instances_per_host, or move servers'),
    'NUMATopologyFilter': (
        'unable to fit the NUMA topology', 'compare hw:numa_nodes, CPU policy '
        'and page size of the flavor with the host'),
    'PciPassthroughFilter': (
        'without a free PCI device that matches', 'see [pci] device_spec of '
        'the host and the alias of the flavor'),
    'SameHostFilter': (
        'without the server to join', 'change the hint same_host'),
    'ServerGroupAffinityFilter': (
        'not the host of the server group', 'the group keeps its servers on '
        'one host; use soft-affinity, or another group'),
    'ServerGroupAntiAffinityFilter': (
        'with a server of the same group', 'add hosts, or use '
        'soft-anti-affinity'),
    'SimpleCIDRAffinityFilter': (
        'in another network', 'change the hint build_near_host_ip'),
}

OF_AGGREGATES = frozenset(
    {filter_table.GUARD, *filter_table.HOST_FILTERS.values()})
"""Filters that use the aggregates in the memory of nova-scheduler."""


def acceptable(node: str, facts: Facts) -> Reason:
    """Return that a node is acceptable, and what may be wrong with it."""
    host = facts.host(node)
    if host in facts.down:
        down = of_down(host in facts.forced_down)
        return dataclasses.replace(
            ACCEPTABLE, detail='but %s, which no filter checks for this '
            'request' % down.phrase, advice=down.advice)
    score = facts.scores.get(node, {}).get('BuildFailureWeigher', 0.0)
    if score >= 0.0:
        return ACCEPTABLE
    count = facts.failed_builds[node]
    return dataclasses.replace(
        ACCEPTABLE, detail='but %s: weight %.0f of BuildFailureWeigher' % (
            plurals.count(count, 'failed build'), score),
        advice='see nova-compute.log of the host; a build that succeeds, or a '
        'restart of nova-compute, resets the number')


def of_conductor(message: str) -> Reason:
    """Return why nova-conductor does not take a host."""
    return Reason(
        'hypervisor', 'with a hypervisor that the server cannot move to',
        message, 'migrate the server cold, or to a host with the same type '
        'of hypervisor and no older version')


def of_limit(limit: str) -> Reason:
    """Return why a node is not among the candidates that nova takes."""
    return Reason(
        'cut', 'beyond max_placement_results',
        'nova-scheduler takes %s candidates only' % limit,
        'raise [scheduler] max_placement_results, or enable '
        '[aggregate_mirror] request_filters so that placement leaves out '
        'unsuitable hosts itself')


def of_condition(condition: Condition, node: str, facts: Facts) -> Reason:
    """Return why a compute node does not meet a condition."""
    if condition.group:
        return Reason(
            'group', 'cannot meet request group %s' % condition.group,
            str(condition), 'see "openstack resource provider show" and '
            '"inventory list" of the providers below the host')
    if condition.kind == placement_query.RESOURCES:
        return _of_resource(condition, node, facts)
    if condition.kind in (placement_query.REQUIRED, placement_query.ROOT):
        return _of_trait(condition, node, facts)
    if condition.kind == placement_query.MEMBER_OF:
        if condition.forbids:
            return _of_forbidden_membership(condition, node, facts)
        return _of_membership(condition, node, facts)
    if condition.kind == placement_query.IN_TREE:
        return Reason('not_requested', 'not the requested host',
                      advice='request another host, or none')
    return Reason('group', 'without providers in the same subtree',
                  str(condition), 'see group policy and subtrees in the '
                  'flavor and in the ports')


def title(condition: Condition, nova: source.Nova) -> str:
    """Name a condition, with the names of aggregates."""
    suffix = (' in one provider (group %s)' % condition.group
              if condition.group else '')
    if condition.kind == placement_query.RESOURCES:
        return ', '.join(
            '%d %s' % (amount, name)
            for name, amount in condition.amounts.items()) + suffix
    names = condition.names
    if condition.kind == placement_query.MEMBER_OF:
        aggregates = ', '.join(_name(uuid, nova) for uuid in names)
        return ('in no aggregate of ' if condition.forbids else
                'in an aggregate of ' if names[1:] else
                'in the aggregate ') + aggregates + suffix
    if condition.kind in (placement_query.REQUIRED, placement_query.ROOT):
        return '%strait %s%s' % (
            'without ' if condition.forbids else '', names[0], suffix)
    return str(condition)


def _of_resource(condition: Condition, node: str, facts: Facts) -> Reason:
    """Return why a provider cannot allocate an amount of a resource."""
    [(name, amount)] = condition.amounts.items()
    # None: not read, or several providers have the class.
    inventories = facts.figures.get(node, {name: None})
    if name not in inventories:
        return Reason(
            'no_inventory', 'have no %s' % name, '',
            'nova-compute reports it if the host has it; check its '
            'configuration, or use another flavor')
    inventory = inventories[name]
    if inventory is None:
        readable = node not in facts.figures and facts.funnel and (
            facts.funnel.readable(node))
        return Reason('resources', 'cannot provide %d %s' % (amount, name),
                      '', 'see the figures with --host ' + explanation.HOST
                      if readable else _SEE_TREE)
    detail = 'asked %d%s, free %d of %d x %g%s' % (
        amount, _parts(facts.disk, amount) if name == 'DISK_GB' else '',
        inventory.free, inventory.total, inventory.ratio,
        ', %d reserved' % inventory.reserved if inventory.reserved else '')
    largest = min(inventory.usable, inventory.max_unit)
    all_reserved = inventory.reserved >= inventory.total
    # It would fit into what is reserved.
    if all_reserved or name in _RESERVATIONS and largest < amount <= min(
            int(inventory.reserved * inventory.ratio), inventory.max_unit,
            int(inventory.total * inventory.ratio) - inventory.used):
        return Reason(
            'reserved', 'have %s %s reserved' % (
                'all' if all_reserved else 'too much', name), detail,
            _RESERVATIONS.get(name, 'if it is an ironic node, it is in use, '
                              'in maintenance or being cleaned; see '
                              '"openstack baremetal node list"'))
    if amount > largest:
        return Reason(
            'max_unit', 'allow at most %d %s for a server' % (largest, name),
            detail, 'use a smaller flavor, or larger hosts')
    if amount < inventory.min_unit or amount % inventory.step_size:
        return Reason(
            'unit', 'do not allocate %d %s to a server' % (amount, name),
            '%s; min_unit %d, step_size %d' % (
                detail, inventory.min_unit, inventory.step_size),
            'use a flavor with another amount')
    # Less than 0 if more is allocated than a ratio allows by now.
    return _of_shortage(name, amount, inventory.usable - inventory.used,
                        detail, facts.holders.get(node, ()))


def _of_shortage(name: str, amount: int, free: int, detail: str,
                 held: facts.Holders) -> Reason:
    """Return who holds the resources that are too few, and what frees them."""
    phrase = 'have fewer than %d %s free' % (amount, name)
    if amount <= free:
        return Reason('resources', phrase, detail + ' now', 'try again')
    named = resource_holders.largest(held, name)
    if named:
        detail += '; held: ' + ', '.join(
            '%d by %s' % (holder.amounts[name], holder.subject)
            for holder in named)
    advice = 'delete or move servers, or add hosts'
    if named and named[0].advice:
        # The same may free what others hold, those not named as well.
        freed = sum(holder.amounts.get(name, 0) for holder in held
                    if holder.advice == named[0].advice)
        advice = named[0].advice if amount <= free + freed else (
            '%s; that is not enough: %s' % (named[0].advice, advice))
    return Reason('resources', phrase, detail, advice)


def _parts(disk: abc.Mapping[str, int], amount: int) -> str:
    """Return the parts of the disk, in brackets, if they are the amount."""
    if len(disk) < 2 or sum(disk.values()) != amount:
        return ''
    return ' (%s)' % ' + '.join(
        '%d %s' % (size, part) for part, size in disk.items())


def _of_trait(condition: Condition, node: str, facts: Facts) -> Reason:
    name = condition.names[0]
    if not condition.forbids:
        return Reason(
            'trait', 'without trait %s' % name, '', 'restart nova-compute on '
            'the host: since nova 34 it adds the trait' if name == OWNER else
            'nova-compute reports traits of the hypervisor; set others with '
            '"openstack resource provider trait set"')
    if name != DISABLED:
        return Reason(
            'trait', 'with the forbidden trait %s' % name, '', 'use another '
            'flavor or image, or remove the trait if it is wrong, with '
            '"openstack resource provider trait set" and the other traits')
    disabled = facts.nova.hosts_of(node) & facts.disabled.keys()
    if not disabled:
        return Reason(
            'trait', 'disabled in placement but not in nova',
            'placement has trait %s' % name,
            'restart nova-compute on the host: it removes the trait')
    cause = facts.disabled[min(disabled)]
    return Reason('disabled', 'disabled',
                  'reason: %s' % cause if cause else '', _ENABLE)


def _of_membership(condition: Condition, node: str, facts: Facts) -> Reason:
    aggregates = facts.nova.aggregates
    required = frozenset(condition.names)
    membership = _membership(condition, facts.nova)
    lacking = sorted(required & facts.nova.wanted(node))
    if lacking:
        return _of_missing_membership(lacking, node, membership, facts)
    names = [aggregates[uuid] for uuid in required if uuid in aggregates]
    detail, advice = '', ''
    if not names:
        detail = 'the aggregates are not nova\'s'
    elif condition.origin == placement_query.SEGMENTS:
        advice = ('use a host that reaches a segment of the networks, or a '
                  'port or network of its segment; neutron adds the hosts '
                  'that reach a segment')
    elif condition.origin == placement_query.FREE_SEGMENTS:
        advice = ('if the host reaches a segment of the networks, it is full: '
                  'delete ports, or add a subnet to the segment')
    else:
        advice = 'if it should be: openstack aggregate add host %s %s' % (
            shlex.quote(min(names)), explanation.HOST)
    return Reason('aggregate', 'not in %s' % membership, detail, advice)


def _of_missing_membership(uuids: list[str], node: str, membership: str,
                           facts: Facts) -> Reason:
    """Return why placement lacks memberships that nova has."""
    detail = 'placement lacks %s; nova has it' % ', '.join(
        _name(uuid, facts.nova) for uuid in uuids)
    return _pending(
        'in %s in nova but not yet in placement' % membership, detail, node,
        facts) or Reason(
            'missing', 'in %s in nova but not in placement' % membership,
            detail, _SYNC_HOST)


def _pending(phrase: str, detail: str, node: str, facts: Facts
             ) -> Reason | None:
    """Return the reason that a host is still in the journal, if it is."""
    ages = [facts.pending[host] for host in facts.nova.hosts_of(node)
            if host in facts.pending]
    return Reason(
        'pending', phrase, '%s; pending in the journal for %.0f s' % (
            # Nova-api's clock may be ahead.
            detail, max(0.0, *ages)),
        'the agent mirrors it; if it does not, check its log'
    ) if ages else None


def _of_forbidden_membership(condition: Condition, node: str, facts: Facts
                             ) -> Reason:
    nova = facts.nova
    common = sorted(frozenset(condition.names) & nova.wanted(node))
    subject = condition.origin.name or 'the request'
    if not common:
        phrase = 'in an aggregate in placement but not in nova'
        detail = ('placement has it in an aggregate that excludes %s; nova '
                  'does not' % subject)
        return _pending('still ' + phrase, detail, node, facts) or Reason(
            'stale', phrase, detail, _SYNC_HOST + ' --prune')
    phrase = 'in an aggregate that excludes %s' % subject
    advice = ('it is meant for others; if not, change the metadata of the '
              'aggregate, or remove the host from it')
    if condition.origin == placement_query.ISOLATED:
        phrase = 'in an aggregate whose traits the request does not require'
        advice = ('require the traits in the flavor or the image; or, if the '
                  'aggregate is for all requests, remove them from its '
                  'metadata')
    return Reason('forbidden', phrase, ', '.join(
        _name(uuid, nova) for uuid in common), advice)


def stale_memberships(facts: Facts, node: str) -> list[str]:
    """Name the aggregates that a candidate is in in placement, not in nova."""
    nova = facts.nova
    return sorted(
        _membership(condition, nova)
        for condition in (facts.funnel.conditions if facts.funnel else ())
        if condition.kind == placement_query.MEMBER_OF
        and not condition.group and not condition.forbids
        and frozenset(condition.names) & nova.aggregates.keys()
        and not frozenset(condition.names) & nova.wanted(node))


def of_down(forced: bool, detail: str = '') -> Reason:
    """Return why nova-scheduler does not use a nova-compute that is down."""
    if forced:
        return Reason(
            'down', 'forced down', detail, 'openstack compute service set '
            '--up %s nova-compute, when the host runs again'
            % explanation.HOST)
    return Reason('down', 'down', detail, 'start nova-compute on the host, '
                  'or check its connection to the message broker')


def of_filter(run: facts.FilterRun, node: str, facts: Facts) -> Reason:
    """Return why a filter rejects a host; the detail is what it logs."""
    message, host = run.rejected[node], facts.host(node)
    if run.name == COMPUTE_FILTER:
        if host in facts.disabled:
            return Reason('disabled', 'disabled', message, _ENABLE)
        return of_down(host in facts.forced_down, message)
    phrase, advice = _PHRASES.get(
        run.name, ('rejected by %s' % run.name, 'see the filter in %s' % (
            'the module ' + run.module if run.module
            else 'nova\'s documentation of the scheduler')))
    if node in run.broken_rules and not stale_memberships(facts, node):
        phrase, advice = (
            'in aggregates that exclude the request',
            _COMPARE_AGGREGATES)
    return Reason('filter', phrase, '%s: %s' % (run.name, message)
                  if message else run.name, advice)


def _membership(condition: Condition, nova: source.Nova) -> str:
    if condition.origin.zone:
        return condition.origin.name
    if condition.origin.name:
        return 'an aggregate for %s' % condition.origin.name
    names = [_name(uuid, nova) for uuid in condition.names]
    return 'aggregate %s' % names[0] if not names[1:] else (
        'one of %d aggregates' % len(names))


def _name(uuid: str, nova: source.Nova) -> str:
    name = nova.aggregates.get(uuid)
    return '%s (%s)' % (name, uuid) if name else uuid
