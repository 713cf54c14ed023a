# SPDX-License-Identifier: Apache-2.0
"""Host aggregates with metadata and members, and since when they have them."""

from collections import abc

import sqlalchemy as sa

from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror.source import tables

_AGGREGATE, _MEMBER = tables.aggregates.c, tables.aggregate_hosts.c
_METADATA = tables.aggregate_metadata.c
_NAMES = sa.select(_AGGREGATE.id, _AGGREGATE.uuid, _AGGREGATE.name)
_MEMBERS = sa.select(_MEMBER.aggregate_id, _MEMBER.host, _MEMBER.created_at)
_VALUES = sa.select(
    _METADATA.aggregate_id, _METADATA.key, _METADATA.value,
    sa.func.coalesce(_METADATA.updated_at, _METADATA.created_at).label(
        'changed_at'))


def read(database: connections.ApiDatabase | None = None,
         hosts: abc.Collection[str] | None = None) -> source.Aggregates:
    """Read every aggregate of nova's API database.

    :param hosts: hosts whose aggregates to read; all by default
    :raises NovaUnavailable: when the database cannot be read
    """
    statement = _MEMBERS if hosts is None else _MEMBERS.where(
        _MEMBER.host.in_(sorted(hosts)))
    with (database or connections.ApiDatabase()).reading() as api:
        rows = api.execute(_NAMES).all()
        uuids = {row.id: row.uuid for row in rows}
        names = {row.uuid: row.name for row in rows}
        members: dict[str, dict[str, source.Since]] = {}
        for row in api.execute(statement):
            if row.aggregate_id in uuids:
                members.setdefault(row.host, {})[uuids[row.aggregate_id]] = (
                    database_servers.epoch(row.created_at))
        metadata: dict[str, dict[str, str]] = {uuid: {} for uuid in names}
        changed: dict[tuple[str, str], source.Since] = {}
        for row in api.execute(_VALUES):
            if row.aggregate_id in uuids:
                uuid = uuids[row.aggregate_id]
                metadata[uuid][row.key] = row.value
                changed[uuid, row.key] = database_servers.epoch(row.changed_at)
    return source.Aggregates(names, metadata, members, changed)
