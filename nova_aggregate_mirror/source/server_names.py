# SPDX-License-Identifier: Apache-2.0
"""UUIDs of servers and server groups by name, from nova's databases."""

import functools
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import tables

_CELL, _GROUP, _SERVER = (
    tables.cell_mappings.c, tables.instance_groups.c, tables.instances.c)
# Cell0 has the servers that were never on a host.
_CELLS = sa.select(*cells.COLUMNS).order_by(_CELL.id)
_GROUPS = sa.select(_GROUP.uuid, _GROUP.name).where(
    _GROUP.name == sa.bindparam('name'))
_SERVERS = sa.select(
    _SERVER.uuid, _SERVER.display_name.label('name'),
).where(
    _SERVER.deleted == 0, _SERVER.display_name == sa.bindparam('name'),
    # During a resize to another cell both cells have the server.
    sa.or_(_SERVER.hidden.is_(None), _SERVER.hidden == sa.false()))


class ServerNames:
    """Names of servers and server groups.

    :param limits: how long a cell may let this process wait
    """

    def __init__(self, limits: engines.Limits) -> None:
        self._api = connections.ApiDatabase(limits.answer)
        self._cells = cells.Cells(limits, threads=True, prompt=False)
        self.cells_down: dict[str, str] = {}
        """Cells that did not answer so far, name to the reason."""

    def servers(self, name: str) -> list[str]:
        """Return the UUIDs of the servers with a name, in all cells.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with self._api.reading() as api:
            mappings = [cells.cell_of(row) for row in api.execute(_CELLS)]
        uuids = set()
        for cell in mappings:
            try:
                uuids.update(self._cells.ask(cell, functools.partial(
                    _uuids, statement=_SERVERS, name=name)))
            except exceptions.CellUnavailable as exc:
                self.cells_down[cell.name] = str(exc)
        return sorted(uuids)

    def server_groups(self, name: str) -> list[str]:
        """Return the UUIDs of the server groups with a name.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with self._api.reading() as api:
            return _uuids(api, _GROUPS, name)


def _uuids(connection: Any, statement: Any, name: str) -> list[str]:
    # MySQL compares names without case.
    return sorted(row.uuid for row in connection.execute(
        statement, {'name': name}) if row.name == name)
