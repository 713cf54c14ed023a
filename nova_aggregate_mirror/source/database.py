# SPDX-License-Identifier: Apache-2.0
"""State of nova, read from nova's databases with narrow queries."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import statements

# Values per IN list; every database that nova supports accepts this many.
CHUNK = 500

Zones = Mapping[str, str]
Mapped = Mapping[str, cells.Cell]


class DatabaseSource:
    """Nova's databases; the default source.

    Each read is a new transaction on the writer, so that it sees everything
    committed before it. Names are compared in Python: MySQL's collation
    ignores case and trailing spaces, the scheduler does not.

    :param limits: how long each database may let this process wait
    :param threads: whether to read several cells in threads, which nova-api
        must not start
    :param hurried: whether other hosts wait as well: a cell that is late is
        left out, and statements end soon
    """

    def __init__(self, limits: engines.Limits = engines.Limits(60.0),
                 threads: bool = False, hurried: bool = False) -> None:
        self._api = connections.ApiDatabase(
            min(limits.answer, cells.SOON) if hurried else limits.answer)
        self._cells = cells.Cells(limits, threads, hurried)

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        with self._api.reading() as api:
            rows = api.execute(
                statements.PLACE, {'id': aggregate_id, 'host': host}).all()
            uuid = rows[0].aggregate or ''
            if not host:
                return source.Place(uuid)
            # MySQL compares names without case, and so does nova when it
            # changes the memberships of the host.
            mapped = {row.host: cells.cell_of(row) for row in rows
                      if row.id is not None}
            hosts = frozenset(mapped) or frozenset({host})
            candidates = self._where(api, hosts, mapped)
        found, down = self._find(hosts, frozenset(), mapped, candidates)
        return source.Place(
            uuid, frozenset(found), down, frozenset(
                row.member_of for row in rows
                if row.member in hosts and row.member_of))

    def aggregates(self) -> Mapping[str, str]:
        with self._api.reading() as api:
            return _aggregates(api)

    def cell_mappings(self) -> Mapping[str, str]:
        """Read UUID to display name of every cell except cell0.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with self._api.reading() as api:
            return {cell.uuid: cell.name for cell in self._cells.all(api)}

    def galera(self) -> source.Galera:
        """Read the Galera cluster of nova's API database.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with self._api.reading() as api:
            if api.dialect.name not in ('mysql', 'mariadb'):
                return source.Galera()
            # MySQL has neither of them.
            return source.Galera(*(
                int(row[1]) if row else 0 for row in (
                    api.execute(statement).one_or_none() for statement in (
                        statements.GALERA, statements.SYNC_WAIT))))

    def zones(self) -> Zones:
        """Read aggregate UUID to availability zone, where one is set.

        :raises NovaUnavailable: when nova's API database cannot be read
        """
        with self._api.reading() as api:
            return dict(map(tuple, api.execute(statements.ZONES)))

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        with self._api.reading() as api:
            members, existing, mapped = _hosts(api, hosts)
            candidates = (self._where(api, hosts, mapped)
                          if hosts or nodes else [])
            existing.update(_existing(
                api, frozenset(aggregates) - existing.keys()))
        found, down = self._find(hosts, nodes, mapped, candidates)
        moved = frozenset(found.values()) - hosts
        if moved:
            with self._api.reading() as api:
                rows = _rows(api, moved)
            members.update(_members(rows))
            existing.update({uuid: name for _host, uuid, name in rows})
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=hosts & frozenset(members) - frozenset(mapped),
            cells_down=down, hosts_down=_hidden(hosts, mapped, down))

    def read_all(self) -> source.Nova:
        with self._api.reading() as api:
            existing = _aggregates(api)
            members = _members(api.execute(statements.MEMBERS))
            by_id = {cell.id: cell for cell in self._cells.all(api)}
            mapped = {host: by_id[cell] for host, cell
                      in api.execute(statements.MAPPED)
                      if host in members and cell in by_id}
        found, down = self._cells.nodes(
            by_id.values(),
            lambda cell: dict(map(tuple, cell.execute(statements.NODES))),
            patient=True)
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=frozenset(members) - frozenset(mapped), cells_down=down,
            hosts_down=_hidden(frozenset(members), mapped, down))

    def _where(self, api: Any, hosts: frozenset[str], mapped: Mapped
               ) -> list[cells.Cell]:
        """Return the cells that may have the nodes of the given hosts."""
        if hosts and hosts <= mapped.keys():
            return sorted(set(mapped.values()), key=lambda cell: cell.id)
        return self._cells.all(api)

    def _find(self, hosts: frozenset[str], nodes: frozenset[str],
              mapped: Mapped, candidates: list[cells.Cell]
              ) -> tuple[cells.Nodes, Mapping[str, str]]:
        """Find the given nodes and the nodes of the given hosts.

        A node that is missing in the candidates may have moved to another
        cell: it is deleted only if no cell has it.
        """
        found, down = self._cells.nodes(
            candidates, lambda cell: _find_nodes(cell, hosts, nodes))
        missing = nodes - found.keys()
        if missing:
            with self._api.reading() as api:
                others = [cell for cell in self._cells.all(api)
                          if cell not in candidates]
            elsewhere, also_down = self._cells.nodes(
                others, lambda cell: _find_nodes(cell, frozenset(), missing))
            found, down = {**elsewhere, **found}, {**also_down, **down}
        return found, down


def _chunks(values: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]


def _aggregates(connection: Any) -> dict[str, str]:
    return dict(connection.execute(statements.AGGREGATES).all())


def _existing(connection: Any, uuids: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in _chunks(uuids):
        found.update(connection.execute(
            statements.EXISTING, {'some': chunk}).all())
    return found


def _hosts(api: Any, hosts: frozenset[str]
           ) -> tuple[dict[str, frozenset[str]], dict[str, str], Mapped]:
    """Read host to aggregate UUIDs, aggregate names, and host to cell."""
    mapped: dict[str, cells.Cell] = {}
    rows = []
    for chunk in _chunks(hosts):
        for row in api.execute(statements.HOSTS, {'some': chunk}):
            if row.host in hosts and row.host not in mapped:
                mapped[row.host] = cells.cell_of(row)
            if row.member in hosts and row.aggregate:
                rows.append((row.member, row.aggregate, row.aggregate_name))
    rows += _rows(api, hosts - mapped.keys())
    names = {uuid: name for _host, uuid, name in rows}
    return _members(rows), names, mapped


def _rows(api: Any, hosts: frozenset[str]) -> list[Any]:
    """Read a row of ``statements.MEMBERS`` per membership of the hosts."""
    return [row for chunk in _chunks(hosts)
            for row in api.execute(statements.MEMBERS_OF, {'some': chunk})
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
            statements.NODES_OF, {'some': chunk}) if host in hosts)
    for chunk in _chunks(nodes - found.keys()):
        found.update(connection.execute(
            statements.THESE_NODES, {'some': chunk}).all())
    return found


def _hidden(hosts: frozenset[str], mapped: Mapped,
            down: Mapping[str, str]) -> frozenset[str]:
    """Return hosts that may have a node in a cell that did not answer."""
    return frozenset(
        host for host in hosts
        if (mapped[host].name in down if host in mapped else down))
