# SPDX-License-Identifier: Apache-2.0
"""Gather the facts that explain a request.

Long because all input and output of an explanation is called here.
"""

import argparse
from collections import abc
import contextlib
import dataclasses
import time
from typing import Any

from nova.conf import CONF

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import conditions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import filling
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror.explain import stored
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import survey
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database_servers

Facts = reasons.Facts
Refusal = reasons.Refusal
QUERY = 'query to placement'


@dataclasses.dataclass(frozen=True)
class Cloud:
    """Nova and placement, whose scheduling is explained."""

    context: Any
    nova: reconcile.Source
    placement: client.Client
    servers: database_servers.DatabaseServers
    display: reconcile.Progress = reconcile.Progress()


def explain(cloud: Cloud, args: argparse.Namespace,
            look_up: abc.Callable[[argparse.Namespace], None],
            open_journal: abc.Callable[[], store.Journal]
            ) -> explanation.Answer:
    """Explain the request of these arguments, of ``cmd/explain``.

    :param look_up: replaces the names in them by IDs
    :raises UnknownName: nova has no such host, server or flavor
    :raises MirrorError: placement or nova could not be read
    """
    # Before nova's objects, which wait longer for an unavailable database.
    nova = read_nova(cloud, args.hosts)
    look_up(args)
    image: dict[str, Any] = {'properties': {}}
    if args.image:
        with deadline.within(CONF.aggregate_mirror.request_timeout):
            image = resources.read_image(CONF, args.image)
    image['properties'].update(args.properties)
    if args.server:
        request = stored.of_server(
            cloud.context, cloud.placement, args.server, args.operation,
            args.new_flavor, image if args.image or args.properties else None,
            args.zone, args.networks, args.ports)
    else:
        request = requests.of_description(cloud.context, args, image)
    pending: dict[str, float] = {}
    try:
        # Rows come oldest first; reversed, the oldest of a host remains.
        pending = {row.dirty.host: time.time() - row.created_at
                   for row in reversed(open_journal().rows.all())
                   if row.mirrored_at is None}
    except exceptions.JournalUnavailable as exc:
        request.notes.append(
            'What is pending in the journal is not known: %s' % exc)
    facts = gather(cloud, nova, request, args.hosts)
    return conditions.explain(dataclasses.replace(facts, pending=pending))


def read_nova(cloud: Cloud, hosts: abc.Iterable[str]) -> source.Nova:
    """Read nova; raise UnknownName if it lacks any of these hosts."""
    nova = cloud.nova.read_all()
    unknown = [host for host in sorted({*hosts}) if not nova.nodes_of({host})]
    if unknown:
        existing = plurals.some(nova.hosts()) or 'none'
        down = problems.of_cells(nova.cells_down, 'it may have the host')
        parts = ['it has %s' % existing, *map(str, down)]
        raise exceptions.UnknownName('nova has no compute node of host %s; %s'
                                     % (', '.join(unknown), '; '.join(parts)))
    return nova


def gather(cloud: Cloud, nova: source.Nova,
           request: requests.SchedulingRequest,
           hosts: abc.Collection[str] = ()) -> Facts:
    """Rehearse the scheduling of a request; write and claim nothing.

    :param hosts: hosts to explain, with each filter; empty means all
    :raises MirrorError: placement or nova could not be read
    """
    manager = manager_of(cloud, nova)
    facts = _before_scheduling(nova, request, manager, hosts)
    if request.stays:
        return facts.staying_on(request.instance.host, request.instance.node)
    try:
        queries = read_queries(cloud, request, manager)
        if queries:
            facts = _ask_placement(cloud, manager.for_each, queries, facts)
        return _run_nova(cloud, request.spec, manager, facts,
                         facts.scope if hosts else frozenset())
    except Refusal as refusal:
        return dataclasses.replace(facts, refusal=refusal)


def read_queries(cloud: Cloud, request: requests.SchedulingRequest,
                 manager: host_states.HostManager) -> placement_query.Queries:
    """Run the request filters, of which some ask placement."""
    try:
        return rehearsal.queries(cloud.context, request, manager)
    except (Refusal, exceptions.MirrorError):
        # Some of nova's code takes no answer for an empty one.
        cloud.placement.probe()
        raise


def manager_of(cloud: Cloud, nova: source.Nova) -> host_states.HostManager:
    """Load nova's filters and weighers, and read the services."""
    host_states.check_nova()
    if filter_table.ALL_FILTERS in CONF.filter_scheduler.available_filters:
        # ``all_filters`` itself would exit, after a log message.
        filters.install()
    manager = host_states.HostManager(
        workers.in_threads(CONF.aggregate_mirror.sync_workers))
    manager.read_services(cloud.context, nova.cells_down)
    return manager


def _before_scheduling(nova: source.Nova, request: requests.SchedulingRequest,
                       manager: host_states.HostManager,
                       hosts: abc.Collection[str]) -> Facts:
    """Observe the request, and the hosts and services of nova."""
    computes = {service.host: service for service in manager.all_services
                if service.binary == 'nova-compute'}
    disabled = [manager.services[uuid] for uuid, cell
                in manager.cells.items() if cell.disabled]
    nodes = nova.nodes_of(computes.keys())
    if manager.cells_down.keys() - nova.cells_down.keys():
        if not computes:
            raise exceptions.CellUnavailable.of_any(manager.cells_down)
        # Hosts without a service may be in cells that failed since ``nova``.
        nova = dataclasses.replace(
            nova, cells_down=manager.cells_down,
            nodes={node: nova.nodes[node] for node in nodes})
    request.notes.extend(_notes(request, manager))
    answer = explanation.Answer(
        {name: value for name, value in request.about.items() if value},
        # Running the request filters may add to the notes.
        notes=request.notes, record=request.record, stays=request.stays,
        remarks=[*manager.remarks(), *request.remarks],
        cells_down=bool(manager.cells_down))
    all_nodes, elsewhere = frozenset(nova.nodes), frozenset[str]()
    cells_disabled = nova.nodes_of(frozenset().union(*disabled))
    destination = request.spec.requested_destination
    if destination and 'cell' in destination:
        own = nova.nodes_of(manager.services.get(destination.cell.uuid, {}))
        # Only for a creation nova leaves out cells that are disabled.
        elsewhere, cells_disabled = all_nodes - own, cells_disabled - own
    return Facts(
        nova, answer, request.operation, zones=manager.zones(),
        unpin=requests.unpin(request),
        scope=nova.nodes_of(hosts) if hosts else all_nodes,
        disabled={host: service.disabled_reason or ''
                  for host, service in computes.items() if service.disabled},
        down={host: service.forced_down for host, service in computes.items()
              if not manager.is_up(service)},
        serviceless=all_nodes - nodes, cells_disabled=cells_disabled,
        elsewhere=elsewhere, unmapped=nova.nodes_unmapped & all_nodes)


def _notes(request: requests.SchedulingRequest,
           manager: host_states.HostManager) -> abc.Iterator[str]:
    """Note accelerators, and that nothing enforces the zone of a request."""
    if (request.spec.flavor.extra_specs or {}).get('accel:device_profile'):
        yield 'Accelerators of the device profile are not explained.'
    zone = request.spec.availability_zone
    enforced = {aggregate.availability_zone
                for aggregate in manager.aggs_by_id.values()}
    if filter_table.enabled(filter_table.DEFAULT_ZONE, CONF):
        enforced.add(CONF.default_availability_zone)
    if not zone or zone in enforced:
        return
    text = 'Nothing enforces zone %s: no aggregate has it' % zone
    if zone == CONF.default_availability_zone:
        text += (', and %s is not in [aggregate_mirror] request_filters'
                 % filter_table.DEFAULT_ZONE)
    step = requests.unpin(request)
    yield text + ('. To be rid of it, ' + step if step else '.')


def _rejection(reader: candidates.CandidateReader,
               queries: placement_query.Queries,
               error: exceptions.RequestRejected) -> Refusal:
    classes, traits, groups = set[str](), set[str](), set[str]()
    # A second query has the same conditions, but for PCPU or VCPU.
    for condition in queries[0].conditions:
        groups.add(condition.group)
        if condition.kind == placement_query.RESOURCES:
            classes |= condition.amounts.keys()
        if condition.kind in placement_query.TRAITS:
            traits.update(condition.names)
    if not classes:
        return reasons.refusal('no_resources', QUERY)
    keys = 'unknown_class', 'unknown_trait'
    for key, names in zip(keys, reader.unknown(classes, traits), strict=True):
        if names:
            return reasons.refusal(key, QUERY, name=', '.join(names))
    if len(groups - {''}) > 1 and not queries[0].policy:
        return reasons.refusal('no_policy', QUERY)
    return Refusal(QUERY, str(error))


def _ask_placement(cloud: Cloud, for_each: isolation.ForEach,
                   queries: placement_query.Queries, facts: Facts) -> Facts:
    """Add what placement responds to the queries."""
    placement, nodes = cloud.placement, frozenset(facts.nova.nodes)
    reader = candidates.CandidateReader(placement)
    aggregates = frozenset().union(*for_each(
        placement.aggregates, placement.providers(required=client.SHARING)))
    sharing = placement.members(*sorted(aggregates))
    try:
        funnel = candidates.narrow(reader, sharing, for_each, queries, nodes)
    except exceptions.RequestRejected as exc:
        raise _rejection(reader, queries, exc) from exc
    if not funnel.existing:
        # Then no host has a reason of its own, unless a cell has others.
        with contextlib.suppress(exceptions.CellUnavailable):
            survey.check_placement(
                placement, placement.providers(), facts.nova)
    conflicts = survey.name_conflicts(
        cloud.nova, placement, nodes - funnel.existing, facts.nova)
    figures = candidates.read_figures(reader, for_each, funnel, lambda node: (
        node not in facts.scope, facts.host(node)))
    holders: abc.Mapping[str, resource_holders.Holders] = {}
    try:
        holders = resource_holders.read(
            reader, for_each, cloud.servers,
            candidates.scarce_providers(funnel, figures), facts.nova.nodes)
    except exceptions.MirrorError as exc:
        facts.answer.notes.append(
            'Who holds the resources of full hosts is not known: %s' % exc)
    return dataclasses.replace(facts, funnel=funnel, figures=figures,
                               name_conflicts=conflicts, holders=holders)


def _run_nova(cloud: Cloud, spec: request_spec.RequestSpec,
              manager: host_states.HostManager, facts: Facts,
              named: frozenset[str]) -> Facts:
    """Add what nova does with candidates, and each filter for ``named``."""
    nodes, answers = frozenset(facts.nova.nodes), None
    if facts.funnel:
        nodes = facts.funnel.left & facts.funnel.within_limit
        answers = facts.funnel.answers
    nodes -= facts.elsewhere
    all_states = manager.states(cloud.context, spec, answers, named)
    states = [state for state in all_states if state.uuid in nodes]
    requested, runs, passed = manager.run_filters(states, spec, [
        state for state in all_states if state.uuid in named])
    scores = manager.scores(passed, spec)
    # Nova ignores case.
    left_out = {host.lower() for host in spec.ignore_hosts or ()}
    ignored = frozenset(node for node, host in facts.nova.nodes.items()
                        if host.lower() in left_out)
    facts = dataclasses.replace(
        facts, states=frozenset(state.uuid for state in all_states),
        ignored=ignored, requested=requested, rehearsal=runs, scores=scores)
    answer = facts.answer
    if spec.num_instances == explanation.MAX_SERVERS:
        # Nova-conductor fails each creation on a host mapped to no cell.
        states = [state for state in states
                  if state.uuid not in facts.unmapped]
        answer = filling.fill(
            filling.Filling(manager, states), spec, facts, cloud.display)
    elif spec.num_instances > 1:
        servers = filling.Filling(manager, states)
        servers.place_at_once(spec, answers or ())
        answer = dataclasses.replace(
            answer, count=spec.num_instances,
            placed=list(servers.servers.values()))
    return dataclasses.replace(facts, answer=answer)
