# SPDX-License-Identifier: Apache-2.0
"""The first step of scheduling that a compute node does not pass: pure.

Notes say what is not explained, and what may differ in nova-scheduler.
"""

from collections import abc
import dataclasses

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror import plurals

Facts = facts.Facts
Nodes = frozenset[str]
Reason = explanation.Reason

MEMORY = ('nova-scheduler has aggregates in its memory, which may be older '
          'than the database that was read here; it reads them again when it '
          'is restarted.')
OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')
WITHOUT_REFUSAL = 'Without the refusal, nova-scheduler finds: '


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


def provider_missing(facts: Facts, _nodes: Nodes) -> Exclusions:
    if facts.funnel:
        yield Exclusion(
            'with a resource provider', '', dict.fromkeys(
                facts.nova.nodes.keys() - facts.funnel.existing,
                reasons.NO_PROVIDER))


def condition_unmet(facts: Facts, _nodes: Nodes) -> Exclusions:
    if facts.funnel:
        for condition, passed in zip(
                facts.funnel.conditions, facts.funnel.passed, strict=True):
            yield Exclusion(
                reasons.title(condition, facts.nova), condition.origin.name, {
                    node: reasons.of_condition(condition, node, facts)
                    for node in facts.funnel.existing - passed})


def candidate_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    if not facts.funnel:
        return
    failing = nodes - facts.candidates
    if facts.limit:
        yield Exclusion(
            'among the first %s candidates' % facts.limit,
            'max_placement_results',
            dict.fromkeys(failing, reasons.of_limit(facts.limit)),
            always=False)
    else:
        yield Exclusion(
            'allocation candidates of placement', '',
            dict.fromkeys(failing, reasons.NOT_RETURNED), always=False)


def cell_differs(facts: Facts, _nodes: Nodes) -> Exclusions:
    if facts.cell is not None:
        yield Exclusion(
            'in the cell of the server', 'nova', dict.fromkeys(
                facts.nova.nodes.keys() - facts.cell - facts.serviceless,
                reasons.OTHER_CELL), always=False)


def service_missing(facts: Facts, nodes: Nodes) -> Exclusions:
    yield Exclusion('with a nova-compute service', '', {
        **dict.fromkeys(nodes - facts.states, reasons.NO_STATE),
        **dict.fromkeys(facts.cells_disabled, reasons.DISABLED_CELL),
        **dict.fromkeys(facts.serviceless, reasons.NO_SERVICE)}, always=False)


def host_not_requested(facts: Facts, nodes: Nodes) -> Exclusions:
    yield Exclusion('requested hosts', 'nova', {
        node: reasons.LEFT_OUT if node in facts.ignored
        else reasons.NOT_REQUESTED
        for node in (nodes - facts.requested) | facts.ignored}, always=False)


def filter_rejects(facts: Facts, _nodes: Nodes) -> Exclusions:
    for run in facts.filter_runs:
        if run.name == reasons.COMPUTE_FILTER:
            run = dataclasses.replace(
                run, rejected={**_unusable(facts), **run.rejected})
        yield Exclusion(run.name, 'nova', {
            node: reasons.of_filter(run, node, facts)
            for node in run.rejected})
        if run.name == reasons.COMPUTE_FILTER:
            # Of a host that is disabled it checks nothing else.
            yield Exclusion('nova-compute is up', 'nova', {
                node: reasons.of_down(facts.host(node) in facts.forced_down)
                for node in run.rejected if facts.host(node) in facts.down},
                always=False)


def conductor_refuses(facts: Facts, _nodes: Nodes) -> Exclusions:
    yield Exclusion(
        'mapped to a cell', 'nova-conductor', dict.fromkeys(
            facts.unmapped, reasons.UNMAPPED), always=False)
    yield Exclusion('hypervisor of the server', 'nova-conductor', {
        node: reasons.of_conductor(message)
        for node, message in facts.refused_hosts.items()}, always=False)


def _unusable(facts: Facts) -> abc.Mapping[str, str]:
    """Map the nodes that ComputeFilter would reject to no message.

    Nova does not run it for a rebuild, the only request without a query.
    """
    return dict.fromkeys((
        node for node, host in facts.nova.nodes.items()
        if facts.funnel and node not in facts.scores
        and (host in facts.down or host in facts.disabled)), '')


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
    # Nova-conductor does not take the host that nova-scheduler has chosen.
    conductor_refuses,
)
"""The steps of nova, in its order.

Each gets the compute nodes that passed the steps before it, and yields its
conditions with the nodes that each of them excludes. If it is known that other
nodes do not meet a condition either, they may be among them; all are compute
nodes of ``facts.nova``.
"""


def explain(facts: Facts) -> explanation.Answer:
    """Explain a request: the steps that each compute node fails."""
    nodes = frozenset(facts.nova.nodes)
    steps: list[explanation.Step] = []
    # By phrase: placement and a filter may both tell that a host is disabled.
    failures: dict[str, dict[str, Reason]] = {node: {} for node in nodes}
    first_step: dict[str, int] = {}
    for step in STEPS:
        for exclusion in step(facts, nodes):
            for node, reason in exclusion.reasons.items():
                failures[node].setdefault(reason.phrase, reason)
            excluded = nodes.intersection(exclusion.reasons)
            if excluded or exclusion.always and not facts.refusal:
                first_step |= dict.fromkeys(excluded, len(steps))
                nodes -= excluded
                steps.append(explanation.Step(
                    exclusion.name, exclusion.asked_by, nodes & facts.scope))
    return _answer(facts, steps, nodes, [
        _verdict(node, facts, step, *failures[node].values())
        for node, step in first_step.items()])


def _verdict(node: str, facts: Facts, step: int, reason: Reason,
             *also: Reason) -> explanation.Verdict:
    scores = facts.scores.get(node)
    return explanation.Verdict(
        node, facts.host(node), reason, step,
        None if scores is None else sum(scores.values()), scores or {}, also)


def _answer(facts: Facts, steps: abc.Sequence[explanation.Step], nodes: Nodes,
            excluded: abc.Iterable[explanation.Verdict]
            ) -> explanation.Answer:
    """Return the answer: acceptable nodes first, the others by step."""
    acceptable = [
        _verdict(node, facts, len(steps), reasons.acceptable(node, facts))
        for node in nodes]
    verdicts = [
        *sorted(acceptable, key=lambda verdict: (
            -(verdict.weight or 0.0), verdict.host, verdict.node)),
        *sorted(excluded, key=lambda verdict: (
            verdict.step, verdict.reason.kind, verdict.host, verdict.node))]
    verdicts = [verdict for verdict in verdicts if verdict.node in facts.scope]
    notes = _notes(facts)
    hosts = [verdict.host for verdict in verdicts
             if facts.refusal and verdict.scores and not verdict.also]
    if hosts:
        notes.append(WITHOUT_REFUSAL + plurals.some(hosts))
    return explanation.Answer(
        facts.request, steps, verdicts, notes, facts.placed, facts.count,
        facts.refusal.reason if facts.refusal else '', facts.record)


def _notes(facts: Facts) -> list[str]:
    notes = list(facts.notes)
    if facts.omitted:
        notes.append(OMITTED % facts.omitted)
    # They are candidates only because placement is stale.
    hosts: dict[str, set[str]] = {}
    for node in facts.funnel.left if facts.funnel else ():
        for membership in reasons.stale_memberships(facts, node):
            hosts.setdefault(membership, set()).add(facts.host(node))
    notes += ['Placement has these hosts in %s, nova does not: %s. Run '
              '"%s --prune".' % (membership, ', '.join(sorted(names)),
                                 commands.SYNC)
              for membership, names in sorted(hosts.items())]
    if any(run.rejected and run.name in reasons.OF_AGGREGATES
           for run in facts.filter_runs):
        notes.append(MEMORY)
    notes += ['No enabled filter compares these extra specs of the flavor: '
              '%s. They exclude no host. Enable %s if they should.'
              % (', '.join(names), host_filter)
              for host_filter, names in facts.unread_extra_specs.items()]
    notes += ['No enabled filter of nova or of this package reads the '
              'metadata of aggregates by which %s would reject %s. Enable it '
              'if it should.' % (host_filter, plurals.some(rejected))
              for host_filter, rejected in facts.unread_metadata.items()]
    return notes
