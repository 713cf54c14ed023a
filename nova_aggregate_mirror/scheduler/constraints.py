# SPDX-License-Identifier: Apache-2.0
"""What host aggregates let a request go where: pure, no I/O.

Each function that makes rules is one of nova's host filters. The same rules
make the query to placement and judge a single host, so that both agree.
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
    """No aggregate has what a request needs; the text says what."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a request for a server says that aggregates may decide on.

    ``image`` has the properties that say something, as text. ``zone`` is empty
    when the request names none.
    """

    project: str | None
    flavor: str
    extra_specs: Mapping[str, str]
    image: Mapping[str, str]
    zone: str


@dataclasses.dataclass(frozen=True)
class Rule:
    """A host passes in a matching aggregate, or in no restricting one.

    A rule that is ``required`` is passed in a matching aggregate only.
    """

    subject: str
    matching: frozenset[str]
    restricting: frozenset[str] = frozenset()
    required: bool = False

    def passes(self, aggregates: Set[str]) -> bool:
        """Whether a host that is in just these aggregates passes."""
        if not self.matching.isdisjoint(aggregates):
            return True
        return not self.required and self.restricting.isdisjoint(aggregates)


@dataclasses.dataclass(frozen=True)
class Query:
    """What a request to placement says about aggregates.

    A host must be in one of each set of ``required`` and in none that is
    ``forbidden``.
    """

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()

    def size(self) -> int:
        """Bytes that this takes in the URL."""
        groups = ['in:' + ','.join(group) for group in self.required]
        if self.forbidden:
            groups.append('!in:' + ','.join(self.forbidden))
        return len(parse.urlencode([('member_of', one) for one in groups]))

    def __or__(self, other: 'Query') -> 'Query':
        return Query(self.required + other.required,
                     self.forbidden | other.forbidden)


def extra_spec_keys(specs: Iterable[str]) -> dict[str, str]:
    """The extra specs that are about aggregates, to their metadata key."""
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

    :param match: nova's own comparison of a value with an extra spec
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

    :param suffixes: whether keys that only begin with ``filter_tenant_id``
        isolate too, as they do from nova 30 on
    """
    return [Rule(
        'tenant %s' % project,
        _having(metadata, lambda one: project in _tenants(one, suffixes)),
        _having(metadata, lambda one: bool(_tenants(one, suffixes))))]


def image_properties(image: Mapping[str, str],
                     metadata: Metadata) -> list[Rule]:
    """AggregateImagePropertiesIsolation: each property among the values."""
    return [_among('the image property %s' % name, name, value, metadata)
            for name, value in sorted(image.items())]


def type_affinity(flavor: str, metadata: Metadata) -> list[Rule]:
    """AggregateTypeAffinityFilter: the flavor's name among the values."""
    return [_among('flavor %s' % flavor, FLAVOR, flavor, metadata)]


def default_zone(zone: str, metadata: Metadata) -> list[Rule]:
    """AvailabilityZoneFilter, for the zone of hosts that are in none."""
    return [_among('zone %s' % zone, ZONE, zone, metadata)]


def narrow(rules: Collection[Rule], together: Collection[frozenset[str]],
           asked: Query, budget: int) -> tuple[Query, int]:
    """Say in one query what it can say of these rules.

    No host is left out that passes every rule. A restricting aggregate that
    has a host in common with a matching one is not forbidden, since no query
    says "in this one or not in that one".

    :param together: pairs of aggregates that have a host in common
    :param asked: what the query says already
    :param budget: bytes that all of it may take in the URL
    :returns: what to add, and how much did not fit
    :raises Unsatisfiable: when no aggregate has what a rule requires
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


def _required(rules: Collection[Rule], asked: Query) -> list[frozenset[str]]:
    """Sets that are not implied by others, the smaller ones first."""
    for rule in rules:
        if rule.required and not rule.matching:
            raise Unsatisfiable('no host aggregate has what %s asks for'
                                % rule.subject)
    found: list[frozenset[str]] = []
    # The fewer aggregates a set has, the more it says in a byte.
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
