# SPDX-License-Identifier: Apache-2.0
"""Nova's filters on aggregate metadata, as rules: pure, no I/O."""

from collections import abc
from typing import Protocol

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror import source

Keys = source.Keys
Match = abc.Callable[[str, str], bool]
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
        """Return the texts that the values of matching aggregates contain.

        Empty if a host in no restricting aggregate does not pass. Otherwise
        the query can include fewer conditions where a host is in both kinds
        of aggregates, by the same key or by keys with the same prefix.
        """

    def rules(self, request: constraints.ServerRequest,
              metadata: Metadata) -> list[Rule]:
        """Return the rules for the host of a request."""


def rules(filters: abc.Iterable[RequestFilter],
          request: constraints.ServerRequest, metadata: Metadata
          ) -> list[Rule]:
    """Return the rules of all these filters for the host of a request."""
    return [rule for request_filter in filters if request_filter.keys(request)
            for rule in request_filter.rules(request, metadata)]


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


def flavor_extra_specs(specs: abc.Mapping[str, str], metadata: Metadata,
                       match: Match) -> list[Rule]:
    """AggregateInstanceExtraSpecsFilter: each key in a matching aggregate.

    :param match: nova's comparison of a value with an extra spec
    """
    return [
        Rule("the flavor's extra spec %s" % name, _having(
            metadata, lambda values: any(
                _matches(match, value, specs[name])
                for value in _values(values, key))), required=True,
             keys=Keys(frozenset({key})))
        for name, key in sorted(extra_spec_keys(specs).items())]


def tenant_isolation(project: str | None, metadata: Metadata,
                     suffixes: bool) -> list[Rule]:
    """AggregateMultiTenancyIsolation: no host of other tenants.

    :param suffixes: whether keys that only start with ``filter_tenant_id``
        isolate too, as they do from nova 30 on
    """
    return [Rule(
        'tenant %s' % project,
        _having(metadata, lambda values: project in _tenants(
            values, suffixes)),
        _having(metadata, lambda values: bool(_tenants(values, suffixes))),
        keys=TENANT_KEYS)]


def value_rule(subject: str, key: str, value: str, metadata: Metadata) -> Rule:
    """Require a value among those of a key, where an aggregate has the key.

    Like AggregateImagePropertiesIsolation, AggregateTypeAffinityFilter and,
    for the zone of hosts without a zone, AvailabilityZoneFilter.
    """
    return Rule(subject,
                _having(metadata, lambda values: value in _values(
                    values, key)),
                _having(metadata, lambda values: key in values),
                keys=Keys(frozenset({key})))


def _having(metadata: Metadata,
            holds: abc.Callable[[abc.Mapping[str, str]], bool]
            ) -> frozenset[str]:
    return frozenset(uuid for uuid, values in metadata.items()
                     if holds(values))


def _values(metadata: abc.Mapping[str, str], key: str) -> frozenset[str]:
    if key not in metadata:
        return frozenset()
    return frozenset(value.strip() for value in metadata[key].split(','))


def _tenants(metadata: abc.Mapping[str, str],
             suffixes: bool) -> frozenset[str]:
    return frozenset(
        value for key in metadata
        if key == TENANT or (suffixes and key in TENANT_KEYS)
        for value in _values(metadata, key))


def _matches(match: Match, value: str, requested: str) -> bool:
    try:
        return match(value, requested)
    except (ValueError, IndexError):
        # Text where a number is compared, or an operator without its operand:
        # nova's filter would fail the whole request.
        return False
