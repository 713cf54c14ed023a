# SPDX-License-Identifier: Apache-2.0
"""Why a host filter of nova rejects a host, and what to do."""

from collections.abc import Mapping

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.scheduler import filter_table

Facts = facts.Facts
FilterRun = facts.FilterRun
Reason = explanation.Reason


_SEE = 'see the filter in nova\'s documentation of the scheduler'
# Filter to a phrase for the summary and advice.
_PHRASES: Mapping[str, tuple[str, str]] = {
    'AffinityFilter': ('on the wrong side of an affinity', 'see the hints'),
    **{row.host_filter: (row.phrase, row.advice)
       for row in filter_table.FILTERS if row.host_filter},
    filter_table.GUARD: (
        'in other aggregates in nova than in placement',
        'nova-aggregate-mirror-manage placement sync_aggregates'),
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


def of_filter(run: FilterRun, node: str, facts: Facts) -> Reason:
    """Return why a filter rejects a host; the detail is what it logs."""
    message, host = run.rejected[node], facts.host(node)
    if run.name == 'ComputeFilter':
        return reasons.of_service(
            host in facts.disabled, host in facts.forced_down, message)
    phrase, advice = _PHRASES.get(
        run.name, ('rejected by %s' % run.name, _SEE))
    if node in run.broken_rules and not reasons.stale_memberships(facts, node):
        phrase, advice = (
            'in aggregates that exclude the request',
            filter_table.COMPARE_AGGREGATES)
    return Reason('filter', phrase, '%s: %s' % (run.name, message)
                  if message else run.name, advice)
