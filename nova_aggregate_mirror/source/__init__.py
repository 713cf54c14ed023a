# SPDX-License-Identifier: Apache-2.0
"""What nova wants: host aggregates, their members and the compute nodes."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Protocol

Memberships = Mapping[str, frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Nova:
    """What nova says at one moment about some hosts, or about all of them.

    A host that is asked for and unknown to nova is simply not mentioned. What
    could not be read is listed, and never looks like an empty answer.
    """

    aggregates: Mapping[str, str]
    """Aggregates that exist, UUID to name: those asked for, and those that the
    hosts are members of."""

    members: Memberships
    """Host to the UUIDs of the aggregates that it is a member of."""

    nodes: Mapping[str, str]
    """Compute node UUID, which is its provider's too, to its host."""

    unmapped: frozenset[str] = frozenset()
    """Member hosts without a host mapping."""

    cells_down: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Cells that did not answer, name to the reason."""

    hosts_down: frozenset[str] = frozenset()
    """Member hosts of which a compute node may be hidden in such a cell."""

    def wanted(self, node: str) -> frozenset[str]:
        """Aggregates that a provider must be in.

        A UUID that is no compute node (any more) belongs to no aggregate.
        """
        return self.members.get(self.nodes.get(node, ''), frozenset())

    def desired(self) -> Memberships:
        """Provider to aggregates, for every compute node that was read."""
        return {node: self.wanted(node) for node in self.nodes}

    def nodes_of(self, hosts: Collection[str]) -> frozenset[str]:
        return frozenset(node for node, host in self.nodes.items()
                         if host in hosts)

    def nodeless(self) -> frozenset[str]:
        """Member hosts that have no compute node, as far as cells answered."""
        return (frozenset(self.members) - frozenset(self.nodes.values())
                - self.hosts_down)


@dataclasses.dataclass(frozen=True)
class Place:
    """What one operation is about."""

    aggregate_uuid: str
    """Empty when nova has no such aggregate."""

    nodes: frozenset[str] = frozenset()
    """UUIDs of the host's compute nodes, in the cells that answered."""

    cells_down: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Cells that did not answer, name to the reason."""


class Source(Protocol):
    """Where the truth is read; each call reads anew, from the writer."""

    def place(self, aggregate_id: int, host: str = '') -> Place:
        """UUID of an aggregate, and the compute nodes of one host."""

    def aggregates(self) -> Mapping[str, str]:
        """Every aggregate, UUID to name."""

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> Nova:
        """What nova says about these hosts, nodes and aggregates.

        :param hosts: hosts whose compute nodes and memberships are wanted
        :param nodes: compute node UUIDs, wherever they live now
        :param aggregates: aggregate UUIDs of which to tell if they exist
        """

    def read_all(self) -> Nova:
        """What nova says about every host and every aggregate."""
