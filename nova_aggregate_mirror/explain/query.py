# SPDX-License-Identifier: Apache-2.0
"""Conditions of a placement query, apart and together: pure, no I/O."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import re

from nova_aggregate_mirror.explain import explanation

RESOURCES, REQUIRED, ROOT = 'resources', 'required', 'root_required'
MEMBER_OF, IN_TREE, SUBTREE = 'member_of', 'in_tree', 'same_subtree'
LIMIT, POLICY = 'limit', 'group_policy'

_ORDER = (RESOURCES, ROOT, REQUIRED, MEMBER_OF, IN_TREE)
_KEY = re.compile('(%s)(.*)' % '|'.join(_ORDER))
# Parameters with a list of values that must all be met.
_LISTS = (RESOURCES, REQUIRED, ROOT)

Condition = explanation.Condition
Parameters = Sequence[tuple[str, str]]


def kind(condition: Condition) -> str:
    """Return the parameter of a condition, without the suffix of a group."""
    found = _KEY.fullmatch(condition.key)
    return found[1] if found else condition.key


def group(condition: Condition) -> str:
    """Return the suffix of the condition's group; empty if it has none."""
    found = _KEY.fullmatch(condition.key)
    return found[2] if found else ''


def forbids(condition: Condition) -> bool:
    """Check whether a condition forbids a trait, or aggregates."""
    return condition.value.startswith('!')


def names(condition: Condition) -> list[str]:
    """Return the traits or UUIDs that a condition names."""
    return condition.value.removeprefix('!').removeprefix('in:').split(',')


def amounts(condition: Condition) -> Mapping[str, int]:
    """Return the amounts of a condition on resources, by class."""
    return {name: int(amount) for name, _colon, amount in (
        one.partition(':') for one in condition.value.split(',') if one)}


@dataclasses.dataclass(frozen=True)
class Query:
    """A query to placement, as conditions in the order in which to add them.

    Resources come first, because placement requires them, then traits,
    aggregates and the provider; numbered groups follow in this order each.
    """

    conditions: tuple[Condition, ...]
    policy: str = ''
    """``group_policy``, required as soon as there are two numbered groups."""
    limit: str = ''

    def parameters(self, conditions: Iterable[Condition] | None = None
                   ) -> Parameters:
        """Return the parameters of a query, without its limit.

        :param conditions: some of its conditions; all by default
        """
        chosen = list(self.conditions if conditions is None else conditions)
        lists: dict[str, list[str]] = {}
        others = []
        for one in chosen:
            if kind(one) in _LISTS:
                lists.setdefault(one.key, []).append(one.value)
            else:
                others.append((one.key, one.value))
        if self.policy and len({group(one) for one in chosen} - {''}) > 1:
            others.append((POLICY, self.policy))
        return [*((key, ','.join(values)) for key, values in lists.items()),
                *others]

    @property
    def plain(self) -> bool:
        """Whether the query has no numbered group."""
        return all(kind(one) in _ORDER and not group(one)
                   for one in self.conditions)


def parse(parameters: Iterable[tuple[str, str]],
          asked_by: Callable[[Condition], str] = lambda one: '') -> Query:
    """Split the parameters of a query into conditions.

    The resources of a numbered group stay together, because one provider has
    to have all of them.

    :param asked_by: returns what has added a condition
    """
    found, limits = [], {LIMIT: '', POLICY: ''}
    for key, value in parameters:
        one = Condition(key, value)
        if key in limits:
            limits[key] = value
        elif kind(one) in _LISTS and not (
                kind(one) == RESOURCES and group(one)):
            found += [Condition(key, item) for item in value.split(',')]
        else:
            found.append(one)
    return Query(
        tuple(dataclasses.replace(one, asked_by=asked_by(one))
              for one in sorted(found, key=_rank)),
        limits[POLICY], limits[LIMIT])


def _rank(condition: Condition) -> tuple[bool, bool, str, int]:
    # Placement rejects a subtree of groups that the query does not have.
    name = kind(condition)
    return (name == SUBTREE, bool(group(condition)), group(condition),
            _ORDER.index(name) if name in _ORDER else 0)


def of_providers(parameters: Parameters) -> Parameters:
    """Translate to ``GET /resource_providers``, which has no root traits.

    The result is the same if no provider has a parent and none is shared.
    """
    traits = [value for key, value in parameters if key in (REQUIRED, ROOT)]
    others = [(key, value) for key, value in parameters
              if key not in (REQUIRED, ROOT)]
    return [*others, *[(REQUIRED, ','.join(traits))] * bool(traits)]
