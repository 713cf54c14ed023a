# SPDX-License-Identifier: Apache-2.0
"""Metadata of host aggregates: of some keys in one query, or all of it."""

from collections import abc
import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import dates
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import statements

Keys = keyed_aggregates.Keys
# As in ``statements``: a test compares it with nova's model.
flavor_extra_specs = statements.table('flavor_extra_specs', key=sa.String)
_METADATA, _MEMBER = statements.METADATA, statements.MEMBER
_MEMBERS = sa.select(_MEMBER.aggregate_id, _MEMBER.host, _MEMBER.created_at)
_CHANGED = sa.func.coalesce(_METADATA.updated_at, _METADATA.created_at)
_DATED_VALUES = sa.select(_METADATA.aggregate_id, _METADATA.key,
                          _METADATA.value, _CHANGED.label('changed_at'))
_EXTRA_SPECS = sa.select(flavor_extra_specs.c.key)

Matching = tuple[
    abc.Mapping[str, abc.Mapping[str, str]], frozenset[frozenset[str]]]
"""The aggregates that have any of the requested keys, each to these keys and
their values; and pairs of aggregates with a key and a host in common."""


class MetadataSource:
    """Nova's API database; ``NovaUnavailable`` when it cannot be read."""

    def __init__(self) -> None:
        self._api = connections.api_database()

    def read(self, keys: Keys, paired: Keys = Keys(),
             texts: abc.Iterable[str] = ()) -> Matching:
        """Read aggregates and their values of ``keys``, in one statement.

        :param paired: the keys for which to find pairs: one aggregate of a
            pair has a value that contains a text, the other has any value
        :param texts: texts to find; pairs without any of them may be missing
        """
        metadata: dict[str, dict[str, str]] = {}
        overlaps = set()
        patterns = _patterns(texts)
        with self._api.reading() as api:
            rows = api.execute(
                _statement(keys, paired, tuple(patterns)), patterns).all()
        # A row has a key with its value or, for a pair, another aggregate.
        for number, uuid, key, value, other_number, other_uuid in rows:
            aggregate = keyed_aggregates.key_of(number, uuid)
            if other_number is not None:
                other = keyed_aggregates.key_of(other_number, other_uuid)
                overlaps.add(frozenset({aggregate, other}))
            # MySQL's collation ignores case, nova's filters do not.
            elif key in keys:
                metadata.setdefault(aggregate, {})[key] = value
        return metadata, frozenset(overlaps)

    def known(self, uuids: abc.Iterable[str]) -> frozenset[str]:
        """Return those of the UUIDs that are host aggregates of nova."""
        with self._api.reading() as api:
            rows = api.execute(statements.EXISTING, {'some': sorted(uuids)})
            return frozenset(row.uuid for row in rows)


def read_all(database: connections.Pool | None = None,
             hosts: abc.Collection[str] | None = None
             ) -> keyed_aggregates.Aggregates:
    """Read every aggregate of nova's API database.

    :param hosts: hosts whose aggregates to read; all by default
    """
    memberships = _MEMBERS if hosts is None else _MEMBERS.where(
        _MEMBER.host.in_(sorted(hosts)))
    with (database or connections.api_database()).reading() as api:
        rows = api.execute(statements.AGGREGATES).all()
        keys = {row.id: keyed_aggregates.key_of(row.id, row.uuid)
                for row in rows}
        names = {keys[row.id]: row.name or source.UNNAMED for row in rows}
        members: dict[str, dict[str, keyed_aggregates.Since]] = {}
        for row in api.execute(memberships):
            if row.aggregate_id in keys and row.host:
                members.setdefault(row.host, {})[keys[row.aggregate_id]] = (
                    dates.epoch(row.created_at))
        metadata: dict[str, dict[str, str]] = {key: {} for key in names}
        changed: dict[tuple[str, str], keyed_aggregates.Since] = {}
        for row in api.execute(_DATED_VALUES):
            if row.aggregate_id in keys:
                aggregate = keys[row.aggregate_id]
                metadata[aggregate][row.key] = row.value
                changed[aggregate, row.key] = dates.epoch(row.changed_at)
    return keyed_aggregates.Aggregates(names, metadata, members, changed)


def extra_specs() -> frozenset[str]:
    """Read the names of the extra specs that any flavor has."""
    with connections.api_database().reading() as api:
        return frozenset(api.execute(_EXTRA_SPECS).scalars())


def _patterns(texts: abc.Iterable[str]) -> dict[str, str]:
    """Name patterns of LIKE as parameters; a wildcard in one matches more."""
    comparable = sorted({_comparable(text) for text in texts})
    return {'text%d' % number: '%%%s%%' % text
            for number, text in enumerate(comparable)}


def _comparable(text: str) -> str:
    """Return the text; empty, which LIKE always finds, if it might fail."""
    plain = text.isascii() and text.isprintable() and '\\' not in text
    return text if plain else ''


# Building a statement takes longer than executing it; the keys are few.
@functools.lru_cache(maxsize=256)
def _statement(keys: Keys, paired: Keys, parameters: tuple[str, ...]) -> Any:
    values = statements.VALUES.add_columns(sa.null(), sa.null()).where(
        _one_of(_METADATA.key, keys))
    if not parameters:
        return values
    # Two statements, because ``_pairs`` compares only names with each other.
    kinds = Keys(names=paired.names), Keys(prefixes=paired.prefixes)
    pairs = [_pairs(kind, parameters) for kind in kinds if kind]
    return sa.union_all(values, *pairs)


def _pairs(keys: Keys, parameters: tuple[str, ...]) -> Any:
    """Select pairs of aggregates with a host and one of the keys in common."""
    # A value of the first aggregate matches a pattern. These aggregates, which
    # ``VALUES`` selects, are few: the join starts there, not at the hosts.
    first, first_member = statements.AGGREGATE, _MEMBER
    other = statements.aggregates.alias()
    other_member = statements.aggregate_hosts.alias()
    other_metadata = statements.aggregate_metadata.alias()
    key = other_metadata.c.key
    # Keys with a prefix may differ; a name must be the same in both.
    has_key = key == _METADATA.key if keys.names else _one_of(key, keys)
    # A row has the other aggregate in place of a key and its value.
    pairs = statements.VALUES.with_only_columns(
        first.id, first.uuid, sa.null(), sa.null(), other.c.id, other.c.uuid
    ).distinct()
    pairs = pairs.join(
        statements.aggregate_hosts, first_member.aggregate_id == first.id)
    pairs = pairs.join(other_member, sa.and_(
        other_member.c.host == first_member.host,
        other_member.c.aggregate_id != first_member.aggregate_id))
    pairs = pairs.join(other_metadata, sa.and_(
        other_metadata.c.aggregate_id == other_member.c.aggregate_id, has_key))
    pairs = pairs.join(other, other.c.id == other_member.c.aggregate_id)
    # An unescaped underscore or percent sign only matches more.
    matches = map(_METADATA.value.like, map(sa.bindparam, parameters))
    return pairs.where(_one_of(_METADATA.key, keys), sa.or_(*matches))


def _one_of(column: Any, keys: Keys) -> Any:
    beginnings = [column.startswith(prefix, autoescape=True)
                  for prefix in sorted(keys.prefixes)]
    named = [column.in_(sorted(keys.names))] if keys.names else []
    return sa.or_(*named, *beginnings)
