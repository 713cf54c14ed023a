# SPDX-License-Identifier: Apache-2.0
"""State of some hosts, read from nova's databases with narrow queries."""

from collections import abc
import dataclasses
import functools
from typing import Any

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import node_locations
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids


class _HostData:
    """Data of hosts in nova's API database; grows with each read."""

    def __init__(self) -> None:
        self.rows: list[abc.Sequence[Any]] = []
        """Aggregates, for ``source.Nova.of_aggregates``."""
        self.mapped: dict[str, cells.Cell] = {}
        self.names: set[str] = set()
        """Hosts that were asked for."""

    @property
    def homes(self) -> abc.Mapping[str, str]:
        """Host to the name of the cell of its host mapping."""
        return {host: cell.name for host, cell in self.mapped.items()}

    def read(self, api: Any, hosts: frozenset[str]) -> None:
        """Read further hosts; names are compared exactly, unlike in MySQL."""
        # A row is a host mapping or a membership, and lacks the other columns.
        for row in engines.select(api, statements.HOSTS, hosts):
            if row.host in hosts:
                self.mapped[row.host] = cells.cell_of(row)
            elif row.member in hosts:
                self.rows.append((
                    row.aggregate_id, row.aggregate, row.aggregate_name,
                    row.member))
        self.names |= hosts


class HostSource:
    """Nova's databases, as far as it takes to mirror single hosts.

    Each read raises ``NovaUnavailable`` without the API database. Names are
    compared in Python: MySQL's collation ignores case and trailing spaces, the
    scheduler does not.

    :param limits_some: for nova's API database, too; see ``cells.Cells``
    """

    def __init__(self, limits: engines.Limits,
                 limits_some: engines.Limits | None = None,
                 read: cells.Read = cells.read_in_order) -> None:
        self._api = connections.api_database((limits_some or limits).answer)
        self._cells = cells.Cells(limits, limits_some, read)

    def scope(self, aggregate_id: int, host: str = '') -> source.Scope:
        """Read an aggregate's UUID, and a host's nodes and aggregates."""
        with self._api.reading() as api:
            answer = api.execute(
                statements.HOSTS, {'id': aggregate_id, 'some': [host]}).all()
            # A row is a host mapping, a membership, or, without a member, the
            # aggregate that was asked for. Only host mappings have a cell,
            # and its ID.
            mapped = {row.host: cells.cell_of(row) for row in answer
                      if row.id is not None}
            # MySQL compares names without case, and so does nova when it
            # changes the memberships of the host.
            spellings = frozenset(mapped) or frozenset({host})
            candidates = sorted(set(mapped.values()))
            if host and not candidates:
                candidates = self._cells.all(api)
        aggregates = [row for row in answer if row.id is None
                      and (row.member is None or row.member in spellings)]
        uuid = next(
            (row.aggregate for row in aggregates if row.member is None), '')
        nova = source.Nova.of_aggregates(
            (row.aggregate_id, row.aggregate, row.aggregate_name, row.member)
            for row in aggregates)
        queries = dict.fromkeys(
            candidates, functools.partial(_find_nodes, hosts=spellings))
        rows, down = self._cells.rows(queries) if host else ([], {})
        nodes = frozenset(row.node for row in rows if uuids.is_uuid(row.node))
        return source.Scope(
            uuid if uuid in nova.aggregates else '', nodes, down,
            members=frozenset[str]().union(*nova.members.values()),
            invalid_aggregates=nova.invalid_aggregates)

    def aggregates(self) -> abc.Mapping[str, str]:
        with self._api.reading() as api:
            return source.Nova.of_aggregates(
                api.execute(statements.AGGREGATES)).aggregates

    def cell_mappings(self) -> abc.Mapping[str, str]:
        """Read UUID to display name of every cell except cell0."""
        with self._api.reading() as api:
            return {cell.uuid: cell.name for cell in self._cells.all(api)}

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: source.Down | None = None) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        records = _HostData()
        with self._api.reading() as api:
            records.read(api, hosts)
            unread = frozenset(aggregates).difference(
                uuid for _id, uuid, *_names in records.rows)
            records.rows += engines.select(api, statements.EXISTING, unread)
            candidates: list[cells.Cell] = []
            if hosts and down is None and records.mapped.keys() >= hosts:
                candidates = sorted(set(records.mapped.values()))
            elif hosts or nodes:
                candidates = self._cells.all(api)
        if down is None:
            rows, down = self._search(records, candidates, hosts, nodes)
        else:
            rows, silent = self._query(records, (
                cell for cell in candidates if cell.name not in down),
                (), nodes, full=True)
            down = {**down, **silent}
        nova = snapshot(source.Nova.of_aggregates(records.rows), rows,
                        records.homes, down, hosts, nodes)
        unmapped = hosts & (nova.members.keys() - records.mapped.keys())
        return dataclasses.replace(nova, unmapped=unmapped)

    def _search(self, records: _HostData,
                candidates: abc.Collection[cells.Cell], hosts: frozenset[str],
                nodes: frozenset[str]
                ) -> tuple[list[source.NodeRow], source.Down]:
        """Search for the nodes of hosts, and for the given nodes."""
        rows, down = self._query(records, candidates, hosts, nodes)
        undecided = frozenset(node_locations.locate(
            rows, records.homes, complete=False, nodes=nodes).unknown)
        if undecided:
            # They may have moved, and are deleted only if no cell has them.
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
        new_hosts = frozenset(row.host for row in rows) - records.names
        if new_hosts:
            with self._api.reading() as api:
                records.read(api, new_hosts)
        return rows, down


def _find_nodes(cell: Any, hosts: frozenset[str],
                nodes: frozenset[str] = frozenset()) -> cells.Nodes:
    """Return the nodes of the given hosts, and the given nodes."""
    rows = [(node, host) for node, host in engines.select(
        cell, statements.NODES_OF, hosts) if host in hosts]
    elsewhere = nodes - {uuids.canonical(node or '') for node, _host in rows}
    rows += engines.select(
        cell, statements.THESE_NODES, map(statements.spelled, elsewhere))
    return rows


def snapshot(aggregates: source.Nova, rows: abc.Iterable[source.NodeRow],
             homes: abc.Mapping[str, str], down: source.Down,
             hosts: abc.Iterable[str],
             nodes: abc.Collection[str] = ()) -> source.Nova:
    """Combine what nova's API database and its cells have of some hosts."""
    hosts_down = {}
    for host in hosts:
        # A host without a mapping may be in any cell.
        possible = {homes[host]} if host in homes else down.keys()
        names = frozenset(possible & down.keys())
        if names:
            hosts_down[host] = names
    nova = node_locations.locate(rows, homes, not down, nodes, aggregates)
    return dataclasses.replace(nova, cells_down=down, hosts_down=hosts_down)
