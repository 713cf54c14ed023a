# SPDX-License-Identifier: Apache-2.0
"""Rules on the aggregates of a host, as in nova's host filters, and the query.

The same rules build the query to placement and check a single host, so that
both agree. Pure, no I/O.
"""

import bisect
from collections import abc
import dataclasses
from typing import Protocol
from urllib import parse

from nova_aggregate_mirror.source import keyed_aggregates

Metadata = abc.Mapping[str, abc.Mapping[str, str]]
"""Aggregate UUID to its metadata."""
_SCOPE = 'aggregate_instance_extra_specs'
TENANT = 'filter_tenant_id'
FLAVOR = 'instance_type'
ZONE = 'availability_zone'
TENANT_KEYS = keyed_aggregates.Keys(prefixes=frozenset({TENANT}))


class Unsatisfiable(Exception):
    """No host can meet a requirement of the request, named in the text."""


@dataclasses.dataclass(frozen=True)
class ServerRequest:
    """The fields of a server request that aggregate metadata can restrict.

    ``image`` has the image properties that are not empty or false, as text.
    ``zone`` is empty when the request has no availability zone. Only an audit
    uses ``names_host``: whether the request forces a host or node.
    """

    project: str | None
    flavor: str
    extra_specs: abc.Mapping[str, str] = dataclasses.field(hash=False)
    image: abc.Mapping[str, str] = dataclasses.field(hash=False)
    zone: str
    names_host: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """A condition on the aggregates of a host.

    A host passes if it is in a matching aggregate or in no restricting
    aggregate. It passes a ``required`` rule in a matching aggregate only.
    """

    subject: str
    """What the condition is for, such as ``tenant X``."""
    matching: frozenset[str]
    restricting: frozenset[str] = frozenset()
    required: bool = False
    keys: keyed_aggregates.Keys = keyed_aggregates.Keys()
    """The metadata keys that it depends on."""

    def passes(self, aggregates: abc.Set[str]) -> bool:
        """Check whether a host in exactly these aggregates passes."""
        if not self.matching.isdisjoint(aggregates):
            return True
        return not self.required and self.restricting.isdisjoint(aggregates)

    @property
    def conditions(self) -> frozenset[str | frozenset[str]]:
        """The set of required aggregates, and each aggregate to forbid."""
        required = [self.matching] if self.required else []
        return frozenset([*required, *(self.restricting - self.matching)])


class RequestFilter(Protocol):
    """Interface of a plugin that turns aggregate metadata into rules.

    A request for which ``keys`` is empty is not affected. ``rules`` gets the
    metadata of all aggregates that have any of the keys, or of the aggregates
    of one host, and must not depend on which.
    """

    on_rebuild: bool = False
    """Whether the rules also apply to a rebuild, which stays on its host."""

    def keys(self, request: ServerRequest) -> keyed_aggregates.Keys:
        """Return the metadata keys that affect a request."""

    def rules(self, request: ServerRequest, metadata: Metadata) -> list[Rule]:
        """Return the rules for the host of a request."""


def rules(filters: abc.Iterable[RequestFilter],
          request: ServerRequest, metadata: Metadata) -> list[Rule]:
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
    return Rule(subject, matching, restricting,
                keys=keyed_aggregates.Keys(frozenset({key})))


def aggregates_with(metadata: Metadata,
                    condition: abc.Callable[[abc.Mapping[str, str]], object]
                    ) -> frozenset[str]:
    return frozenset(uuid for uuid, aggregate in metadata.items()
                     if condition(aggregate))


def values(aggregate: abc.Mapping[str, str], key: str) -> frozenset[str]:
    """Split the value of a metadata key at commas, as nova's filters do."""
    if key not in aggregate:
        return frozenset()
    return frozenset(value.strip() for value in aggregate[key].split(','))


@dataclasses.dataclass(frozen=True)
class MemberOf:
    """The conditions of a query to placement on the aggregates of a host.

    It must be in one of each set in ``required``, in none of ``forbidden``.
    """

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()

    def size(self) -> int:
        """Return the number of bytes in the URL."""
        groups = ['in:' + ','.join(group) for group in self.required]
        if self.forbidden:
            groups.append('!in:' + ','.join(self.forbidden))
        return len(parse.urlencode({'member_of': groups}, doseq=True))

    def __or__(self, other: 'MemberOf') -> 'MemberOf':
        return MemberOf(self.required + other.required,
                        self.forbidden | other.forbidden)


def narrow(rules: list[Rule], overlaps: abc.Collection[frozenset[str]],
           query: MemberOf, budget: int) -> tuple[MemberOf, int]:
    """Express the rules as conditions of one query, as far as possible.

    A host that passes every rule is never excluded: no query can express "in
    this aggregate or not in that one", or name an aggregate without a UUID.

    :param overlaps: pairs of aggregates that share a host
    :param budget: bytes that all conditions may take in the URL
    :returns: the conditions to add, and the number that did not fit
    :raises Unsatisfiable: when no aggregate matches a required rule
    """
    added, left_out = MemberOf(), 0
    for group in _required(rules, query):
        extended = added | MemberOf(required=(group,))
        if (query | extended).size() <= budget:
            added = extended
        else:
            left_out += 1
    forbidden = sorted(_forbidden(rules, overlaps) - query.forbidden)

    def forbidding(count: int) -> MemberOf:
        return added | MemberOf(forbidden=frozenset(forbidden[:count]))

    fitting = bisect.bisect_right(
        range(1, len(forbidden) + 1), budget,
        key=lambda count: (query | forbidding(count)).size())
    return forbidding(fitting), left_out + len(forbidden) - fitting


def _required(rules: list[Rule], query: MemberOf) -> list[frozenset[str]]:
    """List the sets that no other set implies, the smallest first."""
    for rule in rules:
        if rule.required and not rule.matching:
            raise Unsatisfiable('no host aggregate matches %s' % rule.subject)
    groups: list[frozenset[str]] = []
    # The smaller a set is, the more it narrows the query per byte.
    for group in sorted({rule.matching for rule in rules if rule.required},
                        key=lambda group: (len(group), sorted(group))):
        if all(map(keyed_aggregates.has_uuid, group)) and not any(
                group >= other for other in (*query.required, *groups)):
            groups.append(group)
    return groups


def _forbidden(rules: abc.Collection[Rule],
               overlaps: abc.Collection[frozenset[str]]) -> frozenset[str]:
    """Return the restricting aggregates that a query may forbid."""
    forbidden: set[str] = set()
    for rule in rules:
        for uuid in filter(keyed_aggregates.has_uuid,
                           rule.restricting - rule.matching):
            pairs = (frozenset({uuid, other}) for other in rule.matching)
            if not any(pair in overlaps for pair in pairs):
                forbidden.add(uuid)
    return frozenset(forbidden)
