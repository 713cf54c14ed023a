# SPDX-License-Identifier: Apache-2.0
"""Metadata of host aggregates: of some keys in one query, or all of it."""

from collections import abc
import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import dates
from nova_aggregate_mirror.limits import engines
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
_OTHER = statements.aggregate_hosts.alias()
_PAIRS = sa.select(
    _MEMBER.aggregate_id, _OTHER.c.aggregate_id.label('other_id'),
).distinct().where(
    _MEMBER.aggregate_id.in_(engines.SOME), _OTHER.c.host == _MEMBER.host,
    _OTHER.c.aggregate_id != _MEMBER.aggregate_id)


class MetadataSource:
    """Nova's API database; ``NovaUnavailable`` when it cannot be read."""

    def __init__(self) -> None:
        self._api = connections.api_database()

    def read(self, keys: Keys) -> abc.Mapping[str, abc.Mapping[str, str]]:
        """Read the aggregates that have any of the keys, with their values."""
        metadata: dict[str, dict[str, str]] = {}
        with self._api.reading() as api:
            for number, uuid, key, value in api.execute(_statement(keys)):
                # MySQL's collation ignores case, nova's filters do not.
                if key in keys:
                    aggregate = keyed_aggregates.key_of(number, uuid)
                    metadata.setdefault(aggregate, {})[key] = value
        return metadata

    def overlaps(self, aggregates: abc.Collection[str]
                 ) -> frozenset[frozenset[str]]:
        """Pair each of the aggregates with all others that share a host."""
        with self._api.reading() as api:
            keys = {number: keyed_aggregates.key_of(number, uuid)
                    for number, uuid, _name
                    in api.execute(statements.AGGREGATES)}
            numbers = [number for number, key in keys.items()
                       if key in aggregates]
            pairs = api.execute(_PAIRS, {'some': numbers}).all()
        # No rule is about an aggregate that was created meanwhile.
        return frozenset(frozenset({keys[number], keys[other]})
                         for number, other in pairs if other in keys)

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


# Building a statement takes longer than executing it; the keys are few.
@functools.lru_cache(maxsize=256)
def _statement(keys: Keys) -> Any:
    return statements.VALUES.where(_one_of(_METADATA.key, keys))


def _one_of(column: Any, keys: Keys) -> Any:
    beginnings = [column.startswith(prefix, autoescape=True)
                  for prefix in sorted(keys.prefixes)]
    named = [column.in_(sorted(keys.names))] if keys.names else []
    return sa.or_(*named, *beginnings)
