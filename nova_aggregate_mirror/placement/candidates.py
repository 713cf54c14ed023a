# SPDX-License-Identifier: Apache-2.0
"""Read which providers meet the conditions of a query, and their figures."""

from collections import abc
import dataclasses
from typing import Any
import urllib.parse

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client

Parameters = abc.Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The response to ``GET /allocation_candidates``."""

    requests: abc.Sequence[abc.Mapping[str, Any]] = ()
    summaries: abc.Mapping[str, abc.Mapping[str, Any]] = dataclasses.field(
        default_factory=dict)

    @property
    def providers(self) -> frozenset[str]:
        """Every provider of a tree that has a candidate."""
        return frozenset(self.summaries)


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

    def candidates(self, parameters: Parameters) -> Candidates:
        """Read the allocation candidates of a query.

        :raises RequestRejected: placement does not accept the query
        """
        call, answer = self._placement.call(
            'GET', '/allocation_candidates?' + _encoded(parameters))
        requests = answer.get('allocation_requests')
        summaries = answer.get('provider_summaries')
        if not isinstance(requests, list) or not isinstance(summaries, dict):
            raise call.malformed('no allocation candidates')
        return Candidates(requests, summaries)

    def providers(self, parameters: Parameters) -> frozenset[str]:
        """Read the UUIDs of the providers that alone meet the conditions."""
        return frozenset(self.trees(parameters))

    def trees(self, parameters: Parameters = ()) -> abc.Mapping[str, str]:
        """Read the same providers: UUIDs to the UUIDs of their roots."""
        call, answer = self._placement.call(
            'GET', '/resource_providers' + (
                '?' + _encoded(parameters) if parameters else ''))
        try:
            return {provider['uuid']: provider['root_provider_uuid']
                    for provider in answer['resource_providers']}
        except (LookupError, TypeError) as exc:
            raise call.malformed('no list of providers') from exc

    def inventories(self, provider: str) -> abc.Mapping[str, Inventory]:
        """Read the inventories and usages of a provider, by class."""
        path = '/resource_providers/%s/' % provider
        call, answer = self._placement.call(
            'GET', path + 'inventories', provider)
        _call, usage = self._placement.call('GET', path + 'usages', provider)
        try:
            return {name: Inventory(
                record['total'], record['reserved'],
                record['allocation_ratio'], usage['usages'][name],
                record['min_unit'], record['max_unit'], record['step_size'],
                provider)
                for name, record in answer['inventories'].items()
                # A class may have been added between the requests.
                if name in usage['usages']}
        except (LookupError, TypeError, AttributeError) as exc:
            raise call.malformed('no inventories') from exc

    def allocations(self, provider: str
                    ) -> abc.Mapping[str, abc.Mapping[str, int]]:
        """Read what a provider has allocated: consumer to amounts by class.

        Empty if the provider does not exist.
        """
        try:
            call, answer = self._placement.call(
                'GET', '/resource_providers/%s/allocations' % provider,
                provider)
        except exceptions.ProviderNotFound:
            return {}
        try:
            return {consumer: allocation['resources'] for consumer, allocation
                    in answer['allocations'].items()}
        except (LookupError, TypeError, AttributeError) as exc:
            raise call.malformed('no allocations') from exc

    def traits(self, consumer: str) -> abc.Mapping[str, frozenset[str]]:
        """Read the traits of each provider that a consumer uses."""
        call, answer = self._placement.call('GET', '/allocations/' + consumer)
        traits = {}
        try:
            for provider in answer['allocations']:
                call, own = self._placement.call(
                    'GET', '/resource_providers/%s/traits' % provider)
                traits[provider] = frozenset(own['traits'])
        except (LookupError, TypeError) as exc:
            raise call.malformed('no allocations or traits') from exc
        return traits


def _encoded(parameters: Parameters) -> str:
    return urllib.parse.urlencode(parameters, safe=':,!')
