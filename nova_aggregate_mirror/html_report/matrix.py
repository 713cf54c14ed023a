# SPDX-License-Identifier: Apache-2.0
"""Matrix of hosts and aggregates in nova and placement: pure, no I/O."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import enum
from typing import Any

from nova_aggregate_mirror import source

Pair = tuple[str, str]
"""Provider and aggregate UUID."""


class State(enum.Enum):
    """State of a host in an aggregate; the most important comes first."""

    MISSING = 'missing'
    STALE = 'stale'
    UNKNOWN = 'unknown'
    NO_NODE = 'nodeless'
    PENDING = 'pending'
    RIGHT = 'right'


ORDER = {state: number for number, state in enumerate(State)}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A host in an aggregate."""

    aggregate: str
    state: State
    share: str = ''
    """Share of its nodes in this state, such as 2/3; empty for all."""


@dataclasses.dataclass(frozen=True)
class Host:
    """A host, or a provider without a host."""

    name: str
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """Hosts in the same state."""

    hosts: tuple[Host, ...]
    cells: tuple[Cell, ...]
    """By aggregate; no cell if neither nova nor placement has the host."""
    marks: tuple[str, ...]
    """Further problems of the hosts."""

    @property
    def differs(self) -> bool:
        return bool(self.marks) or any(
            cell.state is not State.RIGHT for cell in self.cells)

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key: drift comes first, hosts in no aggregate come last."""
        worst = min((ORDER[cell.state] for cell in self.cells),
                    default=len(ORDER))
        if self.marks:
            worst = min(worst, ORDER[State.PENDING])
        return worst, self.hosts[0].name


@dataclasses.dataclass(frozen=True)
class Column:
    """An aggregate, with its number of hosts in each state."""

    uuid: str
    name: str
    """Empty for an aggregate that was deleted in nova."""
    counts: Mapping[State, int]

    @property
    def differs(self) -> bool:
        return any(state is not State.RIGHT for state in self.counts)


@dataclasses.dataclass(frozen=True)
class Seen:
    """The result of a comparison of nova and placement."""

    nova: source.Nova
    missing: Collection[Pair] = frozenset()
    stale: Collection[Pair] = frozenset()
    pending: Collection[str] = frozenset()
    """Compute nodes without a provider."""
    unknown: Collection[str] = frozenset()
    """Compute nodes and hosts whose state is unknown."""
    marks: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    """Host to its further problems."""

    def state(self, node: str, aggregate: str) -> State | None:
        """Return the state of a compute node; None if it is no member."""
        if (node, aggregate) in self.stale:
            return State.STALE
        if aggregate in self.nova.disputed(node):
            return State.UNKNOWN
        if aggregate not in self.nova.wanted(node):
            return None
        if (node, aggregate) in self.missing:
            return State.MISSING
        if node in self.unknown:
            return State.UNKNOWN
        return State.PENDING if node in self.pending else State.RIGHT


def rows(seen: Seen) -> list[Row]:
    """Group hosts in the same state into rows; differences come first."""
    also: dict[str, set[str]] = {}
    for node, aggregate in seen.stale:
        also.setdefault(node, set()).add(aggregate)
    groups: dict[tuple[Any, ...], list[Host]] = {}
    for host in _hosts(seen, also):
        cells = tuple(_cells(seen, host, also))
        groups.setdefault((cells, seen.marks.get(host.name, ())), []).append(
            host)
    found = [Row(tuple(hosts), cells, marks)
             for (cells, marks), hosts in groups.items()]
    return sorted(found, key=lambda row: row.rank)


def columns(seen: Seen, found: Iterable[Row]) -> list[Column]:
    """List every aggregate by name; those with differences come first."""
    counts: dict[str, dict[State, int]] = {
        uuid: {} for uuid in seen.nova.aggregates}
    for row in found:
        for cell in row.cells:
            count = counts.setdefault(cell.aggregate, {})
            count[cell.state] = count.get(cell.state, 0) + len(row.hosts)
    made = [Column(uuid, seen.nova.aggregates.get(uuid, ''), count)
            for uuid, count in counts.items()]
    return sorted(made, key=lambda one: (not one.differs, one.name, one.uuid))


def _hosts(seen: Seen, also: Collection[str]) -> Iterator[Host]:
    nodes: dict[str, list[str]] = {host: [] for host in seen.nova.members}
    for node in sorted(seen.nova.nodes):
        for host in seen.nova.hosts_of(node):
            nodes.setdefault(host, []).append(node)
    for host, its in sorted(nodes.items()):
        yield Host(host, tuple(its))
    for provider in sorted(also):
        if provider not in seen.nova.nodes:
            yield Host('', (provider,))


def _cells(seen: Seen, host: Host, also: Mapping[str, Collection[str]]
           ) -> Iterator[Cell]:
    wanted = seen.nova.members.get(host.name, frozenset())
    stale = (uuid for node in host.nodes for uuid in also.get(node, ()))
    for aggregate in sorted({*wanted, *stale}):
        if not host.nodes or host.name in seen.unknown:
            yield Cell(aggregate, State.UNKNOWN
                       if host.name in seen.unknown else State.NO_NODE)
            continue
        states = [seen.state(node, aggregate) for node in host.nodes]
        worst = min(filter(None, states), key=ORDER.__getitem__)
        count = states.count(worst)
        yield Cell(aggregate, worst, '' if count == len(states)
                   else '%d/%d' % (count, len(states)))
