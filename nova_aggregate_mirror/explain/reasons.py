# SPDX-License-Identifier: Apache-2.0
"""Why a compute node does not meet a condition, and what to do: pure."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import shlex

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.explain import shortage
from nova_aggregate_mirror import source

Reason = explanation.Reason

DISABLED = 'COMPUTE_STATUS_DISABLED'
ISOLATED = 'required traits of the aggregate'
"""What forbids aggregates whose traits a request does not require."""
SEGMENTS = 'segments of the networks'
"""What asks for the aggregates of a routed network."""
FREE_SEGMENTS = 'segments with free addresses'
"""What leaves only some of these aggregates."""
SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'
"""The command that repairs drift."""
_SYNC_HOST = '%s --host %s' % (SYNC, explanation.HOST)

ENABLE = ('openstack compute service set --enable %s nova-compute'
          % explanation.HOST)

NO_PROVIDER = Reason(
    'no_provider', 'without a resource provider', 'placement has no provider '
    'of this compute node', 'restart nova-compute on the host: it creates the '
    'provider')
CUT = 'cut'
NOT_RETURNED = Reason(
    CUT, 'not among the candidates of placement', 'it meets each condition',
    'raise [placement] max_allocation_candidates of placement if it is set; '
    'if not, placement has changed meanwhile: run the command again')


@dataclasses.dataclass(frozen=True)
class Context:
    """What is known about nova's hosts."""

    nova: source.Nova
    disabled: Mapping[str, str]
    """Host whose nova-compute is disabled, to the reason given for it."""
    pending: Mapping[str, float]
    """Host in the journal to the age of its oldest operation in seconds."""


def of_condition(condition: explanation.Condition, node: str,
                 known: Context,
                 inventories: shortage.Inventories | None = None,
                 nested: bool = False) -> Reason:
    """Return why a compute node does not meet a condition.

    :param inventories: those of its provider, if they were read
    :param nested: whether other providers may provide its resources
    """
    kind = query.kind(condition)
    if query.group(condition):
        return _of_group(condition)
    if kind == query.RESOURCES:
        [(name, amount)] = query.amounts(condition).items()
        return shortage.of_resource(name, amount, inventories, nested)
    if kind in (query.REQUIRED, query.ROOT):
        return _of_trait(condition, node, known)
    if kind == query.MEMBER_OF:
        if query.forbids(condition):
            return _of_forbidden(condition, node, known)
        return _of_required(condition, node, known)
    if kind == query.IN_TREE:
        return Reason('not_requested', 'not the requested host',
                      advice='request another host, or none')
    return Reason('group', 'without providers in the same subtree',
                  str(condition), 'see group policy and subtrees in the '
                  'flavor and in the ports')


def title(condition: explanation.Condition, nova: source.Nova) -> str:
    """Name a condition, with the names of aggregates."""
    group = query.group(condition)
    suffix = ' in one provider (group %s)' % group if group else ''
    if query.kind(condition) == query.RESOURCES:
        return ', '.join('%d %s' % (amount, name) for name, amount in
                         query.amounts(condition).items()) + suffix
    names = query.names(condition)
    if query.kind(condition) == query.MEMBER_OF:
        listed = ', '.join(_name(uuid, nova) for uuid in names)
        return ('in no aggregate of ' if query.forbids(condition) else
                'in an aggregate of ' if names[1:] else
                'in the aggregate ') + listed + suffix
    if query.kind(condition) in (query.REQUIRED, query.ROOT):
        return '%strait %s%s' % (
            'without ' if query.forbids(condition) else '',
            names[0], suffix)
    return str(condition)


def _of_trait(condition: explanation.Condition, node: str, known: Context
              ) -> Reason:
    name = query.names(condition)[0]
    if not query.forbids(condition):
        return Reason(
            'trait', 'without trait %s' % name, '',
            'nova-compute reports traits of the hypervisor; set others with '
            '"openstack resource provider trait set"')
    if name == DISABLED:
        disabled = known.nova.hosts_of(node) & known.disabled.keys()
        if disabled:
            why = known.disabled[min(disabled)]
            return Reason(
                'disabled', 'disabled', 'reason: %s' % why if why else '',
                ENABLE)
        return Reason(
            'trait', 'disabled in placement but not in nova',
            'placement has trait %s' % name,
            'restart nova-compute on the host: it removes the trait')
    return Reason(
        'trait', 'with the forbidden trait %s' % name, '', 'use another '
        'flavor or image, or remove the trait if it is wrong, with '
        '"openstack resource provider trait set" and the other traits')


def _of_required(condition: explanation.Condition, node: str,
                 known: Context) -> Reason:
    nova = known.nova
    wanted = frozenset(query.names(condition))
    where = _where(condition, nova)
    has = sorted(wanted & nova.wanted(node))
    if has:
        return _missing(has, node, where, known)
    if not wanted & nova.aggregates.keys():
        return Reason('aggregate', 'not in %s' % where,
                      'the aggregates are not nova\'s', '')
    if condition.asked_by == SEGMENTS:
        return Reason(
            'aggregate', 'not in %s' % where, '', 'use a host that reaches a '
            'segment of the networks, or a port or network of its segment; '
            'neutron adds the hosts that reach a segment')
    if condition.asked_by == FREE_SEGMENTS:
        return Reason(
            'aggregate', 'not in %s' % where, '', 'if the host reaches a '
            'segment of the networks, it is full: delete ports, or add a '
            'subnet to the segment')
    first = min(nova.aggregates[uuid] for uuid in wanted
                if uuid in nova.aggregates)
    return Reason(
        'aggregate', 'not in %s' % where, '', 'if it should be: openstack '
        'aggregate add host %s %s' % (shlex.quote(first), explanation.HOST))


def _missing(has: list[str], node: str, where: str, known: Context
             ) -> Reason:
    """Report that placement lacks what nova has."""
    detail = 'placement lacks %s; nova has it' % ', '.join(
        _name(uuid, known.nova) for uuid in has)
    pending = [known.pending[host] for host in known.nova.hosts_of(node)
               if host in known.pending]
    if pending:
        return Reason(
            'pending', 'in %s in nova but not yet in placement' % where,
            '%s; pending in the journal since %.0f s' % (
                detail, max(pending)),
            'the agent mirrors it; if it does not, check its log')
    return Reason('missing', 'in %s in nova but not in placement' % where,
                  detail, _SYNC_HOST)


def _of_forbidden(condition: explanation.Condition, node: str,
                  known: Context) -> Reason:
    nova = known.nova
    both = sorted(frozenset(query.names(condition)) & nova.wanted(node))
    by = condition.asked_by or 'the request'
    if not both:
        return Reason(
            'stale', 'in an aggregate in placement that nova does not have',
            'placement has an aggregate that excludes %s; nova does not' % by,
            _SYNC_HOST + ' --prune')
    if by == ISOLATED:
        return Reason(
            'forbidden', 'in an aggregate whose traits the request does not '
            'require', ', '.join(_name(uuid, nova) for uuid in both),
            'require the traits in the flavor or the image; or, if the '
            'aggregate is for all requests, remove them from its metadata')
    return Reason(
        'forbidden', 'in an aggregate that excludes %s' % by,
        ', '.join(_name(uuid, nova) for uuid in both),
        'it is meant for others; if not, change the metadata of the '
        'aggregate, or remove the host from it')


def of_service(disabled: bool, forced_down: bool, detail: str) -> Reason:
    """Return why nova-scheduler does not use a nova-compute."""
    if disabled:
        return Reason('disabled', 'disabled', detail, ENABLE)
    if forced_down:
        return Reason(
            'down', 'forced down', detail, 'openstack compute service set '
            '--up %s nova-compute, when the host runs again'
            % explanation.HOST)
    return Reason('down', 'down', detail, 'start nova-compute on the host, '
                  'or check its connection to the message broker')


def _of_group(condition: explanation.Condition) -> Reason:
    return Reason(
        'group', 'cannot meet request group %s' % query.group(condition),
        str(condition), 'see "openstack resource provider show" and '
        '"inventory list" of the providers below the host')


def _where(condition: explanation.Condition, nova: source.Nova) -> str:
    if condition.asked_by.startswith('zone '):
        return condition.asked_by
    names = [_name(uuid, nova) for uuid in query.names(condition)]
    if condition.asked_by:
        return 'an aggregate for %s' % condition.asked_by
    return 'aggregate %s' % names[0] if not names[1:] else (
        'one of %d aggregates' % len(names))


def _name(uuid: str, nova: source.Nova) -> str:
    name = nova.aggregates.get(uuid)
    return '%s (%s)' % (name, uuid) if name else uuid


def surplus(conditions: Iterable[explanation.Condition], node: str,
            known: Context) -> list[str]:
    """List aggregates that placement must have for a node and nova has not.

    :param conditions: those that placement says the node meets
    """
    return sorted(
        _where(one, known.nova) for one in conditions
        if query.kind(one) == query.MEMBER_OF and not query.group(one)
        and not query.forbids(one)
        and frozenset(query.names(one)) & known.nova.aggregates.keys()
        and not frozenset(query.names(one)) & known.nova.wanted(node))
