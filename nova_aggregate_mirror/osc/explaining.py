# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts placement and nova-api leave for a request, and why."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import explanation
from nova_aggregate_mirror.explanation import funnel
from nova_aggregate_mirror.explanation import query
from nova_aggregate_mirror.explanation import reasons
from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.explanation import verdicts
from nova_aggregate_mirror.osc import clients
from nova_aggregate_mirror.osc import rules
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import api_requests

SYNC = 'openstack aggregate mirror sync'
TWIN = 'nova-aggregate-mirror-manage scheduling explain'
RESULTS = 1000
"""The default of ``[scheduler] max_placement_results``."""

HOST_FILTERS = (
    'Nova-scheduler\'s host filters and options, and the resources and '
    'segments of ports, are not visible through the APIs; "%s" on a host with '
    'nova-scheduler explains them.' % TWIN)
JOURNAL = (
    'The journal is not visible through the APIs: the agent may already be '
    'about to mirror what is missing in placement.')


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request to explain."""

    requested: requested.Requested
    about: Mapping[str, str]
    """What was asked for, for display."""
    rules: Sequence[str] = ()
    """Names of the rules that nova-scheduler enforces."""
    notes: Sequence[str] = ()
    """What is not known about the request."""


def explain(made: clients.Clients, asked: Asked, each: parallel.Each,
            hosts: Collection[str] = ()) -> explanation.Answer:
    """Ask placement about a request, and explain the answer.

    :param hosts: explain these hosts only; all by default
    :raises MirrorError: placement or nova could not be read
    """
    nova = made.nova.read_all()
    unknown = sorted(set(hosts) - set(nova.nodes.values()))
    if unknown:
        raise exceptions.UnknownName(
            'nova-api lists no compute node of host %s; see "openstack '
            'compute service list --service nova-compute"'
            % ', '.join(unknown))
    services, metadata = made.requests.services(), made.requests.metadata()
    found = verdicts.Verdicts(reasons.Context(nova, {
        host: one.reason for host, one in services.items() if one.disabled},
        {}, SYNC), nova.nodes_of(hosts) if hosts else frozenset(nova.nodes))
    found.notes += [*asked.notes, *_unexplained(asked.requested), *(
        'Cell %s did not answer, so that its hosts are not explained: %s'
        % one for one in sorted(nova.cells_down.items()))]
    if asked.requested.zone and not rules.zone(asked.requested, metadata):
        found.notes.append(_default_zone(made.requests, asked.requested.zone))
    enforced = _rules(asked.rules, asked.requested, metadata)
    try:
        wanted = requested.queries(asked.requested, rules.conditions(
            asked.requested, enforced, metadata, nova))
        _ask_placement(made, wanted, found, each)
    except constraints.Unsatisfiable as exc:
        return found.refused(asked.about, 'request filters', str(exc))
    except exceptions.RequestRejected as exc:
        return found.refused(asked.about, 'query to placement', str(exc))
    _add_services(services, found)
    _add_rules(enforced, found)
    _note_rules(asked, metadata, found)
    found.notes.append(HOST_FILTERS)
    if any(one.reason.kind == 'missing' for one in found.found.values()):
        found.notes.append(JOURNAL)
    return found.answer(asked.about)


def _rules(names: Sequence[str], asked: requested.Requested,
           metadata: constraints.Metadata) -> list[constraints.Rule]:
    return [rule for name in names for rule in rules.of(name, asked, metadata)]


def _default_zone(nova: api_requests.Requests, zone: str) -> str:
    """Describe a zone without an aggregate.

    :raises UnknownName: nova-api has no such zone, and refuses such servers
    """
    zones = nova.zones()
    if zone not in zones:
        raise exceptions.UnknownName(
            'nova has no availability zone %s, and refuses servers for it; it '
            'has %s' % (zone, ', '.join(sorted(zones)) or 'none'))
    return ('No aggregate has zone %s, which is the default zone: nova adds '
            'no condition for it.' % zone)


def _ask_placement(made: clients.Clients, wanted: list[query.Query],
                   found: verdicts.Verdicts, each: parallel.Each) -> None:
    """Add the steps of placement."""
    reader = candidates.Reader(made.placement)
    asker = funnel.Asker(reader, bool(made.placement.sharing()), each)
    narrowed = asker.narrow(wanted, frozenset(found.known.nova.nodes))
    verdicts.add_funnel(found, narrowed, reader, each)
    found.add('allocation candidates of placement', '', frozenset().union(
        *(one.providers for one in narrowed.answers)), reasons.NOT_RETURNED,
        always=False)
    if any(len(one.requests) > RESULTS for one in narrowed.answers):
        found.notes.append(
            'Placement has more than %d candidates, which is the default of '
            '[scheduler] max_placement_results: nova-scheduler may not '
            'consider all of these hosts.' % RESULTS)


def _add_services(services: Mapping[str, api_requests.Service],
                  found: verdicts.Verdicts) -> None:
    """Add the step of the compute services."""
    nodes = found.known.nova.nodes
    found.add('nova-compute enabled and up', 'nova', {
        node for node, host in nodes.items()
        if host in services and services[host].up
        and not services[host].disabled}, {
            node: _of_service(services.get(host))
            for node, host in nodes.items()})


def _of_service(service: api_requests.Service | None) -> explanation.Reason:
    if service is None:
        return reasons.of_service(
            False, False, 'nova-api no longer lists its service')
    reason = service.reason if service.disabled else ''
    return reasons.of_service(
        service.disabled, service.forced_down,
        'reason: %s' % reason if reason else '')


def _add_rules(enforced: list[constraints.Rule], found: verdicts.Verdicts
               ) -> None:
    """Add the steps of rules for what a query cannot express.

    This is also what nova's host filters check.
    """
    nova = found.known.nova
    for rule in enforced:
        condition = rules.condition(rule)
        found.add(
            reasons.title(condition, nova) + ' (host filter)', rule.subject,
            {node for node in found.left if rule.passes(nova.wanted(node))},
            {node: reasons.of_condition(condition, node, found.known)
             for node in found.left}, always=False)


def _note_rules(asked: Asked, metadata: constraints.Metadata,
                found: verdicts.Verdicts) -> None:
    """Report rules that would exclude hosts if they are enforced."""
    nova = found.known.nova
    for name, by in rules.RULES.items():
        if name in asked.rules:
            continue
        enforced = _rules([name], asked.requested, metadata)
        excluded = {found.host(node) for node in found.left & found.shown
                    if not all(rule.passes(nova.wanted(node))
                               for rule in enforced)}
        if excluded:
            found.notes.append(
                'If nova-scheduler has %s, it does not use %d of the hosts '
                'that are left: --rule %s shows which.' % (
                    by, len(excluded), name))


def _unexplained(asked: requested.Requested) -> list[str]:
    """Name what nova translates to further conditions."""
    names = asked.not_explained
    return ['Nova adds conditions for %s, which are not explained.'
            % ', '.join(names)] if names else []
