# SPDX-License-Identifier: Apache-2.0
"""Metadata of host aggregates, restricted to some keys, in one query."""

from collections import abc
import dataclasses
import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import metadata_keys
from nova_aggregate_mirror.source import tables

Keys = metadata_keys.Keys
_METADATA = tables.aggregate_metadata.c
_AGGREGATE, _MEMBER = tables.aggregates.c, tables.aggregate_hosts.c
_KNOWN = sa.select(_AGGREGATE.uuid).where(
    _AGGREGATE.uuid.in_(engines.SOME))


@dataclasses.dataclass(frozen=True)
class MatchingAggregates:
    """Aggregates that have any of the requested keys."""

    metadata: abc.Mapping[str, abc.Mapping[str, str]]
    """Aggregate UUID to the requested keys and their values."""

    together: frozenset[frozenset[str]]
    """Pairs of aggregates with a key and a host in common."""


class MetadataSource:
    """Nova's API database; each read is a new transaction.

    Each method raises ``NovaUnavailable`` when it cannot be read.
    """

    def __init__(self) -> None:
        self._api = connections.ApiDatabase()

    def read(self, keys: Keys, paired: Keys = Keys(),
             texts: abc.Iterable[str] = ()) -> MatchingAggregates:
        """Read aggregates and their values of ``keys``, in one statement.

        :param paired: the keys for which to find pairs: one aggregate of a
            pair has a value that contains a text, the other has any value
        :param texts: texts to find; pairs without any of them may be missing
        """
        metadata: dict[str, dict[str, str]] = {}
        together = set()
        patterns = {'text%d' % number: '%%%s%%' % text for number, text
                    in enumerate(sorted(set(map(_comparable, texts))))}
        with self._api.reading() as api:
            rows = api.execute(
                _statement(keys, paired, tuple(patterns)), patterns).all()
        for uuid, key, value, other in rows:
            if other is not None:
                together.add(frozenset({uuid, other}))
            # MySQL's collation ignores case, nova's filters do not.
            elif key in keys:
                metadata.setdefault(uuid, {})[key] = value
        return MatchingAggregates(metadata, frozenset(together))

    def known(self, uuids: abc.Iterable[str]) -> frozenset[str]:
        """Return those of the UUIDs that are host aggregates of nova."""
        with self._api.reading() as api:
            return frozenset(api.scalars(_KNOWN, {'some': sorted(uuids)}))


def _comparable(text: str) -> str:
    """Return the text, or an empty text if LIKE may not support it."""
    plain = text.isascii() and text.isprintable() and '\\' not in text
    return text if plain else ''


# Building a statement takes longer than executing it; the keys are few.
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
    """Select pairs: an aggregate with a text, and one sharing key and host.

    The join starts at the few aggregates with a text: most hosts are not in
    any of them.
    """
    other = tables.aggregates.alias()
    shared = tables.aggregate_metadata.alias()
    member = tables.aggregate_hosts.alias()
    same = (shared.c.key == _METADATA.key if keys.names
            else _one_of(shared.c.key, keys))
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
        shared, sa.and_(shared.c.aggregate_id == member.c.aggregate_id, same),
    ).join(
        other, other.c.id == member.c.aggregate_id,
    ).where(
        _one_of(_METADATA.key, keys),
        # An unescaped underscore or percent sign only matches more.
        sa.or_(*(_METADATA.value.like(sa.bindparam(text))
                 for text in texts)))


def _one_of(column: Any, keys: Keys) -> Any:
    beginnings = [column.startswith(prefix, autoescape=True)
                  for prefix in sorted(keys.prefixes)]
    named = [column.in_(sorted(keys.names))] if keys.names else []
    return sa.or_(*named, *beginnings)
