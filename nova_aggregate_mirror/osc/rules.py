# SPDX-License-Identifier: Apache-2.0
"""Rules on aggregate metadata that nova-scheduler may enforce: pure, no I/O.

Nova-api does not show which of them it does enforce.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import itertools
import operator

from nova_aggregate_mirror.explanation import query
from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_rules
from nova_aggregate_mirror import source

RULES: Mapping[str, str] = {
    'default_availability_zone':
        'the request filter default_availability_zone of this package',
    'flavor_extra_specs': 'AggregateInstanceExtraSpecsFilter',
    'image_properties': 'AggregateImagePropertiesIsolation',
    'isolated_aggregates': '[scheduler] enable_isolated_aggregate_filtering',
    'tenant_aggregate': '[scheduler] limit_tenants_to_placement_aggregate',
    'tenant_isolation': 'AggregateMultiTenancyIsolation',
    'type_affinity': 'AggregateTypeAffinityFilter',
}
"""Name to what enforces the rule; five are request filters of this package."""

OF_TENANTS = ('tenant_aggregate', 'tenant_isolation')
"""Rules that need the project of the server."""

BUDGET = 1200
"""Bytes, the default of ``[aggregate_mirror] max_member_of_bytes``."""

_ZONE = 'availability_zone'
_TRAIT, _REQUIRED = 'trait:', 'required'
_COMPARED = ('hw_', 'img_', 'os_')
_OF_NUMBERS = {'=': operator.ge, '>=': operator.ge, '<=': operator.le,
               '==': operator.eq, '!=': operator.ne}
_OF_TEXTS = {'s==': operator.eq, 's!=': operator.ne, 's<': operator.lt,
             's<=': operator.le, 's>': operator.gt, 's>=': operator.ge}


def zone(asked: requested.Requested, metadata: constraints.Metadata
         ) -> frozenset[str]:
    """Return the UUIDs of the aggregates of the requested zone."""
    return frozenset(uuid for uuid, one in metadata.items()
                     if asked.zone and one.get(_ZONE) == asked.zone)


def of(name: str, asked: requested.Requested, metadata: constraints.Metadata
       ) -> list[constraints.Rule]:
    """Return the rules for the host of a request.

    :param name: one of ``RULES``
    """
    flavor = asked.flavor
    if name == 'flavor_extra_specs':
        return filter_rules.flavor_extra_specs(
            flavor.extra_specs, metadata, match)
    if name == 'type_affinity':
        return filter_rules.type_affinity(flavor.name, metadata)
    if name == 'image_properties':
        # Nova ignores properties that it does not know.
        return filter_rules.image_properties({
            key: value for key, value in asked.properties.items()
            if value and key.startswith(_COMPARED)}, metadata)
    if name == 'tenant_isolation':
        return filter_rules.tenant_isolation(
            asked.project, metadata, suffixes=True)
    if name == 'tenant_aggregate':
        return filter_rules.tenant_aggregate(asked.project, metadata)
    if name == 'isolated_aggregates':
        return _isolated(asked.traits, metadata)
    if asked.zone and not zone(asked, metadata):
        return filter_rules.default_zone(asked.zone, metadata)
    return []


def conditions(asked: requested.Requested, rules: list[constraints.Rule],
               metadata: constraints.Metadata, nova: source.Nova
               ) -> list[query.Condition]:
    """Return the conditions of a query for a zone and for rules.

    They are in the order in which nova has them in its query.

    :raises Unsatisfiable: no aggregate matches a required rule
    """
    of_zone = zone(asked, metadata)
    together = {frozenset(pair) for one in nova.members.values()
                for pair in itertools.combinations(one, 2)}
    added, _left_out = constraints.narrow(
        rules, together,
        constraints.Query((of_zone,) if of_zone else ()), BUDGET)
    names = constraints.subjects(rules)
    required = [_within(group, names[group]) for group in added.required]
    if of_zone:
        required.append(_within(of_zone, 'zone %s' % asked.zone))
    by: dict[str, set[str]] = {}
    for uuid in added.forbidden:
        by.setdefault(names[uuid], set()).add(uuid)
    return [*(_without(uuids, name) for name, uuids in sorted(by.items())),
            *sorted(required, key=lambda one: one.value)]


def condition(rule: constraints.Rule) -> query.Condition:
    """Return what a host does not meet that does not pass a rule."""
    return (_within(rule.matching, rule.subject) if rule.required
            else _without(rule.restricting, rule.subject))


def match(value: str, wanted: str) -> bool:
    """Compare metadata with an extra spec, which may have an operator.

    :raises ValueError: a number is required
    """
    name, *operands = wanted.split() or ['']
    if name == '<or>':
        return value in operands[::2]
    if name not in {*_OF_NUMBERS, *_OF_TEXTS, '<in>', '<all-in>'}:
        return value == wanted
    if not operands:
        return False
    if name == '<all-in>':
        return all(one in value for one in operands)
    if name == '<in>':
        return operands[0] in value
    if name in _OF_TEXTS:
        return bool(_OF_TEXTS[name](value, operands[0]))
    return bool(_OF_NUMBERS[name](float(value), float(operands[0])))


def _within(uuids: Iterable[str], asked_by: str) -> query.Condition:
    return query.Condition(
        query.MEMBER_OF, 'in:' + ','.join(sorted(uuids)), asked_by)


def _without(uuids: Iterable[str], asked_by: str) -> query.Condition:
    return query.Condition(
        query.MEMBER_OF, '!in:' + ','.join(sorted(uuids)), asked_by)


def _isolated(traits: frozenset[str], metadata: constraints.Metadata
              ) -> list[constraints.Rule]:
    """Nova's request filter: aggregates for requests with a trait only."""
    isolated = frozenset(uuid for uuid, one in metadata.items() if any(
        key.startswith(_TRAIT) and value == _REQUIRED
        and key.removeprefix(_TRAIT) not in traits
        for key, value in one.items()))
    return [constraints.Rule('requests without the traits of the aggregate',
                             frozenset(), isolated)] if isolated else []
