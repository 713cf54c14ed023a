# SPDX-License-Identifier: Apache-2.0
"""The first condition that a compute node does not meet, and notes: pure."""

from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.scheduler import filter_table

Facts = reasons.Facts
Nodes = frozenset[str]
Reason = explanation.Reason


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """The compute nodes that a condition excludes, each with its reason."""

    name: str
    asked_by: str
    reasons: abc.Mapping[str, Reason]
    always: bool = False
    """Whether it is shown if it excludes no node, too."""


Exclusions = abc.Iterator[Exclusion]


def request_refused(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.refusal:
        refused = reasons.reason(
            'refused', facts, str(facts.refusal), step=facts.refusal.step)
        yield Exclusion(
            facts.refusal.condition, '', dict.fromkeys(nodes, refused))


def query_unmet(facts: Facts, _nodes: Nodes) -> Exclusions:
    if facts.funnel:
        yield Exclusion('with a resource provider', '', {
            node: reasons.of_provider(node, facts) for node
            in facts.nova.nodes.keys() - facts.funnel.existing}, always=True)
        for condition, passed in facts.funnel.passed:
            failing = {node: reasons.of_condition(condition, node, facts)
                       for node in facts.funnel.existing - passed}
            yield Exclusion(reasons.title(condition, facts.nova),
                            condition.origin.name, failing, always=True)


def candidate_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    if not facts.funnel:
        return
    reason = reasons.reason('not_returned', facts, 'it meets each condition')
    for answer in facts.funnel.answers:
        if answer.limit and len(answer.requests) > answer.limit:
            detail = 'nova-scheduler takes %d candidates only' % answer.limit
            reason = reasons.reason('beyond_limit', facts, detail)
    missing = dict.fromkeys(nodes - facts.funnel.within_limit, reason)
    for answer in facts.funnel.answers:
        own = candidates.by_provider(answer.requests)
        children = (answer.summaries.keys() & missing) - own.keys()
        missing |= dict.fromkeys(children, reasons.reason('not_own', facts))
    yield Exclusion('candidates that nova-scheduler takes', '', missing)


def cell_differs(facts: Facts, _nodes: Nodes) -> Exclusions:
    if not facts.funnel and (facts.refusal or facts.answer.stays):
        return  # Nova-scheduler looks at no cell.
    yield Exclusion('in the cell of the server', 'nova', dict.fromkeys(
        facts.elsewhere - facts.serviceless, reasons.reason('cell', facts)))


def service_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.answer.stays:
        return  # It needs none that nova-scheduler would find.
    missing = dict.fromkeys(nodes - facts.states, reasons.reason(
        'no_state', facts, 'the compute node was deleted meanwhile'))
    for key, others in (('disabled_cell', facts.cells_disabled),
                        ('no_service', facts.serviceless)):
        missing |= dict.fromkeys(others, reasons.reason(key, facts))
    yield Exclusion('with a nova-compute service', '', missing)


def host_not_requested(facts: Facts, nodes: Nodes) -> Exclusions:
    yield Exclusion('requested hosts', 'nova', {
        node: reasons.reason('ignored', facts, 'the server is on it')
        if node in facts.ignored else reasons.reason('not_named', facts)
        for node in (nodes - facts.requested) | facts.ignored})


def filter_rejects(facts: Facts, nodes: Nodes) -> Exclusions:
    # Nova runs ComputeFilter for no rebuild, the only request without a query.
    unusable = {*facts.down, *facts.disabled} if facts.funnel else ()
    for run in facts.rehearsal:
        if run.name == reasons.COMPUTE_FILTER:
            others = {node: '' for node, host in facts.nova.nodes.items()
                      if host in unusable and node not in facts.scores}
            run = dataclasses.replace(run, rejected={**others, **run.rejected})
        yield Exclusion(run.name, 'nova', {
            node: reasons.of_filter(run, node, facts)
            for node in run.rejected}, always=bool(nodes))
        nodes = nodes.difference(run.rejected)
        if run.name == reasons.COMPUTE_FILTER:
            # ComputeFilter checks nothing else of a host that is disabled.
            yield Exclusion('nova-compute is up', 'nova', {
                node: reasons.of_down(facts.host(node), facts)
                for node in run.rejected if facts.host(node) in facts.down})


CONDITIONS: tuple[abc.Callable[[Facts, Nodes], Exclusions], ...] = (
    # A request filter, or placement, refuses the request on any host.
    request_refused,
    # Placement has no provider of it that meets each condition of the query.
    query_unmet,
    # Placement or nova-scheduler takes fewer candidates than there are.
    candidate_missing,
    # Nova moves the server within its cell only.
    cell_differs,
    # Nova-scheduler reads no host state of the compute node.
    service_missing,
    # The request names other hosts, or leaves out this one.
    host_not_requested,
    # A host filter rejects the host.
    filter_rejects,
)
"""What excludes hosts, in nova's order.

Each gets the compute nodes that met those before it, and yields what it asks,
with the nodes of ``facts.nova`` that are known not to meet that.
"""


def explain(facts: Facts) -> explanation.Answer:
    """Explain a request: the conditions that each compute node fails."""
    nodes = frozenset(facts.nova.nodes)
    conditions: list[explanation.Condition] = []
    # By phrase: placement and a filter may both tell that a host is disabled.
    failures: dict[str, dict[str, Reason]] = {node: {} for node in nodes}
    first: dict[str, int] = {}
    for condition in CONDITIONS:
        for exclusion in condition(facts, nodes):
            for node, reason in exclusion.reasons.items():
                failures[node].setdefault(reason.phrase, reason)
            excluded = nodes.intersection(exclusion.reasons)
            if excluded or exclusion.always and not facts.refusal:
                first |= dict.fromkeys(excluded, len(conditions))
                nodes -= excluded
                conditions.append(explanation.Condition(
                    exclusion.name, exclusion.asked_by,
                    len(nodes & facts.scope), len(excluded & facts.scope)))
    for node in nodes:
        failures[node] = {'': reasons.acceptable(node, facts)}
    verdicts = []
    for node in facts.scope:
        reason, *also = failures[node].values()
        verdicts.append(explanation.Verdict(
            node, facts.host(node), reason, first.get(node, len(conditions)),
            facts.scores.get(node, {}), tuple(also)))
    verdicts.sort(key=_rank)
    return dataclasses.replace(
        facts.answer, conditions=conditions, verdicts=verdicts,
        notes=_notes(facts), failure=str(facts.refusal or ''),
        not_looked_at=explanation.OPERATIONS[facts.operation])


def _rank(verdict: explanation.Verdict) -> tuple[Any, ...]:
    kind = verdict.reason.kind
    if kind == explanation.ACCEPTABLE:
        return (-1, -(verdict.weight or 0.0), verdict.host, verdict.node)
    return (verdict.condition, kind, verdict.host, verdict.node)


def _notes(facts: Facts) -> list[str]:
    notes = list(facts.answer.notes)
    left = facts.funnel.left if facts.funnel else ()
    stale = sorted({facts.host(node) for node in left
                    if reasons.is_stale(node, facts)})
    if stale:
        notes.append('Placement has these hosts in an aggregate that the '
                     'request needs, nova does not: %s. Run "%s --prune".' % (
                         ', '.join(stale), commands.SYNC))
    rejecting = {run.name for run in facts.rehearsal if run.rejected}
    if rejecting & {filter_table.GUARD, *filter_table.HOST_FILTERS.values()}:
        notes.append('nova-scheduler has aggregates in its memory, which may '
                     'be older than the database that was read here; it reads '
                     'them again when it is restarted.')
    return notes
