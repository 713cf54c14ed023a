# SPDX-License-Identifier: Apache-2.0
"""Gather the facts that explain a request: all input and output."""

from collections import abc
import dataclasses
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import extra_specs
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import funnel
from nova_aggregate_mirror.explain import holders
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import nova_internals
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import requests
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database_servers

Facts = facts.Facts
Refusal = facts.Refusal


@dataclasses.dataclass(frozen=True)
class Cloud:
    """Nova and placement, whose scheduling is explained."""

    context: Any
    """Nova's context of an administrator."""
    nova: source.Nova
    """Every host and aggregate."""
    placement: client.Client
    pending: abc.Mapping[str, float]
    """Host in the journal to the age of its oldest operation in seconds."""
    for_each: parallel.Each
    servers: database_servers.DatabaseServers


def gather(cloud: Cloud, request: requests.PreparedRequest,
           hosts: abc.Collection[str] = ()) -> Facts:
    """Rehearse the scheduling of a request; return what was observed.

    Nothing is claimed and nothing is written.

    :raises MirrorError: placement or nova could not be read
    """
    nova = cloud.nova
    manager = _manager()
    manager.leave_out(nova.cells_down)
    services = manager.services(cloud.context)
    trial = rehearsal.Rehearsal(cloud.context, request.spec, manager)
    facts = Facts(
        nova, request.about, request.record, request.notes,
        _disk(request.spec),
        scope=nova.nodes_of(hosts) if hosts else frozenset(nova.nodes),
        disabled={host: service.disabled_reason or '' for host, service
                  in services.items() if service.disabled},
        forced_down=frozenset(host for host, service in services.items()
                              if service.forced_down),
        pending=cloud.pending)
    try:
        queries = trial.queries()
    except rehearsal.NoHost as exc:
        return _refused(
            facts, 'request filters', exc, 'change the request, or the '
            'metadata of the aggregates; see "openstack aggregate list '
            '--long"' if exc.unmatched else '')
    if queries:
        facts = dataclasses.replace(facts, omitted=trial.omitted)
        if not any(condition.kind == placement_query.RESOURCES
                   for query in queries for condition in query.conditions):
            return dataclasses.replace(facts, refusal=Refusal(
                'query to placement', 'the flavor requests no resources',
                'use a flavor that requests some: placement finds hosts by '
                'resources'))
        try:
            facts = _ask_placement(cloud, queries, facts)
        except exceptions.RequestRejected as exc:
            return _refused(facts, 'query to placement', exc)
    return _run_nova(cloud.context, request.spec, trial, manager, facts)


def _disk(spec: Any) -> abc.Mapping[str, int]:
    """Return the parts of the disk of a request, as nova adds them."""
    parts = {
        'root disk': 0 if spec.is_bfv else spec.flavor.root_gb,
        'ephemeral disk': spec.flavor.ephemeral_gb,
        # Nova rounds up to whole GiB.
        'swap': -(-spec.flavor.swap // 1024)}
    return {part: size for part, size in parts.items() if size}


def _manager() -> host_states.HostManager:
    """Load nova's filters and weighers."""
    nova_internals.check()
    request_filters.load(CONF)
    if filter_table.ALL_FILTERS in CONF.filter_scheduler.available_filters:
        # The function itself would exit, after a log message.
        filters.install()
    try:
        return host_states.HostManager()
    except nova_exception.SchedulerHostFilterNotFound as exc:
        raise exceptions.InvalidConfiguration(
            '[filter_scheduler] enabled_filters: %s' % exc) from exc
    except ImportError as exc:
        raise exceptions.InvalidConfiguration(
            '[filter_scheduler] available_filters or weight_classes: %s; run '
            'the command in the environment of nova-scheduler' % exc) from exc


def _refused(facts: Facts, step: str, exc: Exception, advice: str = ''
             ) -> Facts:
    return dataclasses.replace(
        facts, refusal=Refusal(step, str(exc), advice))


def _ask_placement(cloud: Cloud,
                   queries: abc.Sequence[placement_query.PlacementQuery],
                   facts: Facts) -> Facts:
    """Add what placement responds to the queries."""
    reader = candidates.CandidateReader(cloud.placement)
    sharing = bool(cloud.placement.sharing())
    nodes = frozenset(facts.nova.nodes)
    narrowed = funnel.narrow(
        reader, sharing, cloud.for_each, queries, nodes)
    figures = funnel.read_figures(
        reader, cloud.for_each, narrowed, sorted(nodes, key=lambda node: (
            node not in facts.scope, facts.host(node))))
    returned, limit = funnel.limited(reader, queries, narrowed.answers)
    facts = dataclasses.replace(
        facts, funnel=narrowed, figures=figures, candidates=returned,
        limit=limit)
    full = {node: inventories for node, inventories in figures.items()
            if any(name in inventories and amount > inventories[name].free
                   for condition in narrowed.conditions
                   if condition.kind == placement_query.RESOURCES
                   for name, amount in condition.amounts.items())}
    try:
        return dataclasses.replace(facts, holders=holders.read(
            reader, cloud.for_each, cloud.servers, full, facts.nova.nodes))
    except exceptions.MirrorError as exc:
        return dataclasses.replace(facts, notes=[
            *facts.notes, 'Who holds the resources of full hosts is not '
            'known: %s' % exc])


def _run_nova(context: Any, spec: Any, trial: rehearsal.Rehearsal,
              manager: host_states.HostManager, facts: Facts) -> Facts:
    """Add what nova does with the candidates of placement."""
    nodes, answers = frozenset(facts.nova.nodes), None
    if facts.funnel:
        nodes = facts.funnel.left & facts.candidates
        answers = facts.funnel.answers
    cell = None
    if trial.cell:
        cell = facts.nova.nodes_of(
            manager.services(context, trial.cell).keys())
        nodes &= cell
    all_states = trial.states(answers)
    states = [state for state in all_states if state.uuid in nodes]
    requested, runs, weights = trial.filtered(states)
    unread = extra_specs.unread(spec, manager, [
        state for state in states if state.uuid in weights])
    return dataclasses.replace(
        facts, cell=cell, states=frozenset(
            state.uuid for state in all_states),
        ignored=frozenset(node for node, host in facts.nova.nodes.items()
                          if trial.ignores(host)),
        requested=requested, filter_runs=runs, weights=weights,
        unread_extra_specs=unread, count=spec.num_instances,
        placed=trial.place(states, answers or ())
        if spec.num_instances > 1 else ())
