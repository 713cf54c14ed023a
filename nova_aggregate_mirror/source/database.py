# SPDX-License-Identifier: Apache-2.0
"""What nova wants, read from nova's databases through narrow queries."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
from typing import Any

from nova.db.api import api as api_db
import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells as nova_cells
from nova_aggregate_mirror.source import tables

# Every database that nova supports takes so many values in one IN list.
CHUNK = 500

Zones = Mapping[str, str]
Cells = Mapping[str, nova_cells.Cell]

# Statements are made once: making one takes longer than running it.
_SOME = sa.bindparam('some', expanding=True)
_AGGREGATE, _MEMBER = tables.aggregates.c, tables.aggregate_hosts.c
_METADATA = tables.aggregate_metadata.c
_HOST, _NODE = tables.host_mappings.c, tables.compute_nodes.c
_IN_CELL = tables.cell_mappings.c.id == _HOST.cell_id
_PLACE = sa.select(
    _AGGREGATE.uuid.label('aggregate'), _HOST.host, *nova_cells.COLUMNS,
).select_from(tables.aggregates).outerjoin(
    tables.host_mappings, _HOST.host == sa.bindparam('host'),
).outerjoin(
    tables.cell_mappings, _IN_CELL,
).where(_AGGREGATE.id == sa.bindparam('id'))
_AGGREGATES = sa.select(_AGGREGATE.uuid, _AGGREGATE.name)
_EXISTING = _AGGREGATES.where(_AGGREGATE.uuid.in_(_SOME))
_MEMBERS = sa.select(_MEMBER.host, _AGGREGATE.uuid, _AGGREGATE.name).join_from(
    tables.aggregate_hosts, tables.aggregates,
    _AGGREGATE.id == _MEMBER.aggregate_id)
_ZONES = sa.select(_AGGREGATE.uuid, _METADATA.value).join_from(
    tables.aggregates, tables.aggregate_metadata,
    _AGGREGATE.id == _METADATA.aggregate_id,
).where(_METADATA.key == 'availability_zone')
_MEMBERS_OF = _MEMBERS.where(_MEMBER.host.in_(_SOME))
_MAPPED = sa.select(_HOST.host, _HOST.cell_id)
# One query in place of two: a row for each membership of each mapped host.
_HOSTS = sa.select(
    _HOST.host, *nova_cells.COLUMNS, _MEMBER.host.label('member'),
    _AGGREGATE.uuid.label('aggregate'),
    _AGGREGATE.name.label('aggregate_name'),
).join_from(
    tables.host_mappings, tables.cell_mappings, _IN_CELL,
).outerjoin(
    tables.aggregate_hosts, _MEMBER.host == _HOST.host,
).outerjoin(
    tables.aggregates, _AGGREGATE.id == _MEMBER.aggregate_id,
).where(_HOST.host.in_(_SOME))
# A node without a host was never finished by its nova-compute.
_NODES = sa.select(_NODE.uuid, _NODE.host).where(
    _NODE.deleted == 0, _NODE.uuid.is_not(None), _NODE.host.is_not(None))
_NODES_OF = _NODES.where(_NODE.host.in_(_SOME))
_THESE_NODES = _NODES.where(_NODE.uuid.in_(_SOME))


class DatabaseSource:
    """Nova's own databases; the default source.

    Each read is a new transaction on the writer, so that it sees whatever was
    committed before it. Names are compared in Python: MySQL's collation
    ignores case and trailing spaces, the scheduler does not.

    :param run: how several cells are read: ``cells.in_turn`` inside nova-api,
        ``cells.bounded(timeout)`` in a process of our own
    """

    def __init__(self, run: Callable[[nova_cells.Reads], nova_cells.Answers]
                 = nova_cells.in_turn) -> None:
        self._cells = nova_cells.Cells(run)

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        with reading() as api:
            rows = api.execute(
                _PLACE, {'id': aggregate_id, 'host': host}).all()
            uuid = rows[0].aggregate if rows else ''
            if not host:
                return source.Place(uuid)
            mapped = {host: nova_cells.cell_of(row) for row in rows
                      if row.host == host and row.id is not None}
            cells = self._where(api, frozenset({host}), mapped)
        found, down = self._find(
            frozenset({host}), frozenset(), mapped, cells)
        return source.Place(uuid, frozenset(found), down)

    def aggregates(self) -> Mapping[str, str]:
        with reading() as api:
            return _aggregates(api)

    def cells(self) -> Mapping[str, str]:
        """UUID to name of every cell but cell0.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with reading() as api:
            return {cell.uuid: cell.name for cell in self._cells.all(api)}

    def zones(self) -> Zones:
        """UUID to availability zone, for the aggregates that have one.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with reading() as api:
            return dict(map(tuple, api.execute(_ZONES)))

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        with reading() as api:
            members, names, mapped = _hosts(api, hosts)
            cells = self._where(api, hosts, mapped)
            # Those with members among these hosts have been seen to exist.
            existing = {uuid: names[uuid] for uuid in aggregates
                        if uuid in names}
            existing.update(_existing(
                api, frozenset(aggregates) - names.keys()))
        found, down = self._find(hosts, nodes, mapped, cells)
        moved = frozenset(found.values()) - hosts
        if moved:
            with reading() as api:
                members.update(_members(_rows(api, moved)))
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=hosts & frozenset(members) - frozenset(mapped),
            cells_down=down, hosts_down=_hidden(hosts, mapped, down))

    def read_all(self) -> source.Nova:
        with reading() as api:
            existing = _aggregates(api)
            members = _members(api.execute(_MEMBERS))
            cells = {cell.id: cell for cell in self._cells.all(api)}
            mapped = {host: cells[cell] for host, cell in api.execute(_MAPPED)
                      if host in members and cell in cells}
        found, down = self._cells.nodes(
            cells.values(),
            lambda cell: dict(map(tuple, cell.execute(_NODES))))
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=frozenset(members) - frozenset(mapped), cells_down=down,
            hosts_down=_hidden(frozenset(members), mapped, down))

    def _where(self, api: Any, hosts: frozenset[str], mapped: Cells
               ) -> list[nova_cells.Cell]:
        """The cells to look in for the nodes of these hosts."""
        if hosts and hosts <= mapped.keys():
            return sorted(set(mapped.values()), key=lambda cell: cell.id)
        return self._cells.all(api)

    def _find(self, hosts: frozenset[str], nodes: frozenset[str],
              mapped: Cells, cells: list[nova_cells.Cell]
              ) -> tuple[nova_cells.Nodes, Mapping[str, str]]:
        """Nodes of these hosts, and these nodes: mapped cells, then others.

        A node that its host's cell does not have may have come up in another
        one: it is gone only when every cell has said so.
        """
        found, down = self._cells.nodes(
            cells, lambda cell: _find_nodes(cell, hosts, nodes))
        missing = nodes - found.keys()
        if missing:
            with reading() as api:
                others = [cell for cell in self._cells.all(api)
                          if cell not in cells]
            elsewhere, also_down = self._cells.nodes(
                others, lambda cell: _find_nodes(cell, frozenset(), missing))
            found, down = {**elsewhere, **found}, {**also_down, **down}
        return found, down


@contextlib.contextmanager
def reading() -> Iterator[Any]:
    """A new read transaction on the writer of nova's API database.

    :raises NovaUnavailable: when it cannot be read
    """
    try:
        with api_db.context_manager.reader.connection.using(
                nova_cells.Transaction()) as connection:
            yield connection
    except nova_cells.DATABASE_ERRORS as exc:
        raise exceptions.NovaUnavailable(
            'nova\'s API database could not be read: %s'
            % nova_cells.reason(exc)) from exc


def _chunks(values: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]


def _aggregates(connection: Any) -> dict[str, str]:
    return dict(connection.execute(_AGGREGATES).all())


def _existing(connection: Any, uuids: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in _chunks(uuids):
        found.update(connection.execute(_EXISTING, {'some': chunk}).all())
    return found


def _hosts(api: Any, hosts: frozenset[str]
           ) -> tuple[dict[str, frozenset[str]], dict[str, str], Cells]:
    """Host to aggregate UUIDs, the names of these, and host to cell."""
    mapped: dict[str, nova_cells.Cell] = {}
    rows = []
    for chunk in _chunks(hosts):
        for row in api.execute(_HOSTS, {'some': chunk}):
            if row.host in hosts and row.host not in mapped:
                mapped[row.host] = nova_cells.cell_of(row)
            if row.member in hosts and row.aggregate:
                rows.append((row.member, row.aggregate, row.aggregate_name))
    rows += _rows(api, hosts - mapped.keys())
    names = {uuid: name for _host, uuid, name in rows}
    return _members(rows), names, mapped


def _rows(api: Any, hosts: frozenset[str]) -> list[Any]:
    """A row of ``_MEMBERS`` for each membership of these hosts."""
    return [row for chunk in _chunks(hosts)
            for row in api.execute(_MEMBERS_OF, {'some': chunk})
            if row.host in hosts]


def _members(rows: Iterable[Any]) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = {}
    for host, uuid, _name in rows:
        members.setdefault(host, set()).add(uuid)
    return {host: frozenset(uuids) for host, uuids in members.items()}


def _find_nodes(connection: Any, hosts: frozenset[str],
                nodes: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in _chunks(hosts):
        found.update((uuid, host) for uuid, host in connection.execute(
            _NODES_OF, {'some': chunk}) if host in hosts)
    for chunk in _chunks(nodes - found.keys()):
        found.update(connection.execute(
            _THESE_NODES, {'some': chunk}).all())
    return found


def _hidden(hosts: frozenset[str], mapped: Cells,
            down: Mapping[str, str]) -> frozenset[str]:
    """Hosts of which a compute node may be in a cell that did not answer."""
    return frozenset(
        host for host in hosts
        if (mapped[host].name in down if host in mapped else down))
