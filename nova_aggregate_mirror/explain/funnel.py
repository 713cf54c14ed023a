# SPDX-License-Identifier: Apache-2.0
"""Providers that placement leaves after each condition of a query."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.placement import parallel

MAX_FIGURES = 20
"""Maximum number of providers whose inventories are read, per condition."""

MAX_TREE = 4
"""Maximum number of providers of a tree whose inventories are read."""

Inventories = abc.Mapping[str, candidates.Inventory | None]
"""Of a compute node, by class; None if several providers have the class."""
Conditions = abc.Sequence[placement_query.Condition]


@dataclasses.dataclass(frozen=True)
class Funnel:
    """The responses of placement to a query, and to its first conditions."""

    existing: frozenset[str]
    """Compute nodes that have a resource provider."""
    conditions: Conditions
    passed: abc.Sequence[frozenset[str]]
    """For each condition the compute nodes that are not known to fail it: one
    with several providers is not asked about after the first that it fails."""
    answers: abc.Sequence[candidates.Candidates]
    """The response to each query, without its limit."""
    trees: abc.Mapping[str, abc.Sequence[str]]
    """Compute node to the providers of its tree; without those that may use
    sharing providers."""

    def readable(self, node: str) -> bool:
        """Check whether its inventories take few requests to read."""
        return 0 < len(self.trees.get(node, ())) <= MAX_TREE

    @property
    def left(self) -> frozenset[str]:
        """The compute nodes that meet every condition."""
        return self.existing.intersection(*self.passed)


def read(reader: candidates.CandidateReader, sharing: frozenset[str],
         for_each: parallel.Each,
         queries: abc.Sequence[placement_query.PlacementQuery],
         nodes: frozenset[str]) -> Funnel:
    """Read which nodes meet each condition of a query.

    A condition is asked by itself for nodes with a single provider, and with
    those before it for others, which may meet it with several providers.

    :param sharing: providers that may use resources of a sharing one
    :param queries: alternatives; nova takes the candidates of each: the first
        may have further ones that replace some of its conditions
    :raises RequestRejected: placement does not accept the whole query
    """
    existing, trees = _trees(reader, nodes, sharing)
    # The whole queries take longest and start first.
    answers: list[candidates.Candidates] = for_each(
        lambda query: reader.candidates(
            query.parameters(), query.limit), queries)

    def candidates_of(query: placement_query.PlacementQuery,
                      conditions: Conditions) -> frozenset[str]:
        return reader.candidates(query.parameters(conditions)).providers

    def providers_of(query: placement_query.PlacementQuery,
                     conditions: Conditions) -> frozenset[str]:
        parameters = query.parameters(conditions)
        return reader.providers(placement_query.of_providers(parameters))

    # Placement may cut the response to a part, and then the complete query's
    # is not within it.
    complete = frozenset().union(*(answer.providers for answer in answers))
    plain = all(query.plain for query in queries)
    single = frozenset(node for node, providers in trees.items()
                       if plain and not providers[1:])
    remaining, conditions = existing - single, queries[0].conditions
    single_answers = _ask(
        providers_of, for_each, queries,
        [[condition] for condition in conditions], single)
    # All conditions together are a complete query.
    joint = [conditions[:count] for count in range(1, len(conditions))]
    joint_answers = _ask(
        candidates_of, for_each, queries, [*joint, ()], remaining)
    passed = []
    for by_itself, together in zip(
            single_answers, joint_answers, strict=True):
        # Placement may change between two queries.
        failing = remaining - together - complete
        passed.append(existing - failing - (single - by_itself - complete))
        remaining -= failing
    return Funnel(existing, conditions, passed, answers, trees)


def _trees(reader: candidates.CandidateReader, nodes: frozenset[str],
           sharing: frozenset[str]
           ) -> tuple[frozenset[str], abc.Mapping[str, abc.Sequence[str]]]:
    """Read which nodes have a provider, and the trees of the roots."""
    roots = reader.trees()
    existing = nodes.intersection(roots)
    trees: dict[str, list[str]] = {
        node: [] for node in existing - sharing if roots[node] == node}
    for provider, root in roots.items():
        if root in trees:
            trees[root].append(provider)
    return existing, trees


def _ask(ask: abc.Callable[..., frozenset[str]], for_each: parallel.Each,
         queries: abc.Sequence[placement_query.PlacementQuery],
         steps: abc.Iterable[Conditions], nodes: frozenset[str]
         ) -> list[frozenset[str]]:
    """Return the nodes that meet some conditions of any query, by step."""
    def answer(part: tuple[placement_query.PlacementQuery, Conditions]
               ) -> frozenset[str]:
        try:
            return ask(*part)
        except exceptions.RequestRejected:
            # A part may not be a query, for example without resources.
            return nodes

    pending, passed = [], []
    for step, conditions in enumerate(steps):
        passed.append(frozenset[str]())
        parts = placement_query.parts(queries, conditions)
        pending += [(step, query, part) for query, part
                    in zip(queries, parts, strict=True) if part and nodes]
    answers = for_each(answer, [(query, part) for _, query, part in pending])
    for (step, _query, _part), response in zip(pending, answers, strict=True):
        passed[step] |= nodes.intersection(response)
    return passed


def read_figures(reader: candidates.CandidateReader, for_each: parallel.Each,
                 funnel: Funnel, nodes: abc.Sequence[str]
                 ) -> abc.Mapping[str, Inventories]:
    """Read the inventories of the nodes with too few resources.

    :param nodes: all compute nodes; the first of them are read
    """
    wanted: dict[str, None] = {}
    remaining = funnel.existing
    for condition, passed in zip(
            funnel.conditions, funnel.passed, strict=True):
        if condition.kind == placement_query.RESOURCES:
            failing = [node for node in nodes if node not in passed
                       and node not in wanted and funnel.readable(node)]
            failing.sort(key=lambda node: node not in remaining)
            wanted |= dict.fromkeys(failing[:MAX_FIGURES])
        remaining = remaining & passed
    responses = for_each(
        lambda node: _inventories(reader, funnel.trees[node]), wanted)
    return {node: inventories for node, inventories
            in zip(wanted, responses, strict=True) if inventories is not None}


def scarce_providers(funnel: Funnel, figures: abc.Mapping[str, Inventories]
                     ) -> abc.Mapping[str, abc.Collection[str]]:
    """Return node to those of its providers that have too few resources."""
    providers: dict[str, set[str]] = {}
    for condition in funnel.conditions:
        if condition.kind != placement_query.RESOURCES:
            continue
        for name, amount in condition.amounts.items():
            for node, inventories in figures.items():
                inventory = inventories.get(name)
                if inventory and amount > inventory.free:
                    providers.setdefault(node, set()).add(inventory.provider)
    return providers


def within_limit(reader: candidates.CandidateReader,
                 queries: abc.Sequence[placement_query.PlacementQuery],
                 answers: abc.Sequence[candidates.Candidates]
                 ) -> tuple[frozenset[str], str]:
    """Return the providers within nova's limit, and it if it cuts any."""
    providers: frozenset[str] = frozenset()
    limit = ''
    for query, answer in zip(queries, answers, strict=True):
        if query.limit and len(answer.requests) > int(query.limit):
            limit = query.limit
            answer = reader.candidates(
                [*query.parameters(), (placement_query.LIMIT, limit)])
        # Nova skips a host of which only a child has a candidate.
        providers |= candidates.by_provider(answer.requests).keys()
    return providers, limit


def _inventories(reader: candidates.CandidateReader,
                 providers: abc.Sequence[str]) -> Inventories | None:
    """Read the inventories of a tree; None if one of it was deleted."""
    inventories: dict[str, candidates.Inventory | None] = {}
    try:
        for provider in providers:
            for name, inventory in reader.inventories(provider).items():
                inventories[name] = (
                    None if name in inventories else inventory)
    except exceptions.ProviderNotFound:
        return None
    return inventories
