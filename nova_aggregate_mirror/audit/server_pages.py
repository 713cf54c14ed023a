# SPDX-License-Identifier: Apache-2.0
"""Servers in nova's databases, by page with their requests."""

from collections import abc
import dataclasses
import functools
import json
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import audit
from nova_aggregate_mirror import dates
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database_servers

PAGE = 500
"""Servers per page: bounds memory and the duration of a statement."""
NEWEST = 10000
"""Requests in which a zone is searched: half a second of MariaDB."""

_SERVER, _MIGRATION = (
    database_servers.instances.c, database_servers.migrations.c)
_REQUEST, _MAPPING = (
    database_servers.request_specs.c, database_servers.instance_mappings.c)
_SERVERS = sa.select(
    _SERVER.id, _SERVER.uuid, _SERVER.display_name, _SERVER.host,
    _SERVER.project_id, _SERVER.vm_state, _SERVER.launched_at,
).where(
    *database_servers.EXISTS, _SERVER.host.is_not(None),
    sa.or_(_SERVER.vm_state.is_(None), _SERVER.vm_state != 'soft-delete'),
    # Nova stores the new flavor when it begins to resize a server.
    sa.or_(_SERVER.task_state.is_(None),
           _SERVER.task_state.not_in(audit.MOVING)),
    _SERVER.id > sa.bindparam('after'),
).order_by(_SERVER.id).limit(PAGE)
_MOVES = sa.select(
    _MIGRATION.instance_uuid, _MIGRATION.source_compute,
    _MIGRATION.dest_compute, _MIGRATION.migration_type, _MIGRATION.updated_at,
).where(
    _MIGRATION.deleted == 0, _MIGRATION.instance_uuid.in_(engines.SOME),
    _MIGRATION.status.in_(audit.ARRIVED),
).order_by(_MIGRATION.updated_at, _MIGRATION.id)
_REQUESTS = sa.select(_REQUEST.instance_uuid, _REQUEST.spec).where(
    _REQUEST.instance_uuid.in_(engines.SOME))
_NEWEST = sa.select(_REQUEST.id, _REQUEST.instance_uuid, _REQUEST.spec
                    ).order_by(_REQUEST.id.desc()).limit(NEWEST).subquery()
_EXISTING = sa.select(sa.func.count()).where(
    _MAPPING.instance_uuid.in_(engines.SOME),
    sa.or_(_MAPPING.queued_for_delete.is_(None),
           _MAPPING.queued_for_delete == sa.false()))


@dataclasses.dataclass(frozen=True)
class Page:
    """Some servers of a cell."""

    servers: abc.Sequence[audit.PlacedServer]
    requests: abc.Mapping[str, str]
    """Server UUID to its RequestSpec, as nova stored it; JSON."""


class ServerPages(database_servers.DatabaseServers):
    """The servers of all cells, page by page."""

    def problems(self) -> list[problems.Problem]:
        """List the cells that did not answer so far."""
        return problems.of_cells(
            self.cells_down, 'its other servers are not audited')

    def pages(self, hosts: abc.Collection[str] = (), project: str = ''
              ) -> abc.Iterator[Page]:
        """Read the servers, by cell and in the order of their creation."""
        statement = _SERVERS
        if hosts:
            statement = statement.where(_SERVER.host.in_(sorted(hosts)))
        if project:
            statement = statement.where(_SERVER.project_id == project)
        with self._api.reading() as api:
            existing = self._cells.all(api)
        for cell in existing:
            after, last = 0, False
            while not last:
                after, servers = self._ask(cell, functools.partial(
                    _page, statement=statement, after=after), (after, []))
                last = not servers
                # MySQL compares names of hosts without case.
                servers = [server for server in servers
                           if not hosts or server.host in hosts]
                # Also an empty page, so that the caller can stop.
                uuids = [server.uuid for server in servers]
                yield Page(servers, self._requests(uuids) if uuids else {})

    def _requests(self, servers: abc.Sequence[str]) -> abc.Mapping[str, str]:
        with self._api.reading() as api:
            rows = api.execute(_REQUESTS, {'some': servers}).all()
        return dict(map(tuple, rows))


def count_pinned(zone: str) -> int:
    """Count the existing servers whose stored request names a zone.

    Only the ``NEWEST`` requests are searched.
    """
    # Nova writes the request as JSON, always with the same spaces.
    text = '"availability_zone": %s' % json.dumps(zone)
    # LIKE is fast, and ignores case on MySQL and SQLite; REPLACE does not.
    pinned = sa.select(_NEWEST.c.instance_uuid).where(
        _NEWEST.c.spec.contains(text, autoescape=True),
        _NEWEST.c.spec != sa.func.replace(_NEWEST.c.spec, text, ''))
    with connections.api_database().reading() as api:
        uuids = api.execute(pinned).scalars().all()
        # The request of a deleted server remains until it is archived.
        return sum(api.execute(_EXISTING, {'some': some}).scalar_one()
                   for some in engines.chunks(uuids))


def _page(cell: Any, statement: Any, after: int
          ) -> tuple[int, list[audit.PlacedServer]]:
    """Read a page, and the ID after which the next one begins."""
    rows = cell.execute(statement, {'after': after}).all()
    if not rows:
        return after, []
    moves = {}
    for move in cell.execute(_MOVES, {'some': [row.uuid for row in rows]}):
        # A resize on the same host is no move. MySQL would refuse to compare
        # columns of different collations, and ignore case.
        if move.source_compute not in (None, move.dest_compute):
            moves[move.instance_uuid, move.dest_compute] = move
    servers = [_server(row, moves.get((row.uuid, row.host))) for row in rows]
    return rows[-1].id, servers


def _server(row: Any, move: Any) -> audit.PlacedServer:
    return audit.with_move(
        audit.PlacedServer(
            row.uuid, row.display_name or '', row.host, row.project_id or '',
            row.vm_state or '', dates.epoch(row.launched_at)),
        move and (move.migration_type or 'migration'),
        move and dates.epoch(move.updated_at))
