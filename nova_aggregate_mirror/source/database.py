# SPDX-License-Identifier: Apache-2.0
"""State of nova, read from nova's databases with narrow queries.

Long because one read joins the answers of the API database and of the cells.
"""

from collections import abc
import dataclasses
import functools
from typing import Any

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import aggregate_rows
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import node_locations
from nova_aggregate_mirror.source import obstacles
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids

Zones = abc.Mapping[str, str]


class _HostData:
    """Data of hosts in nova's API database; grows with each read."""

    def __init__(self) -> None:
        self.aggregates = aggregate_rows.AggregateRows()
        self.mapped: dict[str, cells.Cell] = {}
        self._names: set[str] = set()

    @property
    def homes(self) -> abc.Mapping[str, str]:
        """Host to the name of the cell of its host mapping."""
        return {host: cell.name for host, cell in self.mapped.items()}

    def missing(self, rows: abc.Iterable[source.NodeRow]) -> frozenset[str]:
        """Return the hosts of these nodes that were not read."""
        return frozenset(row.host for row in rows) - self._names

    def read(self, api: Any, hosts: frozenset[str]) -> None:
        """Read further hosts; names are compared exactly, unlike in MySQL.

        A row is a host mapping or a membership; it lacks the other's columns.
        """
        for row in engines.select(api, statements.HOSTS, hosts):
            if row.host in hosts:
                self.mapped[row.host] = cells.cell_of(row)
            elif row.member in hosts:
                self.aggregates.add(
                    row.aggregate_id, row.aggregate, row.aggregate_name,
                    row.member)
        self._names |= hosts


class DatabaseSource:
    """Nova's databases; the default source.

    Each read raises ``NovaUnavailable`` without the API database. Names are
    compared in Python: MySQL's collation ignores case and trailing spaces, the
    scheduler does not.

    :param limits: of each database; 60 seconds are what nova-api waits
    :param threads: whether to read the cells in parallel
    :param skip_late: whether hosts of other cells wait for a slow one only a
        little; then the API database has as long as a cell
    """

    def __init__(self, limits: engines.Limits = engines.Limits(answer=60.0),
                 threads: bool = False, skip_late: bool = False) -> None:
        self._api = connections.ApiDatabase(
            min(limits.answer, cells.SOON) if skip_late else limits.answer)
        self._cells = cells.Cells(limits, threads, skip_late)

    def scope(self, aggregate_id: int, host: str = '') -> source.Scope:
        """Read an aggregate's UUID, and a host's nodes and aggregates."""
        with self._api.reading() as api:
            answer = api.execute(
                statements.SCOPE, {'id': aggregate_id, 'host': host}).all()
            own = _aggregates_of(answer, {None})
            uuid = next(iter(own.names), '')
            if not host:
                return source.Scope(uuid, invalid_aggregates=own.invalid)
            # MySQL compares names without case, and so does nova when it
            # changes the memberships of the host. Other rows have no cell.
            mapped = {row.host: cells.cell_of(row) for row in answer
                      if row.id is not None}
            hosts = frozenset(mapped) or frozenset({host})
            candidates = _ordered(mapped.values()) or self._cells.all(api)
        of_host = _aggregates_of(answer, hosts)
        rows, down = self._cells.rows(dict.fromkeys(
            candidates, functools.partial(_find_nodes, hosts=hosts)))
        nodes = frozenset(row.node for row in rows if uuids.is_uuid(row.node))
        return source.Scope(
            uuid, nodes, cells_down=down, members=frozenset(of_host.names),
            invalid_aggregates=of_host.invalid | own.invalid)

    def aggregates(self) -> abc.Mapping[str, str]:
        with self._api.reading() as api:
            return _aggregates(api).names

    def with_hosts(self) -> frozenset[str]:
        with self._api.reading() as api:
            return frozenset(uuid for uuid, in api.execute(statements.USED)
                             if uuids.is_uuid(uuid))

    def cell_mappings(self) -> abc.Mapping[str, str]:
        """Read UUID to display name of every cell except cell0."""
        with self._api.reading() as api:
            return {cell.uuid: cell.name for cell in self._cells.all(api)}

    def galera(self) -> tuple[int, int]:
        """Return the number of Galera nodes, and their ``wsrep_sync_wait``.

        Both are 0 if nova's API database is not in a cluster.
        """
        with self._api.reading() as api:
            if api.dialect.name not in ('mysql', 'mariadb'):
                return 0, 0
            # Rows of a name and a value; MySQL has neither.
            nodes, wait = (api.execute(statement).one_or_none()
                           for statement in (statements.GALERA,
                                             statements.SYNC_WAIT))
            return int(nodes[1]) if nodes else 0, int(wait[1]) if wait else 0

    def zones(self) -> Zones:
        """Read aggregate UUID to availability zone, where one is set."""
        with self._api.reading() as api:
            return {uuid: zone for uuid, key, zone
                    in api.execute(statements.ZONES)
                    if key == statements.ZONE and uuids.is_uuid(uuid)}

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: source.Down | None = None) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        records = _HostData()
        with self._api.reading() as api:
            records.read(api, hosts)
            own_cells_only = down is None and records.mapped.keys() >= hosts
            existing = _existing(
                api, frozenset(aggregates) - records.aggregates.names.keys())
            candidates: list[cells.Cell] = []
            if own_cells_only and hosts:
                candidates = _ordered(records.mapped.values())
            elif hosts or nodes:
                candidates = self._cells.all(api)
        if down is None:
            rows, down = self._search(records, candidates, hosts, nodes)
        else:
            rows, silent = self._query(records, (
                cell for cell in candidates if cell.name not in down),
                (), nodes, full=True)
            down = {**down, **silent}
        located = node_locations.locate(rows, records.homes, not down, nodes)
        members = records.aggregates.members
        return source.Nova(
            aggregates={**records.aggregates.names, **existing},
            members=members, nodes=located.nodes,
            unmapped=hosts & (members.keys() - records.mapped.keys()),
            cells_down=down, hosts_down=_hidden(hosts, records.homes, down),
            shared=located.shared, unknown=located.unknown,
            invalid_aggregates=records.aggregates.invalid,
            invalid_nodes=located.invalid)

    def read_all(self) -> source.Nova:
        with self._api.reading() as api:
            aggregates = _aggregates(api)
            rows = api.execute(statements.MEMBERS).all()
            for host, number, uuid, name in rows:
                aggregates.add(number, uuid, name, host)
            by_id = {cell.id: cell for cell in self._cells.all(api)}
            mapped = {host: by_id[cell_id] for host, cell_id
                      in api.execute(statements.MAPPED) if cell_id in by_id}
            members = aggregates.members
            unmapped = members.keys() - mapped.keys()
            # A member may have another spelling than the host.
            same = api.execute(statements.SPELLINGS) if unmapped else ()
            spellings = {host.casefold(): host for host, in same}
        rows, down = self._cells.rows(
            dict.fromkeys(by_id.values(), _every_node), full=True)
        homes = {host: cell.name for host, cell in mapped.items()}
        located = node_locations.locate(rows, homes, not down)
        at_home = {
            row.host for row in rows if homes.get(row.host) == row.cell}
        # As MySQL compares them, which nova asks for the mapping of a host.
        names = {host.casefold() for host in homes}
        nodes_unmapped = frozenset(
            node for node, host in located.nodes.items()
            if host.casefold() not in names)
        in_other_cells = {
            row.host for row in rows
            if row.host in members and row.host not in at_home
            and homes.get(row.host) not in down}
        nova = source.Nova(
            aggregates=aggregates.names, members=members,
            nodes=located.nodes, unmapped=frozenset(unmapped | in_other_cells),
            nodes_unmapped=nodes_unmapped, cells_down=down, cells=len(by_id),
            hosts_down=_hidden(members, homes, down),
            shared=located.shared, unknown=located.unknown,
            invalid_aggregates=aggregates.invalid,
            invalid_nodes=located.invalid)
        if not nova.lost():
            return nova
        rows, silent = self._cells.rows(dict.fromkeys(
            (cell for cell in by_id.values() if cell.name not in down),
            _hosts), full=True)
        return dataclasses.replace(nova, obstacles=obstacles.find(
            nova, rows, mapped, spellings,
            is_complete=not {**down, **silent}))

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        names: dict[str, str] = {}
        with self._api.reading() as api:
            existing = self._cells.all(api)
        for cell in existing:
            names.update(self._cells.ask(cell, functools.partial(
                _names_of, nodes=nodes), default={}, down={}))
        return names

    def _search(self, records: _HostData,
                candidates: abc.Collection[cells.Cell], hosts: frozenset[str],
                nodes: frozenset[str]
                ) -> tuple[list[source.NodeRow], source.Down]:
        """Search for the nodes of hosts, and for the given nodes.

        Each host is searched for in the cell of its mapping, or in all cells.
        Nodes that these do not decide are then searched for in every cell:
        they may have moved, and are deleted only if no cell has them.
        """
        rows, down = self._query(records, candidates, hosts, nodes)
        undecided = node_locations.undecided(rows, records.homes, nodes)
        if undecided:
            with self._api.reading() as api:
                # Candidates have been searched for ``nodes``, not for others.
                remaining = [cell for cell in self._cells.all(api)
                             if cell.name not in down and (
                                 cell not in candidates or undecided - nodes)]
            added_rows, silent = self._query(records, remaining, (), undecided)
            rows, down = [*rows, *added_rows], {**down, **silent}
        return rows, down

    def _query(self, records: _HostData,
               candidates: abc.Iterable[cells.Cell],
               hosts: abc.Collection[str], nodes: frozenset[str],
               full: bool = False) -> tuple[list[source.NodeRow], source.Down]:
        """Query cells, and read the data of hosts that are new."""
        queries: dict[cells.Cell, cells.Query] = {}
        for cell in candidates:
            # A host without a mapping may be in any cell.
            possible = frozenset(
                host for host in hosts
                if records.mapped.get(host, cell) == cell)
            queries[cell] = functools.partial(
                _find_nodes, hosts=possible, nodes=nodes)
        rows, down = self._cells.rows(queries, full)
        new_hosts = records.missing(rows)
        if new_hosts:
            with self._api.reading() as api:
                records.read(api, new_hosts)
        return rows, down


def _ordered(mapped: abc.Iterable[cells.Cell]) -> list[cells.Cell]:
    return sorted(set(mapped), key=lambda cell: cell.id)


def _aggregates(connection: Any) -> aggregate_rows.AggregateRows:
    rows = aggregate_rows.AggregateRows()
    for columns in connection.execute(statements.AGGREGATES).all():
        rows.add(*columns)
    return rows


def _aggregates_of(answer: abc.Iterable[Any],
                   members: abc.Collection[str | None]
                   ) -> aggregate_rows.AggregateRows:
    """Collect the aggregates of ``statements.SCOPE`` with these members.

    :param members: hosts; None for the aggregate that was given by its ID
    """
    rows = aggregate_rows.AggregateRows()
    for row in answer:
        if row.aggregate_id is not None and row.member in members:
            rows.add(row.aggregate_id, row.aggregate, row.aggregate_name)
    return rows


def _existing(connection: Any, some: frozenset[str]) -> dict[str, str]:
    rows = engines.select(connection, statements.EXISTING, some)
    return {uuid: source.aggregate_name(name) for uuid, name in rows
            if uuids.is_uuid(uuid)}


def _find_nodes(cell: Any, hosts: frozenset[str],
                nodes: frozenset[str] = frozenset()) -> cells.Nodes:
    """Return the nodes of the given hosts, and the given nodes."""
    rows = [(node, host) for node, host in engines.select(
        cell, statements.NODES_OF, hosts) if host in hosts]
    elsewhere = nodes - {uuids.canonical(node or '') for node, _host in rows}
    rows += engines.select(
        cell, statements.THESE_NODES, map(statements.spelled, elsewhere))
    return rows


def _every_node(cell: Any) -> cells.Nodes:
    return [*cell.execute(statements.NODES)]


def _hosts(cell: Any) -> cells.Nodes:
    """Return the hosts of compute nodes with their names, and of services."""
    return [*cell.execute(statements.NAMED_NODES),
            *cell.execute(statements.SERVICES)]


def _names_of(cell: Any, nodes: abc.Collection[str]) -> dict[str, str]:
    return {uuids.canonical(node): name for node, name in engines.select(
        cell, statements.NODE_NAMES, map(statements.spelled, nodes))}


def _hidden(hosts: abc.Iterable[str], homes: abc.Mapping[str, str],
            down: source.Down) -> source.Memberships:
    """Return host to the cells that did not answer and may have its nodes."""
    hidden = {}
    for host in hosts:
        possible = {homes[host]} if host in homes else down.keys()
        names = frozenset(possible & down.keys())
        if names:
            hidden[host] = names
    return hidden
