# SPDX-License-Identifier: Apache-2.0
"""The first step of scheduling that a compute node does not pass: pure."""

from collections import abc
import dataclasses

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons

Facts = facts.Facts
Nodes = frozenset[str]
Reason = explanation.Reason


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """The compute nodes that a condition excludes, each with its reason."""

    name: str
    asked_by: str
    reasons: abc.Mapping[str, Reason]
    always: bool = True
    """Whether it is shown if it excludes no node, too."""


Exclusions = abc.Iterator[Exclusion]


def request_refused(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.refusal:
        yield Exclusion(facts.refusal.step, '', dict.fromkeys(nodes, Reason(
            'refused', 'not considered, because the request is refused',
            facts.refusal.reason, facts.refusal.advice)))


def provider_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.funnel:
        yield Exclusion(
            'with a resource provider', '', dict.fromkeys(
                nodes - facts.funnel.existing, reasons.NO_PROVIDER))


def condition_unmet(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.funnel:
        for condition, passed in zip(
                facts.funnel.conditions, facts.funnel.passed):
            yield Exclusion(
                reasons.title(condition, facts.nova), condition.origin.name, {
                    node: reasons.of_condition(condition, node, facts)
                    for node in nodes - passed})
            nodes = nodes & passed


def candidate_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    if not facts.funnel:
        return
    failing = nodes - facts.candidates
    if facts.limit:
        yield Exclusion(
            'among the first %s candidates' % facts.limit,
            'max_placement_results',
            dict.fromkeys(failing, reasons.beyond(facts.limit)), always=False)
    else:
        yield Exclusion(
            'allocation candidates of placement', '',
            dict.fromkeys(failing, reasons.NOT_RETURNED), always=False)


def cell_differs(facts: Facts, nodes: Nodes) -> Exclusions:
    if facts.cell is not None:
        yield Exclusion(
            'in the cell of the server', 'nova', dict.fromkeys(
                nodes - facts.cell, reasons.OTHER_CELL), always=False)


def service_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    yield Exclusion(
        'with a nova-compute service', '', dict.fromkeys(
            nodes - facts.states, reasons.NO_STATE), always=False)


def host_not_requested(facts: Facts, nodes: Nodes) -> Exclusions:
    yield Exclusion('requested hosts', 'nova', {
        node: reasons.LEFT_OUT if node in facts.ignored
        else reasons.NOT_REQUESTED
        for node in nodes - facts.requested}, always=False)


def filter_rejects(facts: Facts, nodes: Nodes) -> Exclusions:
    for run in facts.filter_runs:
        yield Exclusion(run.name, 'nova', {
            node: reasons.of_filter(run, node, facts)
            for node in nodes.intersection(run.rejected)})
        nodes = nodes.difference(run.rejected)


STEPS: tuple[abc.Callable[[Facts, Nodes], Exclusions], ...] = (
    # A request filter, or placement, refuses the request on any host.
    request_refused,
    # Placement has no provider of the compute node.
    provider_missing,
    # The provider does not meet a condition of the query to placement.
    condition_unmet,
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
"""The steps of nova-scheduler, in its order.

Each gets the compute nodes that passed the steps before it, and yields its
conditions with the nodes that each of them excludes.
"""


def explain(facts: Facts) -> explanation.Answer:
    """Explain a request: the first step that each compute node fails."""
    nodes = frozenset(facts.nova.nodes)
    steps: list[explanation.Step] = []
    excluded: list[explanation.Verdict] = []
    for step in STEPS:
        for exclusion in step(facts, nodes):
            if not exclusion.reasons and not exclusion.always:
                continue
            nodes = nodes.difference(exclusion.reasons)
            excluded += [
                explanation.Verdict(
                    node, facts.host(node), reason, len(steps))
                for node, reason in exclusion.reasons.items()]
            steps.append(explanation.Step(
                exclusion.name, exclusion.asked_by, nodes & facts.scope))
    acceptable = [
        explanation.Verdict(node, facts.host(node), reasons.ACCEPTABLE,
                            len(steps), facts.weights.get(node))
        for node in nodes]
    verdicts = [
        *sorted(acceptable, key=lambda verdict: (
            -(verdict.weight or 0.0), verdict.host, verdict.node)),
        *sorted(excluded, key=lambda verdict: (
            verdict.step, verdict.reason.kind, verdict.host, verdict.node))]
    return explanation.Answer(
        facts.request, steps,
        [verdict for verdict in verdicts if verdict.node in facts.scope],
        notes(facts), facts.placed, facts.count,
        facts.refusal.reason if facts.refusal else '', facts.record)


MEMORY = ('nova-scheduler has aggregates in its memory, which may be older '
          'than the database that was read here; it reads them again when it '
          'is restarted.')

OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')


def notes(facts: Facts) -> list[str]:
    """List what is not explained, and what may differ in nova-scheduler."""
    notes = ['Cell %s did not answer, so that its hosts are not explained: %s'
             % cell for cell in sorted(facts.nova.cells_down.items())]
    notes += facts.notes
    if facts.omitted:
        notes.append(OMITTED % facts.omitted)
    notes += ['Placement has these hosts in %s, nova does not: %s. Run '
              '"%s --prune".' % (membership, ', '.join(hosts), reasons.SYNC)
              for membership, hosts in _stale_hosts(facts)]
    if any(run.rejected and run.name in reasons.OF_AGGREGATES
           for run in facts.filter_runs):
        notes.append(MEMORY)
    notes += ['No enabled filter compares these extra specs of the flavor: '
              '%s. They exclude no host. Enable %s if they should.'
              % (', '.join(names), host_filter)
              for host_filter, names in facts.unread_extra_specs.items()]
    return notes


def _stale_hosts(facts: Facts) -> list[tuple[str, list[str]]]:
    """List hosts that are candidates only because placement is stale."""
    hosts: dict[str, set[str]] = {}
    nodes = facts.funnel.left if facts.funnel else frozenset[str]()
    for node in nodes:
        for membership in reasons.stale_memberships(facts, node):
            hosts.setdefault(membership, set()).add(facts.host(node))
    return [(membership, sorted(names))
            for membership, names in sorted(hosts.items())]
