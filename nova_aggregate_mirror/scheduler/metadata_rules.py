# SPDX-License-Identifier: Apache-2.0
"""Rules of aggregate metadata, as in nova's host filters: pure, no I/O."""

from collections import abc
from typing import Protocol

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates

Keys = keyed_aggregates.Keys
Metadata = constraints.Metadata
Rule = constraints.Rule

_SCOPE = 'aggregate_instance_extra_specs'
TENANT = 'filter_tenant_id'
FLAVOR = 'instance_type'
ZONE = 'availability_zone'
TENANT_KEYS = Keys(prefixes=frozenset({TENANT}))


class RequestFilter(Protocol):
    """Interface of a plugin that turns aggregate metadata into rules.

    A request for which ``keys`` is empty is not affected. ``rules`` gets the
    metadata of all aggregates that have any of the keys, or of the aggregates
    of one host, and must not depend on which.
    """

    on_rebuild: bool
    """Whether the rules also apply to a rebuild, which stays on its host."""

    def keys(self, request: constraints.ServerRequest) -> Keys:
        """Return the metadata keys that affect a request."""

    def texts(self, request: constraints.ServerRequest) -> frozenset[str]:
        """Return texts, one of which each matching aggregate has in a value.

        They find the hosts that are in a matching and in a restricting
        aggregate, by the same key or by keys with the same prefix. Empty if
        the rules are required ones: these have no restricting aggregates.
        """

    def rules(self, request: constraints.ServerRequest,
              metadata: Metadata) -> list[Rule]:
        """Return the rules for the host of a request."""


def rules(filters: abc.Iterable[RequestFilter],
          request: constraints.ServerRequest, metadata: Metadata
          ) -> list[Rule]:
    """Return the rules of all these filters for the host of a request."""
    applicable: list[Rule] = []
    for request_filter in filters:
        if request_filter.keys(request):
            applicable += request_filter.rules(request, metadata)
    return applicable


def extra_spec_keys(specs: abc.Iterable[str]) -> dict[str, str]:
    """Map the extra specs that concern aggregates to their metadata key."""
    keys = {}
    for name in specs:
        scope, colon, key = name.partition(':')
        if not colon:
            keys[name] = name
        elif scope == _SCOPE:
            keys[name] = key
    return keys


def value_rule(subject: str, key: str, value: str, metadata: Metadata) -> Rule:
    """Require a value among those of a key, where an aggregate has the key.

    Like AggregateImagePropertiesIsolation, AggregateTypeAffinityFilter and,
    for the zone of hosts without a zone, AvailabilityZoneFilter.
    """
    matching = aggregates_with(
        metadata, lambda aggregate: value in values(aggregate, key))
    restricting = aggregates_with(metadata, lambda aggregate: key in aggregate)
    return Rule(
        subject, matching, restricting, keys=Keys(frozenset({key})))


def aggregates_with(metadata: Metadata,
                    condition: abc.Callable[[abc.Mapping[str, str]], bool]
                    ) -> frozenset[str]:
    """Return the aggregates for whose metadata a condition holds."""
    return frozenset(uuid for uuid, aggregate in metadata.items()
                     if condition(aggregate))


def values(aggregate: abc.Mapping[str, str], key: str) -> frozenset[str]:
    """Split the value of a metadata key at commas, as nova's filters do."""
    if key not in aggregate:
        return frozenset()
    return frozenset(value.strip() for value in aggregate[key].split(','))
