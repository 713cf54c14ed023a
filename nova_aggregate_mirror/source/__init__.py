# SPDX-License-Identifier: Apache-2.0
"""State of nova: host aggregates, their member hosts and compute nodes.

Long because the interface to nova and all that it returns are one contract.
"""

from collections import abc
import dataclasses
from typing import Protocol

Memberships = abc.Mapping[str, frozenset[str]]


@dataclasses.dataclass(frozen=True, order=True)
class NodeRow:
    """A compute node as a cell has it."""

    cell: str
    """Name of the cell; empty if it is not known."""
    node: str
    """UUID, as placement writes it."""
    host: str

    def __str__(self) -> str:
        return 'host %s%s' % (
            self.host, ' in cell %s' % self.cell if self.cell else '')


@dataclasses.dataclass(frozen=True)
class Nova:
    """Snapshot of nova's state for some or all hosts.

    Hosts that nova does not have are omitted. What could not be read is
    listed, so that it is never mistaken for an empty result.
    """

    aggregates: abc.Mapping[str, str]
    """UUID to name: aggregates of the hosts, and requested ones that exist."""

    members: Memberships
    """Host to the UUIDs of its aggregates."""

    nodes: abc.Mapping[str, str]
    """Compute node UUID, which is also the provider UUID, to host; to the
    first one if it is in ``shared``."""

    unmapped: frozenset[str] = frozenset()
    """Member hosts without a host mapping."""

    nodes_unmapped: frozenset[str] = dataclasses.field(
        default=frozenset(), compare=False)
    """Compute nodes of hosts without a host mapping; of ``read_all`` only."""

    cells_down: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Cells that did not answer, name to the reason."""

    hosts_down: Memberships = dataclasses.field(default_factory=dict)
    """Member hosts that may have a compute node in ``cells_down``, to the
    names of these cells."""

    shared: abc.Mapping[str, tuple[NodeRow, ...]] = dataclasses.field(
        default_factory=dict)
    """Compute nodes that several hosts have, to the rows that say so."""

    unknown: Memberships = dataclasses.field(default_factory=dict)
    """Compute nodes, existing or not, whose host only a cell in
    ``cells_down`` may tell, to the hosts in the other cells. Nothing is known
    about their aggregates: they are left unchanged."""

    def hosts_of(self, node: str) -> frozenset[str]:
        """Return the hosts of a compute node that exists and is known."""
        if node in self.shared:
            return frozenset(row.host for row in self.shared[node])
        return frozenset({self.nodes[node]} if node in self.nodes else ())

    def host_names(self, node: str) -> str:
        """Return the hosts of a compute node, for a message."""
        return ', '.join(sorted(self.hosts_of(node)))

    def wanted(self, node: str) -> frozenset[str]:
        """Return the aggregates that a provider must be in: of all its hosts.

        A UUID that is not, or no longer, a compute node has no aggregates.
        This does not hold for nodes that are ``unknown``.
        """
        memberships = [self.members.get(host, frozenset())
                       for host in self.hosts_of(node)]
        return (memberships[0].intersection(*memberships) if memberships
                else frozenset())

    def disputed(self, node: str) -> frozenset[str]:
        """Return the aggregates of some but not all hosts of a node.

        For this provider they are foreign: neither added nor removed.
        """
        return frozenset[str]().union(*(
            self.members.get(host, frozenset())
            for host in self.hosts_of(node))) - self.wanted(node)

    def desired(self) -> Memberships:
        """Return provider to aggregates, for every node with a host."""
        return {node: self.wanted(node) for node in self.nodes}

    def nodes_of(self, hosts: abc.Collection[str]) -> frozenset[str]:
        return frozenset(node for node in self.nodes
                         if not self.hosts_of(node).isdisjoint(hosts))

    def compute_nodes(self) -> frozenset[str]:
        """Return all compute nodes, including those that are unknown."""
        return frozenset(self.nodes).union(self.unknown)

    def hosts(self) -> frozenset[str]:
        """Return the hosts of all compute nodes."""
        return frozenset(self.nodes.values()).union(
            *self.unknown.values(), *map(self.hosts_of, self.shared))

    def nodeless(self) -> frozenset[str]:
        """Return the member hosts that are known to have no compute node."""
        return (frozenset(self.members) - self.hosts()
                - self.hosts_down.keys())


@dataclasses.dataclass(frozen=True)
class Scope:
    """Aggregate, and compute nodes of a host, that an operation affects."""

    aggregate_uuid: str
    """Empty when nova has no such aggregate."""

    nodes: frozenset[str] = frozenset()
    """UUIDs of the host's compute nodes, in the cells that answered."""

    cells_down: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """UUIDs of the host's aggregates."""


Since = float | None
"""Seconds since the epoch; None if nova does not tell."""


@dataclasses.dataclass(frozen=True)
class Aggregates:
    """Every host aggregate, by UUID."""

    names: abc.Mapping[str, str]
    metadata: abc.Mapping[str, abc.Mapping[str, str]]
    members: abc.Mapping[str, abc.Mapping[str, Since]]
    """Host to its aggregates, each with the time when it was added."""
    changed: abc.Mapping[tuple[str, str], Since] = dataclasses.field(
        default_factory=dict)
    """Aggregate and metadata key to the time when the value was set."""

    def of_host(self, host: str) -> frozenset[str]:
        return frozenset(self.members.get(host, ()))


@dataclasses.dataclass(frozen=True)
class Keys:
    """Metadata keys of aggregates, by name and by prefix."""

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __or__(self, other: 'Keys') -> 'Keys':
        return Keys(self.names | other.names, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.names or self.prefixes)

    def __contains__(self, key: str) -> bool:
        return key in self.names or key.startswith(tuple(self.prefixes))


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedServer:
    """A server that is on a host."""

    uuid: str
    name: str
    host: str
    project: str
    state: str
    """Nova's ``vm_state``."""
    arrived: float | None = None
    """When it arrived on its host, in seconds since the epoch, if known."""
    moved: str = ''
    """Type of the migration to its host; empty if none is recorded."""


MOVED = ('finished', 'confirmed', 'completed', 'done')
"""Statuses of a migration after which the server is on its new host."""

MOVING = ('resize_prep', 'resize_migrating', 'resize_migrated',
          'resize_finish', 'resize_reverting')
"""Task states in which host and flavor of a server may not belong together."""

LIVE = 'live-migration'

LAUNCH_DELAY = 60.0
"""Seconds from a finished resize to the launch that nova records for it: its
migration is saved first, in a call that may take rpc_response_timeout."""


def with_move(server: PlacedServer, kind: str | None,
              changed_at: float | None) -> PlacedServer:
    """Add the last migration of a server to its host.

    :param kind: type of the migration; None if there is none
    :param changed_at: when it was last changed, which may be days after the
        server has moved, except for a live migration
    """
    if kind is None or (changed_at or 0.0) + LAUNCH_DELAY < (
            server.arrived or 0.0):
        # It was launched afterwards, for example unshelved.
        return server
    return dataclasses.replace(
        server, moved=kind,
        arrived=changed_at if kind == LIVE else server.arrived or changed_at)


class Source(Protocol):
    """Interface to nova's state; each call reads from the writer, uncached."""

    def aggregates(self) -> abc.Mapping[str, str]:
        """Read every aggregate, UUID to name."""

    def with_hosts(self) -> frozenset[str]:
        """Read the UUIDs of the aggregates that have hosts."""

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: abc.Mapping[str, str] | None = None) -> Nova:
        """Read nova's state for the given hosts, nodes and aggregates.

        :param aggregates: aggregate UUIDs to check for existence
        :param down: cells that did not answer ``read_all``, name to the
            reason: only the given nodes are searched for, in all other cells
            and with the same patience. By default a mapped host is searched
            for in its own cell, and then only undecided nodes in others
        """

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        """Read the names of compute nodes that nova-compute gives providers.

        :param nodes: UUIDs; those that no cell has are omitted
        """

    def read_all(self) -> Nova:
        """Read nova's state for every host and every aggregate."""
