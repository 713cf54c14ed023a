# SPDX-License-Identifier: Apache-2.0
"""Read which providers meet the conditions of a query, and their figures."""

from collections import abc
import dataclasses
from typing import Any
from typing import TypeVar
import urllib.parse

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.placement import client

Document = dict[str, Any]
Parameters = abc.Sequence[tuple[str, str]]
Result = TypeVar('Result')


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
    having: dict[str, list[Any]] = {}
    for request in requests:
        for provider in request['allocations']:
            having.setdefault(provider, []).append(request)
    return having


@dataclasses.dataclass(frozen=True)
class Inventory:
    """Inventory of a resource class of a provider, and its usage."""

    total: int
    reserved: int
    ratio: float
    used: int
    min_unit: int
    max_unit: int
    step_size: int
    provider: str

    @property
    def usable(self) -> int:
        """The amount that placement allocates in all."""
        return max(0, int((self.total - self.reserved) * self.ratio))

    @property
    def free(self) -> int:
        """The amount that is not allocated; one server may get less."""
        return max(0, self.usable - self.used)


class CandidateReader:
    """Reader that sends queries of nova-scheduler, or variants of them."""

    def __init__(self, placement: client.Client) -> None:
        self._placement = placement

    def candidates(self, parameters: Parameters, limit: int | None = None
                   ) -> Candidates:
        """Read all allocation candidates of a query.

        :param limit: how many of them nova takes
        :raises RequestRejected: placement does not accept the query
        """
        # Each operation fails for a value of another type.
        return self._read('/allocation_candidates', lambda answer: Candidates(
            [] + answer['allocation_requests'],
            {**answer['provider_summaries']}, limit), parameters=parameters)

    def trees(self, parameters: Parameters = ()) -> abc.Mapping[str, str]:
        """Read UUIDs: provider that alone meets conditions to its root."""
        return self._read('/resource_providers', lambda answer: {
            provider['uuid']: provider['root_provider_uuid']
            for provider in answer['resource_providers']},
            parameters=parameters)

    def inventories(self, provider: str) -> abc.Mapping[str, Inventory]:
        """Read the inventories and usages of a provider, by class."""
        path = '/resource_providers/%s/' % provider
        used = self._read(
            path + 'usages', lambda answer: answer['usages'], provider)

        def parse(answer: Document) -> abc.Mapping[str, Inventory]:
            # A class may have been added between the requests.
            return {name: Inventory(
                record['total'], record['reserved'],
                record['allocation_ratio'], used[name], record['min_unit'],
                record['max_unit'], record['step_size'], provider)
                for name, record in answer['inventories'].items()
                if name in used}

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
              provider: str | None = None, parameters: Parameters = ()
              ) -> Result:
        """Send a GET, and parse its answer."""
        if parameters:
            path += '?' + urllib.parse.urlencode(parameters, safe=':,!')

        def checked(call: errors.Call, answer: Document) -> Result:
            try:
                return parse(answer)
            except (LookupError, TypeError, ValueError, AttributeError) as exc:
                raise call.malformed('an answer of another form') from exc

        return self._placement.read(path, checked, provider)
