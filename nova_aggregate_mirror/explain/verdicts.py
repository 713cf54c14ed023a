# SPDX-License-Identifier: Apache-2.0
"""The first condition that each compute node does not meet, and why."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import funnel
from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import parallel

FIGURES = 20
"""Maximum number of hosts whose inventories are read, per condition."""


@dataclasses.dataclass
class Verdicts:
    """Steps so far, and the nodes that did not pass one.

    :param known: nova's hosts
    :param shown: the compute nodes to explain
    """

    known: reasons.Context
    shown: frozenset[str]
    steps: list[explanation.Step] = dataclasses.field(default_factory=list)
    found: dict[str, explanation.Verdict] = dataclasses.field(
        default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    stale: set[str] = dataclasses.field(default_factory=set)
    """Nodes that placement has in an aggregate, and nova does not."""

    @property
    def left(self) -> frozenset[str]:
        """The nodes that have passed every step."""
        return frozenset(self.known.nova.nodes) - self.found.keys()

    def add(self, name: str, asked_by: str, passed: Collection[str],
            why: Mapping[str, explanation.Reason] | explanation.Reason,
            always: bool = True) -> None:
        """Add a step.

        :param passed: UUIDs of nodes that pass it; others may be included
        :param why: the reason, or the reason of each node that does not pass
        :param always: whether to add it if every node passes, too
        """
        if not always and self.left <= frozenset(passed):
            return
        for node in sorted(self.left - frozenset(passed)):
            reason = why if isinstance(why, explanation.Reason) else why[node]
            self.found[node] = explanation.Verdict(
                node, self.host(node), reason, len(self.steps))
        self.steps.append(explanation.Step(name, asked_by, self.left))

    def host(self, node: str) -> str:
        """Return the host of a compute node."""
        return self.known.nova.nodes.get(node, node)

    def answer(self, request: Mapping[str, str],
               weights: Mapping[str, float]) -> explanation.Answer:
        """Return the explanation; the nodes that are left have weights."""
        passing = explanation.Reason(
            explanation.ACCEPTABLE, explanation.ACCEPTABLE)
        left = [explanation.Verdict(
            node, self.host(node), passing, len(self.steps), weights.get(node))
            for node in self.left & self.shown]
        rest = sorted((one for one in self.found.values()
                       if one.node in self.shown),
                      key=lambda one: (one.step, one.reason.kind, one.host))
        return explanation.Answer(request, [
            dataclasses.replace(step, passed=step.passed & self.shown)
            for step in self.steps], [
            *sorted(left, key=lambda one: (-(one.weight or 0.0), one.host)),
            *rest], self.notes)

    def refused(self, request: Mapping[str, str], step: str, why: str,
                advice: str = '') -> explanation.Answer:
        """Return the answer to a request that fails on any host."""
        self.add(step, '', (), explanation.Reason(
            'refused', 'not considered, because the request is refused', why,
            advice))
        return dataclasses.replace(self.answer(request, {}), failure=why)


def add_funnel(verdicts: Verdicts, found: funnel.Funnel,
               reader: candidates.Reader, each: parallel.Each) -> None:
    """Add a step for each condition of the queries to placement."""
    known = verdicts.known
    verdicts.add('with a resource provider', '', found.existing,
                 reasons.NO_PROVIDER)
    for condition, passed in zip(found.conditions, found.passed):
        failing = sorted(verdicts.left - passed, key=lambda node: (
            node not in verdicts.shown, verdicts.host(node)))
        figures = {}
        # Other providers of a tree may provide the resource.
        if found.plain and query.kind(condition) == query.RESOURCES:
            figures = dict(zip(failing, each(
                lambda node: _inventories(reader, node), failing[:FIGURES])))
        verdicts.add(
            reasons.title(condition, known.nova), condition.asked_by, passed,
            {node: reasons.of_condition(
                condition, node, known, figures.get(node),
                nested=not found.plain)
                for node in failing})
    _note_surplus(verdicts, found)


def _note_surplus(verdicts: Verdicts, found: funnel.Funnel) -> None:
    """Report nodes that are candidates only because placement is stale."""
    stale: dict[str, set[str]] = {}
    for node in verdicts.left:
        for where in reasons.surplus(found.conditions, node, verdicts.known):
            stale.setdefault(where, set()).add(verdicts.host(node))
            verdicts.stale.add(node)
    for where, hosts in sorted(stale.items()):
        verdicts.notes.append(
            'Placement has these hosts in %s, nova does not: %s. Run '
            '"%s --prune".' % (
                where, ', '.join(sorted(hosts)), reasons.SYNC))


def _inventories(reader: candidates.Reader, node: str
                 ) -> Mapping[str, candidates.Inventory] | None:
    try:
        return reader.inventories(node)
    except exceptions.ProviderNotFound:
        return None
