# SPDX-License-Identifier: Apache-2.0
"""Query to placement as conditions, apart and together: pure, no I/O."""

from collections import abc
import dataclasses

RESOURCES, REQUIRED, ROOT = 'resources', 'required', 'root_required'
MEMBER_OF, IN_TREE, SUBTREE = 'member_of', 'in_tree', 'same_subtree'
LIMIT, POLICY = 'limit', 'group_policy'
_ORDER = (RESOURCES, ROOT, REQUIRED, MEMBER_OF, IN_TREE)
TRAITS = REQUIRED, ROOT


@dataclasses.dataclass(frozen=True)
class Origin:
    """The cause of a condition, for example a zone or a flavor."""

    name: str = ''
    zone: bool = False
    """Whether it is an availability zone."""
    step: str = ''
    """What to do if it refuses the request; empty if that is not known."""


TENANT = 'tenant '
ISOLATED = Origin('required traits of the aggregate')
"""Forbids aggregates whose traits a request does not require."""
SEGMENTS = Origin('segments of the networks')
"""Requires the aggregates of a routed network."""
FREE_SEGMENTS = Origin('segments with free addresses', step=(
    'delete ports, or add a subnet to a segment of the network'))
"""Leaves only some of these aggregates."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition: a parameter of ``GET /allocation_candidates``."""

    key: str
    value: str
    origin: Origin = Origin()

    def __str__(self) -> str:
        return '%s=%s' % (self.key, self.value)

    @property
    def kind(self) -> str:
        """The parameter, without the suffix of a group."""
        return next(filter(self.key.startswith, _ORDER), self.key)

    @property
    def group(self) -> str:
        """The suffix of the group; empty if there is none."""
        return self.key.removeprefix(self.kind)

    @property
    def forbids(self) -> bool:
        """Check whether it forbids a trait, or aggregates."""
        return self.value.startswith('!')

    @property
    def names(self) -> list[str]:
        """The traits or UUIDs."""
        return self.value.removeprefix('!').removeprefix('in:').split(',')

    @property
    def amounts(self) -> abc.Mapping[str, int]:
        """The amounts of resources, by class."""
        amounts = (part.split(':') for part in self.value.split(',') if part)
        return {name: int(amount) for name, amount in amounts}


@dataclasses.dataclass(frozen=True)
class PlacementQuery:
    """A query to placement, as conditions in the order in which to add them.

    Resources come first, because placement requires them, then traits,
    aggregates and the provider; numbered groups follow in this order each.
    """

    conditions: tuple[Condition, ...]
    policy: str = ''
    """``group_policy``, required as soon as there are two numbered groups."""
    limit: int | None = None

    def parameters(self, conditions: abc.Sequence[Condition] | None = None
                   ) -> list[tuple[str, str]]:
        """Return the parameters of a query, without its limit."""
        conditions = self.conditions if conditions is None else conditions
        lists: dict[str, list[str]] = {}
        pairs = []
        for condition in conditions:
            # These have a list of values that must all be met.
            if condition.kind in (RESOURCES, *TRAITS):
                lists.setdefault(condition.key, []).append(condition.value)
            else:
                pairs.append((condition.key, condition.value))
        groups = {condition.group for condition in conditions} - {''}
        if self.policy and len(groups) > 1:
            pairs.append((POLICY, self.policy))
        joined = [(key, ','.join(values)) for key, values in lists.items()]
        return joined + pairs

    @property
    def plain(self) -> bool:
        """Check whether the query has no numbered group."""
        return all(condition.kind in _ORDER and not condition.group
                   for condition in self.conditions)


Queries = abc.Sequence[PlacementQuery]


def parse(parameters: abc.Sequence[tuple[str, str]],
          find_origin: abc.Callable[[Condition], Origin] = lambda _: Origin()
          ) -> PlacementQuery:
    """Split the parameters of a query into conditions, each of one origin."""
    options, conditions = dict(parameters), list[Condition]()
    for key, value in parameters:
        if key in (LIMIT, POLICY):
            continue
        whole, parts = Condition(key, value), [value]
        # Not resources of a numbered group: one provider has to have all.
        if whole.kind in TRAITS or key == RESOURCES:
            parts = value.split(',')
        elif whole.kind == MEMBER_OF and whole.forbids:
            forbidden: dict[Origin, list[str]] = {}
            for name in whole.names:
                origin = find_origin(Condition(key, '!' + name))
                forbidden.setdefault(origin, []).append(name)
            parts = ['!in:' + ','.join(names) for names in forbidden.values()]
        conditions += [Condition(key, part, find_origin(Condition(key, part)))
                       for part in parts]
    conditions.sort(key=_rank)
    limit = int(options[LIMIT]) if LIMIT in options else None
    return PlacementQuery(tuple(conditions), options.get(POLICY, ''), limit)


def alternatives(queries: Queries, part: abc.Sequence[Condition]
                 ) -> abc.Iterator[abc.Sequence[Condition]]:
    """Return the parts of queries to ask, for a part of the first one.

    The conditions that only another query has replace those that only the
    first has, as soon as any of these is asked.
    """
    yield part
    first = queries[0].conditions
    for query in queries[1:]:
        if not set(part).issubset(query.conditions):
            yield [condition for condition in query.conditions
                   if condition in part or condition not in first]


def _rank(condition: Condition) -> tuple[bool | str | int, ...]:
    kind, origin = condition.kind, condition.origin
    position = _ORDER.index(kind) if kind in _ORDER else 0
    # Placement rejects a subtree of groups that the query does not have. The
    # UUIDs of a cloud do not decide which of two aggregates is named.
    return (kind == SUBTREE, bool(condition.group), condition.group, position,
            not origin.zone, not origin.name.startswith(TENANT), origin.name)
