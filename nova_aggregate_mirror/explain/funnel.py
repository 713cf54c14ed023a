# SPDX-License-Identifier: Apache-2.0
"""Which providers placement leaves after each condition of a query."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import parallel


@dataclasses.dataclass(frozen=True)
class Funnel:
    """What placement answers to a query, and to its first conditions."""

    existing: frozenset[str]
    """Compute nodes that have a resource provider."""
    conditions: Sequence[explanation.Condition]
    passed: Sequence[frozenset[str]]
    """The compute nodes that meet each condition and all before it."""
    answers: Sequence[candidates.Candidates]
    """The response to each query, without its limit."""
    plain: bool
    """Whether each provider provides resources by itself only."""


class Asker:
    """Asks placement itself which providers meet some conditions.

    :param sharing: whether any provider shares its resources
    """

    def __init__(self, reader: candidates.Reader, sharing: bool,
                 each: parallel.Each) -> None:
        self._reader = reader
        self._sharing = sharing
        self._each = each

    def narrow(self, queries: Sequence[query.Query], nodes: frozenset[str]
               ) -> Funnel:
        """Add the conditions of a query to it one by one.

        :param queries: alternatives; nova takes the candidates of each: the
            first may have further ones that replace some of its conditions
        :param nodes: the compute nodes of nova
        :raises RequestRejected: placement does not accept the whole query
        """
        roots = self._reader.trees()
        plain = not self._sharing and all(one.plain for one in queries) and (
            all(provider == root for provider, root in roots.items()))
        asked = [[(one, some) for one, some in zip(queries, parts)]
                 for parts in prefixes(queries)]
        flat = [part for parts in asked for part in parts if part[1]]
        whole = [(one, list(one.conditions)) for one in queries]

        def ask(part: tuple[query.Query, list[explanation.Condition]]
                ) -> frozenset[str]:
            one, some = part
            if not plain and len(some) == len(one.conditions):
                return answers[queries.index(one)].providers
            parameters = one.parameters(some)
            try:
                if plain:
                    return self._reader.providers(
                        query.of_providers(parameters))
                return self._reader.candidates(parameters).providers
            except exceptions.RequestRejected:
                # A part may not be a query, for example without resources.
                return nodes

        # The whole queries take longest and start first.
        answers = self._each(
            lambda part: self._reader.candidates(part[0].parameters(part[1])),
            whole)
        # Placement may cut the response to a part, and then the whole is not
        # within it.
        whole_ones = _union(one.providers for one in answers)
        found = iter(self._each(ask, flat))
        passed = [
            nodes & (whole_ones | _union(
                next(found) for part in parts if part[1]))
            for parts in asked]
        return Funnel(nodes & roots.keys(), queries[0].conditions,
                      _shrinking(passed), answers, plain)


def prefixes(queries: Sequence[query.Query]
             ) -> list[list[list[explanation.Condition]]]:
    """List the parts of each query to ask, for each condition of the first.

    The conditions that only another query has replace those that only the
    first has, as soon as any of these is asked.
    """
    first = queries[0].conditions
    found = []
    for count in range(1, len(first) + 1):
        some = list(first[:count])
        parts = [some]
        for other in queries[1:]:
            own = [one for one in other.conditions if one not in first]
            replaced = any(one not in other.conditions for one in some)
            parts.append([one for one in other.conditions
                          if one in some or (replaced and one in own)])
        found.append(parts)
    return found


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _shrinking(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Intersect each set with those before it.

    Placement may change between two queries.
    """
    found: list[frozenset[str]] = []
    for one in sets:
        found.append(one & found[-1] if found else one)
    return found
