# SPDX-License-Identifier: Apache-2.0
"""Nova's filters on aggregate metadata, as rules: pure, no I/O."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_aggregate_mirror.scheduler import constraints

Match = Callable[[str, str], bool]
Metadata = constraints.Metadata
Rule = constraints.Rule

GUARD = 'AggregateMembershipFilter'
"""The host filter that checks the rules of all request filters."""
HOST_FILTERS: Mapping[str, str] = {
    'flavor_extra_specs': 'AggregateInstanceExtraSpecsFilter',
    'tenant_isolation': 'AggregateMultiTenancyIsolation',
    'image_properties': 'AggregateImagePropertiesIsolation',
    'type_affinity': 'AggregateTypeAffinityFilter'}
"""Request filters to nova's host filters that check the same rules."""

_SCOPE = 'aggregate_instance_extra_specs'
TENANT = 'filter_tenant_id'
FLAVOR = 'instance_type'
ZONE = 'availability_zone'


def unchecked(filters: Mapping[str, object],
              enabled: Collection[str]) -> list[str]:
    """List the request filters with rules that no host filter checks.

    A query to placement does not suffice: nova's API database may fail while
    it is built, a rule may not fit into it, and a rebuild has none.

    :param filters: plugins by name
    :param enabled: names of the host filters
    """
    return [name for name, plugin in filters.items()
            if hasattr(plugin, 'rules') and GUARD not in enabled
            and HOST_FILTERS.get(name) not in enabled]


def extra_spec_keys(specs: Iterable[str]) -> dict[str, str]:
    """Map the extra specs that concern aggregates to their metadata key."""
    keys = {}
    for name in specs:
        scope, colon, key = name.partition(':')
        if not colon:
            keys[name] = name
        elif scope == _SCOPE:
            keys[name] = key
    return keys


def flavor_extra_specs(specs: Mapping[str, str], metadata: Metadata,
                       match: Match) -> list[Rule]:
    """AggregateInstanceExtraSpecsFilter: each key in a matching aggregate.

    :param match: nova's comparison of a value with an extra spec
    """
    return [
        Rule("the flavor's extra spec %s" % name, _having(
            metadata, lambda one: any(
                _matches(match, value, specs[name])
                for value in _values(one, key))), required=True)
        for name, key in sorted(extra_spec_keys(specs).items())]


def tenant_isolation(project: str | None, metadata: Metadata,
                     suffixes: bool) -> list[Rule]:
    """AggregateMultiTenancyIsolation: no host of other tenants.

    :param suffixes: whether keys that only start with ``filter_tenant_id``
        isolate too, as they do from nova 30 on
    """
    return [Rule(
        'tenant %s' % project,
        _having(metadata, lambda one: project in _tenants(one, suffixes)),
        _having(metadata, lambda one: bool(_tenants(one, suffixes))))]


def tenant_aggregate(project: str | None, metadata: Metadata,
                     always: bool) -> list[Rule]:
    """Nova's request filter: a tenant with aggregates uses only these.

    :param always: whether a tenant without an aggregate may use no host
        (``[scheduler] placement_aggregate_required_for_tenants``)
    """
    matching = _having(metadata, lambda one: any(
        key.startswith(TENANT) and value == project
        for key, value in one.items()))
    return [Rule('tenant %s' % project, matching, required=True)
            ] if matching or always else []


def image_properties(image: Mapping[str, str],
                     metadata: Metadata) -> list[Rule]:
    """AggregateImagePropertiesIsolation: each property among the values."""
    return [_among('the image property %s' % name, name, value, metadata)
            for name, value in sorted(image.items())]


def type_affinity(flavor: str, metadata: Metadata) -> list[Rule]:
    """AggregateTypeAffinityFilter: the flavor's name among the values."""
    return [_among('flavor %s' % flavor, FLAVOR, flavor, metadata)]


def default_zone(zone: str, metadata: Metadata) -> list[Rule]:
    """AvailabilityZoneFilter, for the zone of hosts without a zone."""
    return [_among('zone %s' % zone, ZONE, zone, metadata)]


def _among(subject: str, key: str, value: str, metadata: Metadata) -> Rule:
    return Rule(subject,
                _having(metadata, lambda one: value in _values(one, key)),
                _having(metadata, lambda one: key in one))


def _having(metadata: Metadata,
            holds: Callable[[Mapping[str, str]], bool]) -> frozenset[str]:
    return frozenset(uuid for uuid, one in metadata.items() if holds(one))


def _values(metadata: Mapping[str, str], key: str) -> frozenset[str]:
    if key not in metadata:
        return frozenset()
    return frozenset(value.strip() for value in metadata[key].split(','))


def _tenants(metadata: Mapping[str, str], suffixes: bool) -> frozenset[str]:
    return frozenset(
        value for key in metadata
        if key == TENANT or (suffixes and key.startswith(TENANT))
        for value in _values(metadata, key))


def _matches(match: Match, value: str, wanted: str) -> bool:
    try:
        return match(value, wanted)
    except (ValueError, IndexError):
        # Text where a number is compared, or an operator without its operand:
        # nova's filter would fail the whole request.
        return False
