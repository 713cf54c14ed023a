# SPDX-License-Identifier: Apache-2.0
"""Which hosts aggregate metadata allows for a request: pure, no I/O.

Each function that returns rules implements a host filter of nova. The same
rules build the query to placement and check a single host, so that both agree.
"""

import bisect
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
from urllib import parse

Metadata = Mapping[str, Mapping[str, str]]
"""Aggregate UUID to its metadata."""

Match = Callable[[str, str], bool]

_SCOPE = 'aggregate_instance_extra_specs'
TENANT = 'filter_tenant_id'
FLAVOR = 'instance_type'
ZONE = 'availability_zone'


class Unsatisfiable(Exception):
    """No aggregate meets a requirement of the request, named in the text."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The fields of a server request that aggregate metadata can restrict.

    ``image`` has the image properties that are not empty or false, as text.
    ``zone`` is empty when the request has no availability zone.
    """

    project: str | None
    flavor: str
    extra_specs: Mapping[str, str]
    image: Mapping[str, str]
    zone: str


@dataclasses.dataclass(frozen=True)
class Rule:
    """A condition on the aggregates of a host.

    A host passes if it is in a matching aggregate or in no restricting
    aggregate. It passes a ``required`` rule in a matching aggregate only.
    """

    subject: str
    matching: frozenset[str]
    restricting: frozenset[str] = frozenset()
    required: bool = False

    def passes(self, aggregates: Set[str]) -> bool:
        """Check whether a host in exactly these aggregates passes."""
        if not self.matching.isdisjoint(aggregates):
            return True
        return not self.required and self.restricting.isdisjoint(aggregates)


@dataclasses.dataclass(frozen=True)
class Query:
    """The aggregate conditions of a query to placement (``member_of``).

    A host must be in an aggregate of each set in ``required``, and in no
    aggregate of ``forbidden``.
    """

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()

    def size(self) -> int:
        """Return the number of bytes in the URL."""
        groups = ['in:' + ','.join(group) for group in self.required]
        if self.forbidden:
            groups.append('!in:' + ','.join(self.forbidden))
        return len(parse.urlencode([('member_of', one) for one in groups]))

    def __or__(self, other: 'Query') -> 'Query':
        return Query(self.required + other.required,
                     self.forbidden | other.forbidden)


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
                     always: bool = False) -> list[Rule]:
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


def narrow(rules: Collection[Rule], together: Collection[frozenset[str]],
           asked: Query, budget: int) -> tuple[Query, int]:
    """Express the rules as conditions of one query, as far as possible.

    A host that passes every rule is never excluded. A restricting aggregate
    that shares a host with a matching aggregate is not forbidden, because a
    query cannot express "in this aggregate or not in that aggregate".

    :param together: pairs of aggregates that share a host
    :param asked: conditions that the query already has
    :param budget: bytes that all conditions may take in the URL
    :returns: the conditions to add, and the number that did not fit
    :raises Unsatisfiable: when no aggregate matches a required rule
    """
    added, left_out = Query(), 0
    for group in _required(rules, asked):
        more = added | Query(required=(group,))
        if (asked | more).size() <= budget:
            added = more
        else:
            left_out += 1
    forbidden = sorted(_forbidden(rules, together) - asked.forbidden)

    def first(count: int) -> Query:
        return added | Query(forbidden=frozenset(forbidden[:count]))

    fitting = bisect.bisect_right(
        range(1, len(forbidden) + 1), budget,
        key=lambda count: (asked | first(count)).size())
    return first(fitting), left_out + len(forbidden) - fitting


def subjects(rules: Iterable[Rule]) -> dict[str | frozenset[str], str]:
    """Name the rules behind the conditions of a narrowed query.

    :returns: set of required aggregates, or UUID of a forbidden aggregate, to
        the subject of its rule
    """
    found: dict[str | frozenset[str], str] = {}
    for rule in rules:
        if rule.required:
            found.setdefault(rule.matching, rule.subject)
        for uuid in rule.restricting - rule.matching:
            found.setdefault(uuid, rule.subject)
    return found


def _required(rules: Collection[Rule], asked: Query) -> list[frozenset[str]]:
    """List the sets that other sets do not imply, the smallest first."""
    for rule in rules:
        if rule.required and not rule.matching:
            raise Unsatisfiable('no host aggregate matches %s' % rule.subject)
    found: list[frozenset[str]] = []
    # The smaller a set is, the more it narrows the query per byte.
    for group in sorted({rule.matching for rule in rules if rule.required},
                        key=lambda group: (len(group), sorted(group))):
        if not any(group >= other for other in (*asked.required, *found)):
            found.append(group)
    return found


def _forbidden(rules: Collection[Rule],
               together: Collection[frozenset[str]]) -> frozenset[str]:
    return frozenset(
        uuid for rule in rules for uuid in rule.restricting - rule.matching
        if not any(frozenset({uuid, other}) in together
                   for other in rule.matching))


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
