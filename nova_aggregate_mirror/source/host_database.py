# SPDX-License-Identifier: Apache-2.0
"""State of some hosts, read from nova's databases with narrow queries."""

from collections import abc
import dataclasses
import functools
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids


@dataclasses.dataclass(frozen=True)
class Scope:
    """Aggregate, and compute nodes of a host, that an operation affects."""

    aggregate_uuid: str
    """Empty when nova has no such aggregate, or no UUID of it."""
    nodes: frozenset[str] = frozenset()
    """UUIDs of the host's compute nodes, in the cells that answered."""
    cells_down: source.Down = dataclasses.field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """UUIDs of the host's aggregates."""
    invalid_aggregates: frozenset[source.HostAggregate] = frozenset()
    """The aggregate and those of the host, if their UUIDs are none."""


class _Records:
    """What nova's databases have of some hosts; grows with each query."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        """Those that were looked up in nova's API database."""
        self.aggregates: list[abc.Sequence[Any]] = []
        """Rows for ``source.Nova.of_aggregates``."""
        self.mapped: dict[str, cells.Cell] = {}
        self.nodes: list[source.NodeRow] = []
        self.cells_down: dict[str, exceptions.Failure] = {}

    @property
    def homes(self) -> abc.Mapping[str, str]:
        """Host to the name of the cell of its host mapping."""
        return {host: cell.name for host, cell in self.mapped.items()}

    def look_up(self, api: Any, hosts: frozenset[str]) -> None:
        """Read further hosts; names are compared exactly, unlike in MySQL."""
        # A row is a host mapping or a membership, and lacks the other columns.
        for row in engines.select(api, statements.HOSTS, hosts):
            if row.host in hosts:
                self.mapped[row.host] = cells.cell_of(row)
            elif row.member in hosts:
                self.aggregates.append((
                    row.aggregate_id, row.aggregate, row.aggregate_name,
                    row.member))
        self.hosts |= hosts


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
        self._api = connections.api_database((limits_some or limits).timeout)
        self._cells = cells.Cells(limits, limits_some, read)

    def scope(self, aggregate_id: int, host: str = '') -> Scope:
        """Read an aggregate's UUID, and a host's nodes and aggregates."""
        with self._api.reading() as api:
            answer = api.execute(
                statements.HOSTS, {'id': aggregate_id, 'some': [host]}).all()
            # A row is a host mapping, a membership, or, without a member, the
            # requested aggregate. Only a host mapping has the ID of a cell.
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
        scope = Scope(
            uuid if uuid in nova.aggregates else '',
            members=frozenset[str]().union(*nova.members.values()),
            invalid_aggregates=nova.invalid_aggregates)
        if not host:
            return scope
        rows, down = self._cells.rows(dict.fromkeys(
            candidates, functools.partial(_find_nodes, hosts=spellings)))
        nodes = frozenset(row.node for row in rows if uuids.is_uuid(row.node))
        return dataclasses.replace(scope, nodes=nodes, cells_down=down)

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
        records = _Records()
        with self._api.reading() as api:
            records.look_up(api, hosts)
            unread = frozenset(aggregates).difference(
                uuid for _id, uuid, *_names in records.aggregates)
            records.aggregates += engines.select(
                api, statements.EXISTING, unread)
            candidates: list[cells.Cell] = []
            if hosts and down is None and records.mapped.keys() >= hosts:
                candidates = sorted(set(records.mapped.values()))
            elif hosts or nodes:
                candidates = self._cells.all(api)
        if down is None:
            self._query(records, candidates, hosts, nodes)
            nova = source.Nova.of_aggregates(()).with_nodes(
                records.nodes, records.homes, complete=False, nodes=nodes)
            undecided = frozenset(nova.unknown)
            if undecided:
                # They may have moved, and are deleted if no cell has them.
                with self._api.reading() as api:
                    # The candidates were searched for ``nodes`` only.
                    others = [cell for cell in self._cells.all(api)
                              if cell not in candidates or undecided - nodes]
                self._query(records, others, (), undecided)
        else:
            records.cells_down |= down
            self._query(records, candidates, (), nodes, patient=True)
        nova = snapshot(source.Nova.of_aggregates(records.aggregates),
                        records.nodes, records.homes, records.cells_down,
                        hosts, nodes)
        unmapped = hosts & (nova.members.keys() - records.mapped.keys())
        return dataclasses.replace(nova, unmapped=unmapped)

    def _query(self, records: _Records, candidates: abc.Iterable[cells.Cell],
               hosts: abc.Collection[str], nodes: frozenset[str],
               patient: bool = False) -> None:
        """Add the nodes that cells have, and look up hosts that are new."""
        queries: dict[cells.Cell, cells.Query] = {}
        for cell in candidates:
            # A host without a mapping may be in any cell.
            possible_hosts = frozenset(
                host for host in hosts
                if records.mapped.get(host, cell) == cell)
            if cell.name not in records.cells_down:
                queries[cell] = functools.partial(
                    _find_nodes, hosts=possible_hosts, nodes=nodes)
        rows, down = self._cells.rows(queries, patient)
        records.nodes += rows
        records.cells_down |= down
        new_hosts = frozenset(row.host for row in rows) - records.hosts
        if new_hosts:
            with self._api.reading() as api:
                records.look_up(api, new_hosts)


def _find_nodes(cell: Any, hosts: frozenset[str],
                nodes: frozenset[str] = frozenset()) -> cells.Nodes:
    """Return the nodes of the given hosts, and the given nodes."""
    rows = [(node, host) for node, host in engines.select(
        cell, statements.NODES_OF, hosts) if host in hosts]
    others = nodes - {uuids.canonical(node or '') for node, _host in rows}
    rows += engines.select(
        cell, statements.THESE_NODES, map(statements.comparable, others))
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
    nova = aggregates.with_nodes(rows, homes, complete=not down, nodes=nodes)
    return dataclasses.replace(nova, cells_down=down, hosts_down=hosts_down)
