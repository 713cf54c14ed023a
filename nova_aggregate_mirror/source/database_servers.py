# SPDX-License-Identifier: Apache-2.0
"""Servers in nova's databases by name, and consumers of resources."""

from collections import abc
import dataclasses
import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cell_threads
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import statements

# As in ``statements``: a test compares them with nova's models.
instance_groups = statements.table(
    'instance_groups', uuid=sa.String, name=sa.String)
instances = statements.table(
    'instances', id=sa.Integer, uuid=sa.String, display_name=sa.String,
    host=sa.String, project_id=sa.String, vm_state=sa.String,
    task_state=sa.String, hidden=sa.Boolean, launched_at=sa.DateTime,
    deleted=sa.Integer)
migrations = statements.table(
    'migrations', id=sa.Integer, uuid=sa.String, instance_uuid=sa.String,
    status=sa.String, migration_type=sa.String, source_compute=sa.String,
    dest_compute=sa.String, updated_at=sa.DateTime, deleted=sa.Integer)
build_requests = statements.table('build_requests', instance_uuid=sa.String)
instance_mappings = statements.table(
    'instance_mappings', instance_uuid=sa.String, queued_for_delete=sa.Boolean)
request_specs = statements.table(
    'request_specs', id=sa.Integer, instance_uuid=sa.String, spec=sa.Text)
_SERVER, _MIGRATION, _GROUP = instances.c, migrations.c, instance_groups.c
EXISTS = (
    _SERVER.deleted == 0,
    # During a resize to another cell both cells have the server.
    sa.or_(_SERVER.hidden.is_(None), _SERVER.hidden == sa.false()))
"""Condition for a server that is not deleted."""
_GROUPS_NAMED = sa.select(_GROUP.uuid, _GROUP.name).where(
    _GROUP.name == sa.bindparam('name'))
_SERVERS_NAMED = sa.select(
    _SERVER.uuid, _SERVER.display_name.label('name'),
).where(*EXISTS, _SERVER.display_name == sa.bindparam('name'))
_SERVERS_OF = sa.select(
    _SERVER.uuid, _SERVER.display_name, _SERVER.host, _SERVER.task_state,
).where(*EXISTS, _SERVER.uuid.in_(engines.SOME))
_BUILDS_OF = sa.select(build_requests.c.instance_uuid).where(
    build_requests.c.instance_uuid.in_(engines.SOME))
_MIGRATIONS = sa.select(
    _MIGRATION.uuid, _MIGRATION.instance_uuid, _MIGRATION.status,
    _MIGRATION.migration_type, _MIGRATION.source_compute)
# Migrations that hold resources, and evacuations of servers that do, of which
# nova-compute removes what they have left. An index serves each of the two.
_MOVES_OF = sa.union_all(
    _MIGRATIONS.where(
        _MIGRATION.deleted == 0, _MIGRATION.uuid.in_(engines.SOME)),
    _MIGRATIONS.where(
        _MIGRATION.instance_uuid.in_(engines.SOME),
        _MIGRATION.migration_type == 'evacuation',
        _MIGRATION.status.in_(('accepted', 'pre-migrating', 'done'))))


@dataclasses.dataclass(frozen=True)
class Consumer:
    """A server, or a migration of one, for which resources are allocated."""

    server: str
    name: str = ''
    host: str = ''
    """Of a server that has one; a migration has neither host nor name."""
    task: str = ''
    """The task of a server, such as a move or its creation."""
    move: str = ''
    """Type of a migration; empty for a server, as ``status`` is."""
    status: str = ''
    evacuated: frozenset[str] = frozenset()
    """Hosts that a server was evacuated from, and that have not noticed."""


class DatabaseServers:
    """Servers and server groups by name, and consumers of resources.

    Cells are read one after another. Each method raises ``NovaUnavailable``
    without nova's API database.
    """

    def __init__(self, limits: engines.Limits) -> None:
        self._api = connections.api_database(limits.timeout)
        self._cells = cells.Cells(
            limits, read=cell_threads.Threads(limits.timeout).read)
        self.cells_down: dict[str, exceptions.Failure] = {}
        """Cells that did not answer so far."""

    def _ask(self, cell: cells.Cell, query: cells.Query, default: Any) -> Any:
        """Run a query in one cell; return the default without an answer."""
        answer = self._cells.answers({cell: query}, patient=True)[cell.name]
        if isinstance(answer, exceptions.CellUnavailable):
            self.cells_down[cell.name] = answer.failure
            return default
        return answer

    def servers_named(self, name: str) -> list[str]:
        """Return the UUIDs of the servers with a name, in all cells."""
        with self._api.reading() as api:
            # Cell0 has the servers that were never on a host.
            mappings = [*map(cells.cell_of, api.execute(statements.CELLS))]
        query = functools.partial(_uuids, statement=_SERVERS_NAMED, name=name)
        uuids = [self._ask(cell, query, default=()) for cell in mappings]
        return sorted(set[str]().union(*uuids))

    def consumers(self, uuids: abc.Collection[str]
                  ) -> abc.Mapping[str, Consumer]:
        """Read servers and migrations, which may be in a cell that is down."""
        if not uuids:
            return {}
        with self._api.reading() as api:
            # Cell0 has the servers whose creation nova-conductor failed.
            existing = [*map(cells.cell_of, api.execute(statements.CELLS))]
            # Resources are claimed before a cell has the server. What reaches
            # a cell meanwhile is found there, below.
            consumers = {
                server: Consumer(server, task='scheduling')
                for (server,) in engines.select(api, _BUILDS_OF, uuids)}
        for cell in existing:
            consumers |= self._ask(
                cell, functools.partial(_consumers, uuids=uuids), default={})
        return consumers

    def groups_named(self, name: str) -> list[str]:
        """Return the UUIDs of the server groups with a name."""
        with self._api.reading() as api:
            return _uuids(api, _GROUPS_NAMED, name)


def _consumers(cell: Any, uuids: abc.Collection[str]) -> dict[str, Consumer]:
    """Return those of the servers and migrations that this cell has."""
    consumers = {}
    evacuated: dict[str, set[str]] = {}
    for row in engines.select(cell, _MOVES_OF, uuids):
        # Rows are migrations of these UUIDs, and evacuations of these servers.
        if row.uuid in uuids:
            consumers[row.uuid] = Consumer(
                row.instance_uuid or '', status=row.status or '',
                move=row.migration_type or 'migration')
        else:
            evacuated.setdefault(row.instance_uuid, set()).add(
                row.source_compute or '')
    for row in engines.select(cell, _SERVERS_OF, uuids):
        consumers[row.uuid] = Consumer(
            row.uuid, name=row.display_name or '', host=row.host or '',
            task=row.task_state or '',
            evacuated=frozenset(evacuated.get(row.uuid, ())))
    return consumers


def _uuids(connection: Any, statement: Any, name: str) -> list[str]:
    # MySQL compares names without case.
    return sorted(row.uuid for row in connection.execute(
        statement, {'name': name}) if row.name == name)
