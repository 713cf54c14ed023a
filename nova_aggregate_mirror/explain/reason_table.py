# SPDX-License-Identifier: Apache-2.0
"""The table of reasons, each with what to do about it: pure."""

import dataclasses

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.scheduler import filter_table

HOST = explanation.HOST
NONE = ''
"""Nothing that an operator does lets nova accept it."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A reason why a compute node does not meet a condition."""

    kind: str
    phrase: str
    """Follows a number of hosts; may have places such as ``%(name)s``."""
    step: str
    """For a creation, and for a move unless that has its own."""
    move: str | None = None
    """A server that exists keeps its flavor, image, hints and group."""


REFUSALS = {
    'no_resources': ('the flavor requests no resources', 'use a flavor that '
                     'requests some: placement finds hosts by resources'),
    'unknown_class': (
        'placement has no resource class %(name)s', 'correct it in the flavor,'
        ' or: openstack resource class create %(name)s'),
    'unknown_trait': (
        'placement has no trait %(name)s', 'correct it in the flavor or the '
        'image, or: openstack trait create %(name)s'),
    'no_policy': (
        'the request has several numbered groups and no group_policy',
        'openstack flavor set --property group_policy=none FLAVOR, or isolate '
        'if each group needs a provider of its own'),
    'plugin_failed': ('%(reason)s', 'nova-scheduler fails the request: see '
                      'its log, and the module %(module)s'),
}
"""Why a request is refused whatever hosts there are, and the step."""
_SYNC_HOST = '%s --host %s' % (commands.SYNC, HOST)
_FULL_SEGMENT = ('if the host reaches one, it is full: delete ports, or add a '
                 'subnet to it')
_PENDING = 'the agent mirrors it; if it does not, check its log'
_SET_TRAIT = ('remove the trait if it is wrong, with "openstack resource '
              'provider trait set" and the other traits')
_COMPARE_AGGREGATES = ('check the aggregates of the host and their metadata '
                       'with "openstack aggregate show"')
_REPORTS = ('nova-compute reports it if the host has it; check its '
            'configuration')
# In the order of the conditions.
REASONS = {
    # The request, and the provider of the compute node.
    'refused': Row('refused', 'not considered, because the request is refused',
                   '%(step)s'),
    'no_provider': Row(
        'no_provider', 'without a resource provider', result.NO_PROVIDER),
    'name_conflict': Row(
        'no_provider', 'without a resource provider', '%(step)s'),
    # Conditions of the query to placement.
    'group': Row('group', 'cannot meet request group %(group)s', 'see '
                 '"openstack resource provider show" and "inventory list" of '
                 'the providers below the host'),
    'subtree': Row('group', 'without providers in the same subtree', 'see '
                   'group policy and subtrees in the flavor and in the ports'),
    'not_requested': Row('not_requested', 'not the requested host',
                         'request another host, or none'),
    'not_named': Row('not_requested', 'not the requested host', NONE),
    'no_inventory': Row('no_inventory', 'have no %(name)s', _REPORTS
                        + ', or use another flavor', _REPORTS),
    'unread': Row(
        'resources', 'cannot provide %(amount)d %(name)s',
        'see the figures with --host ' + HOST + '; if several providers have '
        'it, see "openstack resource provider inventory list" and "usage '
        'show" of those below the host or shared with it'),
    'reserved': Row('reserved', 'have too much %(name)s reserved', '%(step)s'),
    'max_unit': Row(
        'max_unit', 'allow at most %(largest)d %(name)s for a server',
        'use a smaller flavor, or larger hosts', 'add larger hosts'),
    'unit': Row('unit', 'do not allocate %(amount)d %(name)s to a server',
                'use a flavor with another amount',
                'resize the server to a flavor with another amount'),
    'full': Row('resources', 'have fewer than %(amount)d %(name)s free',
                '%(first)sdelete or move servers, or add hosts'),
    'without_owner': Row(
        'trait', 'without trait %(name)s', 'restart nova-compute on the host: '
        'since nova 34 it adds the trait'),
    'without_trait': Row('trait', 'without trait %(name)s', 'nova-compute '
                         'reports traits of the hypervisor; set others with '
                         '"openstack resource provider trait set"'),
    'with_trait': Row(
        'trait', 'with the forbidden trait %(name)s', 'use another flavor or '
        'image, or ' + _SET_TRAIT, _SET_TRAIT),
    'disabled_trait': Row(
        'trait', 'disabled in placement but not in nova',
        'restart nova-compute on the host: it removes the trait'),
    'disabled': Row('disabled', 'disabled', 'openstack compute service set '
                    '--enable %s nova-compute' % HOST),
    'foreign_aggregate': Row('aggregate', 'not in %(membership)s', NONE),
    'segment': Row(
        'aggregate', 'not in %(membership)s', 'use a host that reaches a '
        'segment, or a port or network of its segment; ' + _FULL_SEGMENT,
        'neutron adds the hosts that reach a segment; ' + _FULL_SEGMENT),
    'aggregate': Row('aggregate', 'not in %(membership)s', 'if it should be: '
                     'openstack aggregate add host %(name)s ' + HOST),
    'other_zone': Row('aggregate', 'not in %(membership)s', 'it is in zone '
                      '%(zone)s: request that one, or none', '%(unpin)s'),
    'no_zone': Row('aggregate', 'not in %(membership)s', 'if it should be, '
                   'and has no servers: openstack aggregate add host %(name)s '
                   + HOST + '%(or_unpin)s'),
    'missing': Row('missing', 'in %(membership)s in nova but not in placement',
                   _SYNC_HOST),
    'pending_missing': Row(
        'pending', 'in %(membership)s in nova but not yet in placement',
        _PENDING),
    'stale': Row('stale', 'in an aggregate in placement but not in nova',
                 _SYNC_HOST + ' --prune'),
    'pending_stale': Row(
        'pending', 'still in an aggregate in placement but not in nova',
        _PENDING),
    'forbidden': Row('forbidden', 'in an aggregate that excludes %(subject)s',
                     'it is meant for others; if not, change the metadata of '
                     'the aggregate, or remove the host from it'),
    'isolated': Row('forbidden', 'in an aggregate whose traits the request '
                    'does not require', 'require the traits in the flavor or '
                    'the image; or, if the aggregate is for all requests, '
                    'remove them from its metadata', 'if the aggregate is for '
                    'all requests, remove the traits from its metadata'),
    # What nova-scheduler takes of the candidates.
    'beyond_limit': Row(
        'cut', 'beyond max_placement_results', 'raise [scheduler] '
        'max_placement_results, or enable [aggregate_mirror] request_filters '
        'so that placement leaves out unsuitable hosts itself'),
    'not_returned': Row(
        'cut', 'not among the candidates of placement', 'raise [placement] '
        'max_allocation_candidates of placement if it is set; if not, '
        'placement has changed meanwhile: run the command again'),
    'not_own': Row(
        'not_own', 'without a requested resource of its own',
        'nova-scheduler takes no host of which only child providers have what '
        'is requested: use a flavor that requests VCPU, memory or disk'),
    'cell': Row('cell', 'in another cell than the server', 'nova moves '
                'servers to another cell only in a resize or cold migration'),
    'no_state': Row('no_state', 'without a host state in nova-scheduler',
                    'run the command again'),
    'disabled_cell': Row(
        'disabled_cell', 'in a disabled cell', 'enable the cell with '
        '"nova-manage cell_v2 update_cell --enable --cell_uuid" and its UUID '
        'from "list_cells"; then restart nova-scheduler'),
    'no_service': Row(
        'no_service', 'without a nova-compute service', 'restart nova-compute '
        'on the host: it creates its service; if it has servers it does not '
        'start: restore its row in the table services of its cell'),
    'ignored': Row('ignored', 'the host to leave', NONE),
    # Host filters.
    'down': Row('down', 'down', 'start nova-compute on the host, or check its '
                'connection to the message broker'),
    'forced_down': Row(
        'down', 'forced down', 'openstack compute service set --up %s '
        'nova-compute, when the host runs again' % HOST),
    'plugin': Row('filter', 'rejected by %(filter)s',
                  'see the filter in the module %(module)s'),
    'broken_rules': Row('filter', 'in aggregates that exclude the request',
                        _COMPARE_AGGREGATES),
    **{row.host_filter: Row('filter', row.phrase, _COMPARE_AGGREGATES)
       for row in filter_table.FILTERS if row.host_filter},
    filter_table.GUARD: Row(
        'filter', 'in other aggregates in nova than in placement',
        commands.SYNC),
    'ComputeCapabilitiesFilter': Row(
        'filter', 'without a capability that the flavor requires',
        'compare the flavor\'s extra specs with "openstack hypervisor show"'),
    'DifferentHostFilter': Row(
        'filter', 'with a server to keep apart from', 'change the hint '
        'different_host', 'move the other server away first'),
    'ImagePropertiesFilter': Row(
        'filter', 'unable to run the image', 'compare architecture, '
        'hypervisor type and machine mode of the image with the host'),
    'IoOpsFilter': Row(
        'filter', 'busy with other servers', 'wait until builds, resizes and '
        'snapshots on the host have finished, or raise max_io_ops_per_host'),
    'JsonFilter': Row('filter', 'excluded by the hint query',
                      'change the hint query', NONE),
    'NumInstancesFilter': Row(
        'filter', 'full', 'raise max_instances_per_host, or move servers'),
    'NUMATopologyFilter': Row(
        'filter', 'unable to fit the NUMA topology', 'compare hw:numa_nodes, '
        'CPU policy and page size of the flavor with the host'),
    'PciPassthroughFilter': Row(
        'filter', 'without a free PCI device that matches', 'see [pci] '
        'device_spec of the host and the alias of the flavor'),
    'SameHostFilter': Row(
        'filter', 'without the server to join', 'change the hint same_host',
        'move that server to the host first'),
    'ServerGroupAffinityFilter': Row(
        'filter', 'not the host of the server group', 'the group keeps its '
        'servers on one host; use soft-affinity, or another group', NONE),
    'ServerGroupAntiAffinityFilter': Row(
        'filter', 'with a server of the same group', 'add hosts, or use '
        'soft-anti-affinity', 'add hosts, or move the other server of the '
        'group away first'),
}
