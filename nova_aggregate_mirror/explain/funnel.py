# SPDX-License-Identifier: Apache-2.0
"""Providers that placement leaves after each condition of a query."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import parallel

FIGURES = 20
"""Maximum number of providers whose inventories are read, per condition."""

Inventories = abc.Mapping[str, candidates.Inventory]


@dataclasses.dataclass(frozen=True)
class Funnel:
    """The responses of placement to a query, and to its first conditions."""

    existing: frozenset[str]
    """Compute nodes that have a resource provider."""
    conditions: abc.Sequence[placement_query.Condition]
    passed: abc.Sequence[frozenset[str]]
    """The compute nodes that meet each condition and all before it."""
    answers: abc.Sequence[candidates.Candidates]
    """The response to each query, without its limit."""
    plain: bool
    """Whether each provider provides resources by itself only."""

    @property
    def left(self) -> frozenset[str]:
        """The compute nodes that meet every condition."""
        return self.existing.intersection(*self.passed)


def narrow(reader: candidates.CandidateReader, sharing: bool,
           for_each: parallel.Each,
           queries: abc.Sequence[placement_query.PlacementQuery],
           nodes: frozenset[str]) -> Funnel:
    """Add the conditions of a query to it one by one.

    :param queries: alternatives; nova takes the candidates of each: the first
        may have further ones that replace some of its conditions
    :raises RequestRejected: placement does not accept the whole query
    """
    roots = reader.trees()
    plain = not sharing and all(query.plain for query in queries) and (
        all(provider == root for provider, root in roots.items()))
    rows = [list(zip(queries, parts))
            for parts in placement_query.prefixes(queries)]
    # The whole queries take longest and start first.
    answers = for_each(
        lambda query: reader.candidates(query.parameters()), queries)

    def ask(part: tuple[placement_query.PlacementQuery,
                        list[placement_query.Condition]]) -> frozenset[str]:
        query, conditions = part
        if not plain and len(conditions) == len(query.conditions):
            return answers[queries.index(query)].providers
        parameters = query.parameters(conditions)
        try:
            if plain:
                return reader.providers(
                    placement_query.of_providers(parameters))
            return reader.candidates(parameters).providers
        except exceptions.RequestRejected:
            # A part may not be a query, for example without resources.
            return nodes

    responses = iter(for_each(
        ask, [part for parts in rows for part in parts if part[1]]))
    # Placement may cut the response to a part, and then the complete query's
    # is not within it.
    complete = frozenset().union(*(answer.providers for answer in answers))
    passed: list[frozenset[str]] = []
    for parts in rows:
        row = nodes & complete.union(*(
            next(responses) for part in parts if part[1]))
        # Placement may change between two queries.
        passed.append(row & passed[-1] if passed else row)
    return Funnel(nodes.intersection(roots), queries[0].conditions, passed,
                  answers, plain)


def read_figures(reader: candidates.CandidateReader, for_each: parallel.Each,
                 funnel: Funnel, nodes: abc.Sequence[str]
                 ) -> abc.Mapping[str, Inventories]:
    """Read the inventories of the nodes with too few resources.

    :param nodes: all compute nodes; the first of them are read
    """
    figures: dict[str, Inventories] = {}
    # Other providers of a tree may provide the resource.
    if not funnel.plain:
        return figures
    remaining = funnel.existing
    for condition, passed in zip(funnel.conditions, funnel.passed):
        if condition.kind == placement_query.RESOURCES:
            failing = [node for node in nodes if node in remaining - passed]
            responses = for_each(
                lambda node: _inventories(reader, node), failing[:FIGURES])
            figures |= {node: inventories for node, inventories
                        in zip(failing, responses) if inventories is not None}
        remaining = remaining & passed
    return figures


def limited(reader: candidates.CandidateReader,
            queries: abc.Sequence[placement_query.PlacementQuery],
            answers: abc.Sequence[candidates.Candidates]
            ) -> tuple[frozenset[str], str]:
    """Return the providers within nova's limit, and a limit that cuts."""
    providers: frozenset[str] = frozenset()
    limit = ''
    for query, answer in zip(queries, answers):
        if query.limit and len(answer.requests) > int(query.limit):
            limit = query.limit
            answer = reader.candidates(
                [*query.parameters(), (placement_query.LIMIT, limit)])
        providers |= answer.providers
    return providers, limit


def _inventories(reader: candidates.CandidateReader, node: str
                 ) -> Inventories | None:
    try:
        return reader.inventories(node)
    except exceptions.ProviderNotFound:
        return None
