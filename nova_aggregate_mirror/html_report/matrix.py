# SPDX-License-Identifier: Apache-2.0
"""Matrix of hosts and aggregates in nova and placement: pure, no I/O."""

import collections
from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror import source

Association = associations.Association
State = associations.State
SYMBOLS = {
    State.IN_SYNC: ('✓', 'in sync', 'in nova and in placement'),
    State.MISSING: ('+', 'missing', 'in nova, not yet in placement'),
    State.STALE: ('−', 'stale', 'in placement, not in nova'),
    State.PENDING: ('…', 'pending',
                    'in nova; there is no resource provider yet'),
    State.NO_NODE: ('∅', 'no node',
                    'in nova; the host has no compute node'),
    State.UNKNOWN: ('?', 'unknown',
                    'in nova; could not be compared with placement')}
"""States of a cell: symbol, word and meaning of each."""
ORDER = {state: number for number, state in enumerate(State)}
SHOWN_AS = {State.STALE_KEPT: State.STALE, State.DISPUTED: State.UNKNOWN}
"""States that the page does not distinguish from others."""
NO_UUID = 'in an aggregate without a UUID'
"""Mark of hosts in an aggregate that has no column."""


@dataclasses.dataclass(frozen=True)
class MatrixCell:
    """A host in an aggregate."""

    aggregate: str
    state: State
    share: str = ''
    """Share of its nodes in this state, such as 2/3; empty for all."""


@dataclasses.dataclass(frozen=True)
class MatrixHost:
    """A host, or a provider without a host."""

    name: str
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class MatrixRow:
    """Hosts in the same state."""

    hosts: tuple[MatrixHost, ...]
    cells: tuple[MatrixCell, ...]
    """By aggregate; no cell if neither nova nor placement has the host."""
    marks: tuple[str, ...]
    """Short texts about problems of the hosts other than drift."""

    @property
    def is_memberless(self) -> bool:
        return not self.cells and NO_UUID not in self.marks

    @property
    def differs(self) -> bool:
        return bool(self.marks) or any(
            cell.state is not State.IN_SYNC for cell in self.cells)

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key: drift comes first, hosts in no aggregate come last."""
        ranks = [ORDER[cell.state] for cell in self.cells]
        if self.marks:
            ranks.append(ORDER[State.PENDING])
        return min(ranks, default=len(ORDER)), self.hosts[0].name


@dataclasses.dataclass(frozen=True)
class Column:
    """An aggregate, with its number of associations in each state."""

    uuid: str
    name: str
    """Empty for an aggregate that was deleted in nova."""
    counts: abc.Mapping[State, int]

    @property
    def differs(self) -> bool:
        return any(state is not State.IN_SYNC for state in self.counts)


def shown(complete: abc.Iterable[Association]) -> list[Association]:
    """Return what the matrix shows: all but foreign associations."""
    merged = (dataclasses.replace(
        association, state=SHOWN_AS.get(association.state, association.state))
        for association in complete)
    return [association for association in merged
            if association.state in SYMBOLS]


def rows(nova: source.Nova, visible: abc.Iterable[Association],
         marks: abc.Mapping[str, abc.Set[str]]) -> list[MatrixRow]:
    """Group hosts in the same state into rows; differences come first."""
    nodes: dict[str, list[str]] = {host: [] for host in nova.members}
    for node in sorted(nova.nodes):
        for name in nova.hosts_of(node):
            nodes.setdefault(name, []).append(node)
    by_name = {name: MatrixHost(name, tuple(nodes[name]))
               for name in sorted(nodes)}
    by_host: dict[MatrixHost, list[Association]] = {
        host: [] for host in by_name.values()}
    for association in visible:
        known_hosts = [by_name[name] for name in association.hosts]
        for host in known_hosts or [MatrixHost('', (association.provider,))]:
            by_host.setdefault(host, []).append(association)
    groups: dict[Any, list[MatrixHost]] = collections.defaultdict(list)
    for host, members in by_host.items():
        cells = tuple(_cells(host, members))
        host_marks = tuple(mark for mark in marks if host.name in marks[mark])
        groups[cells, host_marks, bool(host.name)].append(host)
    matrix_rows = [MatrixRow(tuple(hosts), cells, host_marks)
                   for (cells, host_marks, _named), hosts in groups.items()]
    return sorted(matrix_rows, key=lambda row: row.rank)


def columns(nova: source.Nova, visible: abc.Iterable[Association]
            ) -> list[Column]:
    """List every aggregate by name; those with differences come first."""
    states: dict[str, list[State]] = {uuid: [] for uuid in nova.aggregates}
    for association in visible:
        states.setdefault(association.aggregate_uuid, []).append(
            association.state)
    listed = [Column(uuid, nova.aggregates.get(uuid, ''),
                     collections.Counter(states[uuid])) for uuid in states]
    return sorted(listed, key=lambda column: (
        not column.differs, column.name, column.uuid))


def _cells(host: MatrixHost, members: abc.Collection[Association]
           ) -> abc.Iterator[MatrixCell]:
    """Return a cell for each aggregate, with the most important state."""
    by_aggregate = collections.defaultdict[str, list[State]](list)
    for association in members:
        by_aggregate[association.aggregate_uuid].append(association.state)
    nodes = max(len(host.nodes), 1)
    for aggregate, states in sorted(by_aggregate.items()):
        worst = min(states, key=ORDER.__getitem__)
        count = states.count(worst)
        yield MatrixCell(aggregate, worst, '' if count == nodes
                         else '%d/%d' % (count, nodes))
