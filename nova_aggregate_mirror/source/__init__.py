# SPDX-License-Identifier: Apache-2.0
"""State of nova: host aggregates, their member hosts and compute nodes."""

import collections
from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import uuids

Memberships = abc.Mapping[str, frozenset[str]]
Down = abc.Mapping[str, exceptions.Failure]
"""Cells that did not answer: name to what their databases did."""
RESTART = 'restart nova-compute on that host'
UNNAMED = 'unnamed'


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


@dataclasses.dataclass(frozen=True, order=True)
class HostAggregate:
    """A host aggregate, whose UUID in nova may be none.

    Nova accepts that and placement does not: no request and no ledger has it.
    """

    name: str
    id: int
    uuid: str | None
    """What nova has, which may be any text."""
    hosts: frozenset[str] = frozenset()
    """Its member hosts, as far as they were read."""

    def __str__(self) -> str:
        return 'aggregate %s (ID %d)' % (self.name, self.id)

    @property
    def problem(self) -> str:
        """Describe what is not mirrored because of it."""
        uuid = 'NULL' if self.uuid is None else repr(self.uuid)
        return (
            '%s is not mirrored: its UUID in nova is %s; meanwhile nothing is '
            'removed from the resource providers of its hosts' % (self, uuid))

    @property
    def step(self) -> str:
        return ('in nova\'s API database, set the uuid of the row with id %d '
                'in the table aggregates to the one that it had, or to a new '
                'one' % self.id)


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
    """Compute node UUID, which is also the provider UUID, to host: the first
    of its hosts, by name, if the node is in ``shared``."""
    unmapped: frozenset[str] = frozenset()
    """Member hosts without a mapping to a cell that has a node of them."""
    nodes_unmapped: frozenset[str] = dataclasses.field(
        default=frozenset(), compare=False)
    """Compute nodes of hosts without a host mapping; of ``read_all`` only."""
    cells_down: Down = dataclasses.field(default_factory=dict)
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
    invalid_aggregates: frozenset[HostAggregate] = frozenset()
    """Aggregates without a UUID: those of the hosts, or all. What a member
    host of such an aggregate is in is not known completely."""
    invalid_nodes: frozenset[NodeRow] = frozenset()
    """Rows of compute nodes whose UUID is none: ``nodes`` has none of them."""
    unlisted: frozenset[str] = dataclasses.field(
        default=frozenset(), compare=False)
    """Hosts with a nova-compute of which nova-api lists no compute node."""
    obstacles: abc.Mapping[str, tuple[str, str]] = dataclasses.field(
        default_factory=dict, compare=False)
    """Hosts of ``unmapped_or_nodeless`` to what is wrong with each, and the
    step; of ``read_all`` only."""
    cells: int = dataclasses.field(default=0, compare=False)
    """Number of cells, those that did not answer included; 0 if unknown."""

    @classmethod
    def of_aggregates(cls, rows: abc.Iterable[abc.Sequence[Any]]) -> 'Nova':
        """Create it with aggregates and their members, as each reader does.

        :param rows: ID, UUID and name of an aggregate, and some of its members
        """
        names: dict[str, str] = {}
        members = collections.defaultdict[str, set[str]](set)
        invalid = collections.defaultdict[Any, set[str]](set)
        for number, uuid, name, *hosts in rows:
            name = name or UNNAMED
            if uuids.is_uuid(uuid):
                names.setdefault(uuid, name)
                for host in filter(None, hosts):
                    members[host].add(uuid)
            else:
                invalid[name, number, uuid].update(filter(None, hosts))
        invalid_aggregates = frozenset(
            HostAggregate(name, number, uuid, frozenset(hosts))
            for (name, number, uuid), hosts in invalid.items())
        return cls(
            names, {host: frozenset(members[host]) for host in members}, {},
            invalid_aggregates=invalid_aggregates)

    def with_nodes(self, rows: abc.Iterable[NodeRow],
                   homes: abc.Mapping[str, str], complete: bool,
                   nodes: abc.Collection[str] = ()) -> 'Nova':
        """Add the compute nodes, as one answer of all cells.

        Several cells can have a node: after its host was moved to another
        cell, or while another nova-compute has taken over an ironic node. The
        rows whose host is mapped to their cell say where it is. Of a node
        without such a row, all rows do.

        :param homes: host to the name of the cell of its host mapping
        :param complete: whether all cells were searched for the nodes without
            a mapped row, and answered; otherwise these are unknown
        :param nodes: further compute nodes; one without any row does not exist
        """
        by_node: dict[str, set[NodeRow]] = {node: set() for node in nodes}
        invalid = set()
        for row in rows:
            # No request may name a text that is no UUID: it has no provider.
            if uuids.is_uuid(row.node):
                by_node.setdefault(row.node, set()).add(row)
            else:
                invalid.add(row)
        located: dict[str, str] = {}
        shared: dict[str, tuple[NodeRow, ...]] = {}
        unknown: dict[str, frozenset[str]] = {}
        for node, node_rows in sorted(by_node.items()):
            home = {row for row in node_rows
                    if homes.get(row.host) == row.cell}
            counted = home or node_rows
            hosts = sorted({row.host for row in counted})
            if not (home or complete):
                unknown[node] = frozenset(hosts)
            elif hosts:
                located[node] = hosts[0]
                if len(hosts) > 1:
                    shared[node] = tuple(sorted(counted))
        return dataclasses.replace(
            self, nodes=located, shared=shared, unknown=unknown,
            invalid_nodes=frozenset(invalid))

    @property
    def unread(self) -> list[str]:
        """Name the cells and hosts that may have further compute nodes."""
        hosts = self.unlisted | {row.host for row in self.invalid_nodes}
        return [*('cell ' + name for name in sorted(self.cells_down)),
                *('host ' + host for host in sorted(hosts))]

    def hosts_of(self, node: str) -> frozenset[str]:
        """Return the hosts of a compute node that exists and is known."""
        if node in self.shared:
            return frozenset(row.host for row in self.shared[node])
        return frozenset([self.nodes[node]] if node in self.nodes else [])

    def host_names(self, node: str) -> str:
        """Return the hosts of a compute node, for a message."""
        return ', '.join(sorted(self.hosts_of(node)))

    def wanted(self, node: str) -> frozenset[str]:
        """Return the aggregates that a provider must be in: of all its hosts.

        A UUID that is not, or no longer, a compute node has no aggregates.
        This does not hold for nodes that are ``unknown``.
        """
        first, *others = self._memberships(node) or [frozenset[str]()]
        return first.intersection(*others)

    def disputed(self, node: str) -> frozenset[str]:
        """Return the aggregates of some but not all hosts of a node.

        For this provider they are foreign: neither added nor removed.
        """
        memberships = self._memberships(node)
        return frozenset[str]().union(*memberships) - self.wanted(node)

    def _memberships(self, node: str) -> list[frozenset[str]]:
        """Return the aggregates of each host of a compute node."""
        return [self.members.get(host, frozenset())
                for host in self.hosts_of(node)]

    def may_lack(self, node: str) -> bool:
        """Check whether ``wanted`` may lack aggregates of a node.

        Its host is a member of an aggregate without a UUID in nova: what only
        placement has for the node may be that aggregate.
        """
        return any(aggregate.hosts & self.hosts_of(node)
                   for aggregate in self.invalid_aggregates)

    def nodes_of(self, hosts: abc.Collection[str]) -> frozenset[str]:
        return frozenset(node for node in self.nodes
                         if self.hosts_of(node).intersection(hosts))

    def compute_nodes(self) -> frozenset[str]:
        """Return all compute nodes, including those that are unknown."""
        return frozenset(self.nodes).union(self.unknown)

    def hosts(self) -> frozenset[str]:
        """Return the hosts of all compute nodes."""
        return frozenset(self.nodes.values()).union(
            *self.unknown.values(), *map(self.hosts_of, self.shared))

    def nodeless(self) -> frozenset[str]:
        """Return the member hosts that are known to have no compute node."""
        return (frozenset(self.members) - self.hosts() - self.hosts_down.keys()
                - {row.host for row in self.invalid_nodes})

    def unmapped_or_nodeless(self) -> list[str]:
        """List the member hosts that are unmapped or have no node."""
        return sorted(self.unmapped | self.nodeless())
