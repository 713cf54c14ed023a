# SPDX-License-Identifier: Apache-2.0
"""Read which providers meet the conditions of a query, and their figures.

Long because all that an explanation reads of providers is here.
"""

from collections import abc
import dataclasses
import itertools
from typing import Any
from typing import TypeVar
import urllib.parse

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation

MAX_FIGURES = 20
"""Maximum number of providers whose inventories are read, per condition."""
MAX_TREE = 4
"""Maximum number of providers of a tree whose inventories are read."""
Document = dict[str, Any]
Parameters = abc.Sequence[tuple[str, str]]
Result = TypeVar('Result')
Condition = placement_query.Condition
Passed = abc.Sequence[tuple[Condition, frozenset[str]]]


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The response to ``GET /allocation_candidates``."""

    requests: abc.Sequence[abc.Mapping[str, Any]]
    summaries: abc.Mapping[str, abc.Mapping[str, Any]]
    """All providers of a tree that has a candidate."""
    limit: int | None = None
    """How many of the requests nova takes; None for all."""


Answers = abc.Sequence[Candidates]
"""One for each query of a request."""


def by_provider(requests: abc.Iterable[abc.Mapping[str, Any]]
                ) -> abc.Mapping[str, list[Any]]:
    """Map each provider to the allocation requests that it is part of."""
    requests_of: dict[str, list[Any]] = {}
    for request in requests:
        for provider in request['allocations']:
            requests_of.setdefault(provider, []).append(request)
    return requests_of


@dataclasses.dataclass(frozen=True)
class Inventory:
    """Inventory of a resource class of a provider, and its usage."""

    total: int
    reserved: int
    allocation_ratio: float
    used: int
    min_unit: int
    max_unit: int
    step_size: int
    provider: str

    @property
    def usable(self) -> int:
        """The amount that placement allocates in all."""
        unreserved = self.total - self.reserved
        return max(0, int(unreserved * self.allocation_ratio))

    @property
    def free(self) -> int:
        """The amount that is not allocated; one server may get less."""
        return max(0, self.usable - self.used)


Inventories = abc.Mapping[str, Inventory | None]
"""Of a compute node, by class; None if several providers have the class."""


@dataclasses.dataclass(frozen=True)
class Funnel:
    """The responses of placement to a query, and to its first conditions."""

    existing: frozenset[str]
    """Compute nodes that have a resource provider."""
    passed: Passed
    """Each condition with the compute nodes that are not known to fail it. A
    node with several providers is known to fail one condition at most."""
    answers: Answers = ()
    """The response to each query, without its limit."""
    trees: abc.Mapping[str, abc.Sequence[str]] = dataclasses.field(
        default_factory=dict)
    """Compute node to the providers of its tree; without the nodes that may
    use sharing providers."""
    within_limit: frozenset[str] = frozenset()
    """Providers with a candidate that nova-scheduler takes."""

    @property
    def left(self) -> frozenset[str]:
        """The compute nodes that meet every condition."""
        return self.existing.intersection(
            *(nodes for _condition, nodes in self.passed))


class CandidateReader:
    """Reader that sends queries of nova-scheduler, or variants of them."""

    def __init__(self, placement: client.Client) -> None:
        self._placement = placement

    def candidates(self, parameters: Parameters, limit: int | None = None
                   ) -> Candidates:
        """Read all allocation candidates of a query.

        :param limit: how many of the candidates nova takes
        :raises RequestRejected: placement does not accept the query
        """
        # ``[] +`` and ``{**}`` fail for a value of another type.
        return self._read('/allocation_candidates', lambda answer: Candidates(
            [] + answer['allocation_requests'],
            {**answer['provider_summaries']}, limit), parameters=parameters)

    def trees(self, parameters: Parameters = ()) -> abc.Mapping[str, str]:
        """Map each provider that meets conditions by itself to its root."""
        return self._read('/resource_providers', lambda answer: {
            provider['uuid']: provider['root_provider_uuid'] for provider
            in answer['resource_providers']}, parameters=parameters)

    def inventories(self, provider: str) -> abc.Mapping[str, Inventory]:
        """Read the inventories and usages of a provider, by class."""
        path = '/resource_providers/%s/' % provider
        used = self._read(
            path + 'usages', lambda answer: answer['usages'], provider)

        def parse(answer: Document) -> abc.Mapping[str, Inventory]:
            # A class may have been added between the requests.
            return {name: Inventory(
                **record, used=used[name], provider=provider) for name, record
                in answer['inventories'].items() if name in used}

        return self._read(path + 'inventories', parse, provider)

    def allocations(self, provider: str
                    ) -> abc.Mapping[str, abc.Mapping[str, int]]:
        """Read consumer to amounts by class; empty without the provider."""
        path = '/resource_providers/%s/allocations' % provider
        try:
            return self._read(path, lambda answer: {
                consumer: allocation['resources'] for consumer, allocation
                in answer['allocations'].items()}, provider)
        except exceptions.ProviderNotFound:
            return {}

    def unknown(self, classes: abc.Set[str], traits: abc.Set[str]
                ) -> tuple[list[str], list[str]]:
        """Return the resource classes, and the traits, that do not exist."""
        existing = self._read('/resource_classes', lambda answer: {
            row['name'] for row in answer['resource_classes']})
        if traits:
            names = 'in:' + ','.join(sorted(traits))
            traits -= self._read('/traits', lambda answer: {*answer['traits']},
                                 parameters=[('name', names)])
        return sorted(classes - existing), sorted(traits)

    def _read(self, path: str, parse: abc.Callable[[Document], Result],
              provider: str = '', parameters: Parameters = ()) -> Result:
        """Send a GET, and parse its answer."""
        if parameters:
            path += '?' + urllib.parse.urlencode(parameters, safe=':,!')

        def checked(call: errors.Call, answer: Document) -> Result:
            try:
                return parse(answer)
            except (LookupError, TypeError, ValueError, AttributeError) as exc:
                raise call.malformed('an answer of another form') from exc

        return self._placement.read(path, checked, provider)


def narrow(reader: CandidateReader, sharing: frozenset[str],
           for_each: isolation.ForEach, queries: placement_query.Queries,
           nodes: frozenset[str]) -> Funnel:
    """Read which nodes meet each condition of a query.

    For nodes with a single provider each condition is asked by itself; for
    others, which may meet it with several providers, with all before it.

    :param sharing: providers that may use resources of a sharing provider
    :param queries: nova takes the candidates of each; those after the first
        replace some of its conditions
    :raises RequestRejected: placement does not accept the whole query
    """
    roots = reader.trees()
    existing = nodes.intersection(roots)
    trees: dict[str, list[str]] = {
        node: [] for node in existing - sharing if roots[node] == node}
    for provider, root in roots.items():
        if root in trees:
            trees[root].append(provider)
    # The whole queries take longest and start first.
    answers: list[Candidates] = for_each(lambda query: reader.candidates(
        query.parameters(), query.limit), queries)
    meeting_all = frozenset[str]().union(
        *(answer.summaries for answer in answers))
    single = frozenset(node for node, providers in trees.items()
                       if queries[0].plain and not providers[1:])
    passed = _passed(reader, for_each, queries, single, existing - single,
                     meeting_all)
    # With its limit the query would return these. Nova skips a host of which
    # only a child provider has a candidate.
    taken = [answer.requests[:answer.limit] for answer in answers]
    within_limit = frozenset(by_provider(itertools.chain(*taken)))
    return Funnel(existing, passed, answers, trees, within_limit)


def _passed(reader: CandidateReader, for_each: isolation.ForEach,
            queries: placement_query.Queries, single: frozenset[str],
            remaining: frozenset[str], meeting_all: frozenset[str]) -> Passed:
    """Return each condition with the nodes that are not known to fail it.

    :param single: nodes with a single provider; ``remaining`` are the others
    :param meeting_all: providers with a candidate of a whole query
    """
    def candidates_of(part: abc.Sequence[Condition]) -> abc.Iterable[str]:
        return reader.candidates(query.parameters(part)).summaries

    def providers_of(part: abc.Sequence[Condition]) -> abc.Iterable[str]:
        # Each provider asked about is a root.
        return reader.trees([
            (placement_query.REQUIRED if key == placement_query.ROOT else key,
             value) for key, value in query.parameters(part)])

    query, nodes = queries[0], single | remaining
    conditions = query.conditions
    alone = _ask(providers_of, for_each, queries,
                 [[condition] for condition in conditions], single)
    parts = [conditions[:count] for count in range(1, len(conditions))]
    together = _ask(candidates_of, for_each, queries, parts, remaining)
    passed = []
    # All conditions together are the whole query, which was asked before.
    for condition, by_itself, with_earlier in zip(
            conditions, alone, [*together, frozenset[str]()], strict=True):
        # Placement may change between queries, or cut the answer to a part.
        failing = (remaining - with_earlier) - meeting_all
        remaining -= failing
        failing |= (single - by_itself) - meeting_all
        passed.append((condition, nodes - failing))
    return passed


def _ask(ask: abc.Callable[[abc.Sequence[Condition]], abc.Iterable[str]],
         for_each: isolation.ForEach, queries: placement_query.Queries,
         parts: abc.Sequence[abc.Sequence[Condition]], nodes: frozenset[str]
         ) -> list[frozenset[str]]:
    """Return the nodes that meet a part or an alternative, for each part."""
    def answer(part: abc.Sequence[Condition]) -> frozenset[str]:
        if not nodes:
            return nodes
        asked = map(ask, placement_query.alternatives(queries, part))
        try:
            return nodes.intersection(itertools.chain(*asked))
        except exceptions.RequestRejected:
            # A part may not be a query, for example without resources.
            return nodes

    return for_each(answer, parts)


def read_figures(reader: CandidateReader, for_each: isolation.ForEach,
                 funnel: Funnel, rank: abc.Callable[[str], Any]
                 ) -> abc.Mapping[str, Inventories]:
    """Read the inventories of the nodes with too few resources.

    :param rank: sort key of a node, to read the first; those that fail no
        earlier condition come before the others
    """
    readable = {node for node, providers in funnel.trees.items()
                if len(providers) <= MAX_TREE}
    wanted: dict[str, None] = {}
    remaining = funnel.existing
    for condition, passed in funnel.passed:
        if condition.kind == placement_query.RESOURCES:
            failing = readable - passed - wanted.keys()
            ordered = sorted(failing, key=lambda node: (
                node not in remaining, rank(node)))
            wanted |= dict.fromkeys(ordered[:MAX_FIGURES])
        remaining = remaining & passed
    responses = for_each(
        lambda node: _inventories(reader, funnel.trees[node]), wanted)
    return {node: inventories for node, inventories
            in zip(wanted, responses, strict=True) if inventories is not None}


def scarce_providers(funnel: Funnel, figures: abc.Mapping[str, Inventories]
                     ) -> abc.Mapping[str, str]:
    """Return the providers with too few resources, each with its node."""
    providers: dict[str, str] = {}
    for condition, _passed in funnel.passed:
        if condition.kind != placement_query.RESOURCES:
            continue
        for name, amount in condition.amounts.items():
            for node, inventories in figures.items():
                inventory = inventories.get(name)
                if inventory and amount > inventory.free:
                    providers[inventory.provider] = node
    return providers


def _inventories(reader: CandidateReader,
                 providers: abc.Sequence[str]) -> Inventories | None:
    """Read the inventories of a tree; None if it changes meanwhile."""
    inventories: dict[str, Inventory | None] = {}
    for provider in providers:
        try:
            by_class = reader.inventories(provider)
        except exceptions.ProviderNotFound:
            return None
        for name, inventory in by_class.items():
            inventories[name] = None if name in inventories else inventory
    return inventories
