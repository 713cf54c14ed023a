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
    """Pairs of aggregates with a key and a host in common."""


class MetadataSource:
    """Nova's own API database; each read is a new transaction."""

    def read(self, keys: Keys, paired: Keys = Keys(),
             texts: Iterable[str] = ()) -> Found:
        """Read aggregates with their values of ``keys``, in one statement.

        :param paired: those of the keys by which pairs are looked for; of
            each pair one aggregate has a text in a value, the other any value
        :param texts: pairs without any of them may be missing
        :raises NovaUnavailable: when the database cannot be read
        """
        found: dict[str, dict[str, str]] = {}
        together = set()
        patterns = {'text%d' % number: '%%%s%%' % text for number, text
                    in enumerate(sorted(set(map(_comparable, texts))))}
        with database.reading() as api:
            rows = api.execute(
                _statement(keys, paired, tuple(patterns)), patterns).all()
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


def _comparable(text: str) -> str:
    """The text, or nothing where a database may refuse to look for it."""
    plain = text.isascii() and text.isprintable() and '\\' not in text
    return text if plain else ''


# Making a statement takes longer than running it, and the keys are few.
@functools.lru_cache(maxsize=256)
def _statement(keys: Keys, paired: Keys, texts: tuple[str, ...]) -> Any:
    values = sa.select(
        _AGGREGATE.uuid, _METADATA.key, _METADATA.value,
        sa.null().label('other')).join_from(
            tables.aggregates, tables.aggregate_metadata,
            _METADATA.aggregate_id == _AGGREGATE.id).where(
                _one_of(_METADATA.key, keys))
    if not texts:
        return values
    return sa.union_all(values, *(
        _pairs(kind, texts) for kind in (
            Keys(names=paired.names), Keys(prefixes=paired.prefixes))
        if kind))


def _pairs(keys: Keys, texts: tuple[str, ...]) -> Any:
    """Aggregates with a text, and all that have a key and a host with them.

    The few with a text come first: most hosts are in none of them.
    """
    other, said = tables.aggregates.alias(), tables.aggregate_metadata.alias()
    member = tables.aggregate_hosts.alias()
    same = (said.c.key == _METADATA.key if keys.names
            else _one_of(said.c.key, keys))
    return sa.select(
        _AGGREGATE.uuid, sa.null(), sa.null(), other.c.uuid).distinct(
    ).join_from(
        tables.aggregate_metadata, tables.aggregates,
        _AGGREGATE.id == _METADATA.aggregate_id,
    ).join(
        tables.aggregate_hosts, _MEMBER.aggregate_id == _AGGREGATE.id,
    ).join(
        member, sa.and_(member.c.host == _MEMBER.host,
                        member.c.aggregate_id != _MEMBER.aggregate_id),
    ).join(
        said, sa.and_(said.c.aggregate_id == member.c.aggregate_id, same),
    ).join(
        other, other.c.id == member.c.aggregate_id,
    ).where(
        _one_of(_METADATA.key, keys),
        # An underscore or a percent sign only finds more.
        sa.or_(*(_METADATA.value.like(sa.bindparam(text))
                 for text in texts)))


def _one_of(column: Any, keys: Keys) -> Any:
    beginnings = [column.startswith(prefix, autoescape=True)
                  for prefix in sorted(keys.prefixes)]
    named = [column.in_(sorted(keys.names))] if keys.names else []
    return sa.or_(*named, *beginnings)
