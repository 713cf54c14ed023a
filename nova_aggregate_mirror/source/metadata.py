# SPDX-License-Identifier: Apache-2.0
"""What host aggregates say of some keys, read by one narrow query."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import tables

_METADATA = tables.aggregate_metadata.c
_AGGREGATE, _MEMBER = tables.aggregates.c, tables.aggregate_hosts.c
_KNOWN = sa.select(_AGGREGATE.uuid).where(
    _AGGREGATE.uuid.in_(sa.bindparam('some', expanding=True)))


@dataclasses.dataclass(frozen=True)
class Keys:
    """Keys of metadata, by their names and by what they begin with."""

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __or__(self, other: 'Keys') -> 'Keys':
        return Keys(self.names | other.names, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.names or self.prefixes)

    def __contains__(self, key: str) -> bool:
        return key in self.names or key.startswith(tuple(self.prefixes))


@dataclasses.dataclass(frozen=True)
class Found:
    """The aggregates that have any of the keys that were asked for."""

    metadata: Mapping[str, Mapping[str, str]]
    """Aggregate UUID to those of its keys."""

    together: frozenset[frozenset[str]]
    """Pairs of aggregates that have a host in common."""


class MetadataSource:
    """Nova's own API database; each read is a new transaction."""

    def read(self, keys: Keys, paired: Keys = Keys()) -> Found:
        """Read aggregates with their values of ``keys``, in one statement.

        :param paired: those of the keys by which pairs are looked for
        :raises NovaUnavailable: when the database cannot be read
        """
        found: dict[str, dict[str, str]] = {}
        together = set()
        with database.reading() as api:
            rows = api.execute(_statement(keys, paired)).all()
        for uuid, key, value, other in rows:
            if other is not None:
                together.add(frozenset({uuid, other}))
            # MySQL's collation ignores case, nova's filters do not.
            elif key in keys:
                found.setdefault(uuid, {})[key] = value
        return Found(found, frozenset(together))

    def known(self, uuids: Iterable[str]) -> frozenset[str]:
        """Those of the UUIDs that a host aggregate of nova has.

        :raises NovaUnavailable: when the database cannot be read
        """
        with database.reading() as api:
            return frozenset(api.scalars(_KNOWN, {'some': sorted(uuids)}))


# Making a statement takes longer than running it, and the keys are few.
@functools.lru_cache(maxsize=256)
def _statement(keys: Keys, paired: Keys) -> Any:
    values = sa.select(
        _AGGREGATE.uuid, _METADATA.key, _METADATA.value,
        sa.null().label('other')).join_from(
            tables.aggregates, tables.aggregate_metadata,
            _METADATA.aggregate_id == _AGGREGATE.id).where(_one_of(keys))
    if not paired:
        return values
    other = tables.aggregates.alias()
    other_member = tables.aggregate_hosts.alias()
    concerned = sa.select(_METADATA.aggregate_id).where(_one_of(paired))
    pairs = sa.select(
        _AGGREGATE.uuid, sa.null(), sa.null(), other.c.uuid).distinct(
    ).join_from(
        tables.aggregates, tables.aggregate_hosts,
        _MEMBER.aggregate_id == _AGGREGATE.id,
    ).join(
        other_member, sa.and_(
            other_member.c.host == _MEMBER.host,
            other_member.c.aggregate_id > _MEMBER.aggregate_id),
    ).join(
        other, other.c.id == other_member.c.aggregate_id,
    ).where(
        _MEMBER.aggregate_id.in_(concerned),
        other_member.c.aggregate_id.in_(concerned))
    return sa.union_all(values, pairs)


def _one_of(keys: Keys) -> Any:
    beginnings = [_METADATA.key.startswith(prefix, autoescape=True)
                  for prefix in sorted(keys.prefixes)]
    named = [_METADATA.key.in_(sorted(keys.names))] if keys.names else []
    return sa.or_(*named, *beginnings)
