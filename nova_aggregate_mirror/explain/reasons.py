# SPDX-License-Identifier: Apache-2.0
"""Facts about a request, and the reasons that follow from them: pure, no I/O.

What to do about each is in ``reason_table``. Long because each kind of
condition has figures or names of its own.
"""

from collections import abc
import dataclasses
import shlex
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import reason_table
from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror import source

Condition = placement_query.Condition
Reason = explanation.Reason
COMPUTE_FILTER = 'ComputeFilter'
DISABLED = 'COMPUTE_STATUS_DISABLED'
OWNER = 'OWNER_NOVA'
# Options of nova-compute that reserve a resource of its host.
_RESERVATIONS = {
    name: 'lower [DEFAULT] %s of the host, and restart nova-compute' % option
    for name, option in (('VCPU', 'reserved_host_cpus'),
                         ('MEMORY_MB', 'reserved_host_memory_mb'),
                         ('DISK_GB', 'reserved_host_disk_mb'))}
_OF_IRONIC = ('if it is an ironic node, it is in use, in maintenance or being '
              'cleaned; see "openstack baremetal node list"')


def _none() -> Any:
    return dataclasses.field(default_factory=dict)


class Refusal(Exception):
    """The failure of a request whatever hosts there are."""

    def __init__(self, condition: str, reason: str, step: str = '') -> None:
        super().__init__(reason)
        self.condition, self.step = condition, step


@dataclasses.dataclass(frozen=True)
class FilterRun:
    """The result of a host filter of nova."""

    name: str
    rejected: abc.Mapping[str, str]
    """Rejected compute node to what the filter has logged about it."""
    broken_rules: frozenset[str] = frozenset()
    """Compute nodes that nova's own aggregates exclude, as the guard says."""
    module: str = ''
    """The module of its class; empty for one of nova."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Observations about a request, and about each compute node."""

    # The request, and what nova and the journal have about hosts.
    nova: source.Nova
    answer: explanation.Answer = explanation.Answer()
    """What is known before conditions are."""
    operation: str = explanation.CREATE
    zones: abc.Mapping[str, str] = _none()
    """Host to its availability zone, if it is in one."""
    unpin: str = ''
    """What unpins a server that exists from its zone."""
    scope: frozenset[str] = frozenset()
    """The compute nodes to explain."""
    disabled: abc.Mapping[str, str] = _none()
    """Host whose nova-compute is disabled, to the reason given for it."""
    down: abc.Mapping[str, bool] = _none()
    """Host whose nova-compute is down for nova, to whether it is forced."""
    serviceless: frozenset[str] = frozenset()
    """Compute nodes of hosts without a nova-compute service."""
    cells_disabled: frozenset[str] = frozenset()
    """Compute nodes of the cells that nova-scheduler leaves out."""
    pending: abc.Mapping[str, float] = _none()
    """Host to the age of its oldest pending row of the journal, in seconds."""

    # What nova's request filters and placement respond.
    refusal: Refusal | None = None
    funnel: candidates.Funnel | None = None
    """None if nova does not query placement for the request."""
    name_conflicts: abc.Mapping[str, exceptions.MirrorError] = _none()
    """Compute node without a provider to why it cannot be created."""
    figures: abc.Mapping[str, candidates.Inventories] = _none()
    """Inventories of some compute nodes with too few resources."""
    holders: abc.Mapping[str, resource_holders.Holders] = _none()
    """Provider of them with too few resources to who holds these."""

    # What nova-scheduler does with the candidates of placement.
    elsewhere: frozenset[str] = frozenset()
    """Compute nodes of other cells than the one that a server stays in."""
    states: frozenset[str] = frozenset()
    """Compute nodes that nova-scheduler has a host state of."""
    ignored: frozenset[str] = frozenset()
    """Compute nodes of the hosts that the request leaves out."""
    requested: frozenset[str] = frozenset()
    """Compute nodes of the hosts that the request names or does not ignore."""
    rehearsal: abc.Sequence[FilterRun] = ()
    scores: abc.Mapping[str, abc.Mapping[str, float]] = _none()
    """Compute node that passes every filter to its weights by weigher."""
    unmapped: frozenset[str] = frozenset()
    """Compute nodes of hosts that are mapped to no cell."""

    def staying_on(self, host: str, node: str) -> 'Facts':
        """Return the facts of a server that stays on its host."""
        nodes = self.nova.nodes_of({host})
        # The names of ironic's, of which a host has many, are their UUIDs.
        return dataclasses.replace(self, requested=nodes & {node} or nodes)

    def host(self, node: str) -> str:
        return self.nova.nodes.get(node, node)


def reason(key: str, facts: Facts, detail: str = '', **places: Any) -> Reason:
    """Return a reason of ``reason_table.REASONS``; fill its places."""
    row = reason_table.REASONS[key]
    step = (row.step if facts.operation == explanation.CREATE
            or row.move is None else row.move)
    return Reason(row.kind, row.phrase % places, detail, step % places)


def refusal(key: str, condition: str, **places: Any) -> Refusal:
    """Return a refusal of ``reason_table.REFUSALS``; fill its places."""
    why, step = reason_table.REFUSALS[key]
    return Refusal(condition, why % places, step % places)


def acceptable(node: str, facts: Facts) -> Reason:
    """Return that a node is acceptable, and what may be wrong with it."""
    detail, step, host = '', '', facts.host(node)
    score = facts.scores.get(node, {}).get('BuildFailureWeigher', 0.0)
    if host in facts.down:
        down = of_down(host, facts)
        detail = 'but %s, which no filter checks for this request' % (
            down.phrase)
        step = down.step
    elif node in facts.unmapped and facts.operation == explanation.CREATE:
        detail = 'but mapped to no cell: nova-conductor fails the creation'
        step = 'nova-manage cell_v2 discover_hosts --by-service'
    elif score < 0.0:
        detail = ('but builds failed there: weight %.0f of BuildFailureWeigher'
                  % score)
        step = ('see nova-compute.log of the host; a build that succeeds, or '
                'a restart of nova-compute, resets the number')
    return Reason(explanation.ACCEPTABLE, explanation.ACCEPTABLE, detail,
                  step=step)


def of_provider(node: str, facts: Facts) -> Reason:
    """Return why a compute node has no resource provider."""
    if node in facts.name_conflicts:
        conflict = facts.name_conflicts[node].failure
        return reason('name_conflict', facts, conflict.observation,
                      step=conflict.step)
    return reason('no_provider', facts,
                  'placement has no provider of this compute node')


def of_condition(condition: Condition, node: str, facts: Facts) -> Reason:
    """Return why a compute node does not meet a condition."""
    if condition.kind == placement_query.SUBTREE:
        return reason('subtree', facts, str(condition))
    if condition.group:
        return reason('group', facts, str(condition), group=condition.group)
    if condition.kind == placement_query.RESOURCES:
        return _of_resource(condition, node, facts)
    if condition.kind in placement_query.TRAITS:
        return _of_trait(condition, node, facts)
    if condition.kind == placement_query.MEMBER_OF:
        if condition.forbids:
            return _of_forbidden(condition, node, facts)
        return _of_membership(condition, node, facts)
    return reason('not_requested', facts)


def title(condition: Condition, nova: source.Nova) -> str:
    """Name a condition, with the names of aggregates and hosts."""
    names, text = condition.names, str(condition)
    if condition.kind == placement_query.RESOURCES:
        text = ', '.join('%d %s' % (amount, name)
                         for name, amount in condition.amounts.items())
    elif condition.kind == placement_query.IN_TREE:
        text = 'the requested host ' + nova.nodes.get(names[0], names[0])
    elif condition.kind == placement_query.MEMBER_OF:
        relation = 'in an aggregate of' if names[1:] else 'in the aggregate'
        if condition.forbids:
            relation = 'in no aggregate of'
        text = '%s %s' % (relation, _titles(names, nova))
    elif condition.kind in placement_query.TRAITS:
        prefix = 'without ' if condition.forbids else ''
        text = '%strait %s' % (prefix, names[0])
    if condition.group:
        text += ' in one provider (group %s)' % condition.group
    return text


def _of_resource(condition: Condition, node: str, facts: Facts) -> Reason:
    [(name, amount)] = condition.amounts.items()
    # None: not read, or several providers have the class.
    inventories = facts.figures.get(node, {name: None})
    if name not in inventories:
        return reason('no_inventory', facts, name=name)
    inventory = inventories[name]
    if inventory is None:
        return reason('unread', facts, name=name, amount=amount)
    ratio = inventory.allocation_ratio
    detail = 'asked %d, free %d of %d x %g%s' % (
        amount, inventory.free, inventory.total, ratio,
        ', %d reserved' % inventory.reserved if inventory.reserved else '')
    largest = min(inventory.usable, inventory.max_unit)
    # What a server could get if the reservation was lowered.
    freed = min(int(inventory.reserved * ratio), inventory.max_unit,
                int(inventory.total * ratio) - inventory.used)
    if inventory.reserved >= inventory.total or (
            name in _RESERVATIONS and largest < amount <= freed):
        return reason('reserved', facts, detail, name=name,
                      step=_RESERVATIONS.get(name, _OF_IRONIC))
    if amount > largest:
        return reason('max_unit', facts, detail, largest=largest, name=name)
    if amount < inventory.min_unit or amount % inventory.step_size:
        return reason('unit', facts, '%s; min_unit %d, step_size %d' % (
            detail, inventory.min_unit, inventory.step_size),
            amount=amount, name=name)
    if amount <= inventory.usable - inventory.used:
        # So much was freed after placement had answered the query.
        return reason('unread', facts, detail, name=name, amount=amount)
    named = resource_holders.largest(
        facts.holders.get(inventory.provider, ()), name)
    if named:
        amounts = ('%d by %s' % (holder.amounts[name], holder.subject)
                   for holder in named)
        detail += '; held: ' + ', '.join(amounts)
    step = named[0].step if named else ''
    return reason('full', facts, detail, amount=amount, name=name,
                  first=step and '%s; if that is not enough: ' % step)


def _of_trait(condition: Condition, node: str, facts: Facts) -> Reason:
    name = condition.names[0]
    if not condition.forbids:
        return reason('without_owner' if name == OWNER else 'without_trait',
                      facts, name=name)
    if name != DISABLED:
        return reason('with_trait', facts, name=name)
    disabled = facts.nova.hosts_of(node) & facts.disabled.keys()
    if not disabled:
        return reason('disabled_trait', facts, 'placement has trait ' + name)
    cause = facts.disabled[min(disabled)]
    return reason('disabled', facts, 'reason: %s' % cause if cause else '')


def _of_membership(condition: Condition, node: str, facts: Facts) -> Reason:
    aggregates = facts.nova.aggregates
    required = frozenset(condition.names)
    membership = condition.origin.name
    if not membership:
        membership = 'aggregate ' + _titles(condition.names, facts.nova)
    elif not condition.origin.zone:
        membership = 'an aggregate for ' + membership
    lacking = sorted(required & facts.nova.wanted(node))
    if lacking:
        names = _titles(lacking, facts.nova)
        return _of_drift('missing', 'placement lacks %s; nova has it' % names,
                         node, facts, membership)
    existing = [aggregates[uuid] for uuid in required if uuid in aggregates]
    if not existing:
        return reason('foreign_aggregate', facts, 'the aggregates are not '
                      'nova\'s', membership=membership)
    key, zone = 'aggregate', facts.zones.get(facts.host(node), '')
    if condition.origin in (
            placement_query.SEGMENTS, placement_query.FREE_SEGMENTS):
        key = 'segment'
    elif condition.origin.zone:
        # Nova moves no host that is in a zone to another one.
        key = 'other_zone' if zone else 'no_zone'
    return reason(key, facts, membership=membership, zone=zone,
                  name=shlex.quote(min(existing)), unpin=facts.unpin,
                  or_unpin='; or ' + facts.unpin if facts.unpin else '')


def _of_drift(key: str, detail: str, node: str, facts: Facts,
              membership: str = '') -> Reason:
    """Return that placement differs from nova, by whether that is pending."""
    hosts = facts.nova.hosts_of(node) & facts.pending.keys()
    if hosts:
        key = 'pending_' + key
        # Nova-api's clock may be ahead.
        age = max(0.0, *(facts.pending[host] for host in hosts))
        detail += '; pending in the journal for %.0f s' % age
    return reason(key, facts, detail, membership=membership)


def _of_forbidden(condition: Condition, node: str, facts: Facts) -> Reason:
    common = sorted(frozenset(condition.names) & facts.nova.wanted(node))
    subject = condition.origin.name or 'the request'
    if not common:
        return _of_drift('stale', 'placement has it in an aggregate that '
                         'excludes %s; nova does not' % subject, node, facts)
    key = ('isolated' if condition.origin == placement_query.ISOLATED
           else 'forbidden')
    return reason(key, facts, _titles(common, facts.nova), subject=subject)


def is_stale(node: str, facts: Facts) -> bool:
    """Check whether placement has a candidate where nova does not have it."""
    nova, wanted = facts.nova, facts.nova.wanted(node)
    for condition, _passed in facts.funnel.passed if facts.funnel else ():
        if condition.kind == placement_query.MEMBER_OF and not (
                condition.group or condition.forbids):
            names = frozenset(condition.names)
            if names & nova.aggregates.keys() and not names & wanted:
                return True
    return False


def of_down(host: str, facts: Facts, detail: str = '') -> Reason:
    """Return why nova-scheduler does not use a nova-compute that is down."""
    return reason('forced_down' if facts.down.get(host) else 'down', facts,
                  detail)


def of_filter(run: FilterRun, node: str, facts: Facts) -> Reason:
    """Return why a filter rejects a host; the detail is what it logs."""
    message, host = run.rejected[node], facts.host(node)
    if run.name == COMPUTE_FILTER:
        if host in facts.disabled:
            return reason('disabled', facts, message)
        return of_down(host, facts, message)
    key = run.name if run.name in reason_table.REASONS else 'plugin'
    if node in run.broken_rules and not is_stale(node, facts):
        key = 'broken_rules'
    detail = '%s: %s' % (run.name, message) if message else run.name
    return reason(key, facts, detail, filter=run.name, module=run.module)


def _titles(uuids: abc.Iterable[str], nova: source.Nova) -> str:
    """Name aggregates; those that are not nova's have no name."""
    names = {uuid: nova.aggregates.get(uuid) for uuid in uuids}
    titles = ['%s (%s)' % (name, uuid) if name else uuid
              for uuid, name in names.items()]
    return ', '.join(titles)
