# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts nova-scheduler can choose for a request, and why."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import filter_reasons
from nova_aggregate_mirror.explain import funnel
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import placing
from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import requests
from nova_aggregate_mirror.explain import unread
from nova_aggregate_mirror.explain import verdicts
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror import source

MEMORY = ('nova-scheduler has aggregates in its memory, which may be older '
          'than the database that was read here; it reads them again when it '
          'is restarted.')

OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What an explanation reads from."""

    context: Any
    """Nova's context of an administrator."""
    nova: source.Nova
    """Every host and aggregate."""
    placement: client.Client
    pending: Mapping[str, float]
    """Host in the journal to the age of its oldest operation in seconds."""
    each: parallel.Each


def explain(inputs: Inputs, request: requests.Prepared,
            hosts: Collection[str] = ()) -> explanation.Answer:
    """Rehearse the scheduling of a request, and explain it.

    Nothing is claimed and nothing is written.

    :param hosts: explain these hosts only; all by default
    :raises MirrorError: placement or nova could not be read
    """
    manager = _manager()
    manager.leave_out(inputs.nova.cells_down)
    services = manager.services(inputs.context)
    known = reasons.Context(inputs.nova, {
        host: service.disabled_reason or ''
        for host, service in services.items() if service.disabled},
        inputs.pending)
    trial = rehearsal.Rehearsal(inputs.context, request.spec, manager)
    found = verdicts.Verdicts(
        known, inputs.nova.nodes_of(hosts) if hosts
        else frozenset(inputs.nova.nodes))
    found.notes += [*(
        'Cell %s did not answer, so that its hosts are not explained: %s'
        % each for each in sorted(inputs.nova.cells_down.items())),
        *request.notes]
    try:
        answers = _ask_placement(inputs, trial, found)
    except rehearsal.NoHost as exc:
        return found.refused(
            request.about, 'request filters', str(exc), 'change the request, '
            'or the metadata of the aggregates; see "openstack aggregate list '
            '--long"')
    except exceptions.RequestRejected as exc:
        return found.refused(request.about, 'query to placement', str(exc))
    states = _states(inputs, trial, manager, found, answers)
    weights = _run_filters(trial, found, states, services)
    found.notes += unread.notes(request.spec, manager, [
        state for state in states if state.uuid in weights])
    answer = found.answer(request.about, weights)
    if request.spec.num_instances == 1:
        return answer
    return dataclasses.replace(
        answer, count=request.spec.num_instances,
        placed=placing.place(request.spec, manager, states, answers))


def _manager() -> host_states.HostManager:
    """Load nova's filters and weighers.

    :raises MirrorError: a filter does not exist, or nova-scheduler would not
        start
    """
    request_filters.load(CONF)
    if filter_table.ALL_FILTERS in CONF.filter_scheduler.available_filters:
        # The function itself would exit, after a log message.
        filters.install()
    try:
        return host_states.HostManager()
    except nova_exception.SchedulerHostFilterNotFound as exc:
        raise exceptions.InvalidConfiguration(
            '[filter_scheduler] enabled_filters: %s' % exc) from exc


def _states(inputs: Inputs, trial: rehearsal.Rehearsal,
            manager: host_states.HostManager, found: verdicts.Verdicts,
            answers: list[candidates.Candidates]) -> list[Any]:
    """Add the steps of cells and services; return the host states left."""
    if trial.cell:
        inside = manager.services(inputs.context, trial.cell)
        found.add('in the cell of the server', 'nova',
                  found.known.nova.nodes_of(inside.keys()),
                  filter_reasons.OTHER_CELL, always=False)
    states = trial.states(answers)
    found.add('with a nova-compute service', '',
              [one.uuid for one in states], filter_reasons.NO_STATE,
              always=False)
    left = found.left
    return [one for one in states if one.uuid in left]


def _ask_placement(inputs: Inputs, trial: rehearsal.Rehearsal,
                   found: verdicts.Verdicts) -> list[candidates.Candidates]:
    """Add the steps of placement; return the candidates of each query."""
    queries = [] if trial.rebuild else trial.queries()
    if not queries:
        return []
    reader = candidates.Reader(inputs.placement)
    asker = funnel.Asker(
        reader, bool(inputs.placement.sharing()), inputs.each)
    if trial.omitted:
        found.notes.append(OMITTED % trial.omitted)
    narrowed = asker.narrow(queries, frozenset(inputs.nova.nodes))
    verdicts.add_funnel(found, narrowed, reader, inputs.each)
    _add_cut(queries, narrowed, reader, found)
    return list(narrowed.answers)


def _add_cut(queries: list[query.Query], narrowed: funnel.Funnel,
             reader: candidates.Reader, found: verdicts.Verdicts) -> None:
    """Add the step of ``max_placement_results`` if it cuts anything."""
    kept: frozenset[str] = frozenset()
    cut = False
    for one, answer in zip(queries, narrowed.answers):
        if one.limit and len(answer.requests) > int(one.limit):
            cut = True
            answer = reader.candidates(
                [*one.parameters(), (query.LIMIT, one.limit)])
        kept |= answer.providers
    found.add(
        'among the first %s candidates' % queries[0].limit if cut
        else 'allocation candidates of placement', 'max_placement_results'
        if cut else '', kept, explanation.Reason(
            reasons.CUT, 'beyond max_placement_results',
            'nova-scheduler takes %s candidates only' % queries[0].limit,
            'raise [scheduler] max_placement_results, or enable '
            '[aggregate_mirror] request_filters so that placement leaves out '
            'unsuitable hosts itself') if cut else reasons.NOT_RETURNED,
        always=False)


def _run_filters(trial: rehearsal.Rehearsal, found: verdicts.Verdicts,
                 states: list[Any], services: Mapping[str, Any]
                 ) -> Mapping[str, float]:
    """Add the steps of nova's host filters; return the weights."""
    steps, weights = trial.filtered(states)
    for step in steps:
        passed = {one.uuid for one in step.passed}
        failed = found.left - passed
        found.add(step.name, 'nova', passed, {
            node: filter_reasons.of_filter(
                step, node, services.get(found.host(node)),
                trial.ignores(found.host(node)), node in found.stale)
            for node in failed},
            always=step.name != host_states.REQUESTED)
        if failed and step.name in filter_reasons.OF_AGGREGATES and (
                MEMORY not in found.notes):
            found.notes.append(MEMORY)
    return weights
