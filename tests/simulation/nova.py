# SPDX-License-Identifier: Apache-2.0
"""An in-memory nova: aggregates, hosts, compute nodes, cells."""

import collections
from collections import abc
from tests.simulation import world as simulated

# The last cell has no host of its own.
CELLS = ('c1', 'c2', 'c3')
BAD_CELL = 'c2'
HOMES = {'h1': 'c1', 'h2': BAD_CELL, 'h9': 'c1'}
FORMER_HOST = 'h0'
"""A host without a host mapping, which once had a compute node."""


class Nova:
    """Nova's databases, and what its methods do to them."""

    def __init__(self, world: simulated.World) -> None:
        self._world = world
        self.ids: dict[int, str] = {}
        """All aggregates that ever existed, by number."""
        self.hosts_of: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
        """Compute node to its host, in the cell of the host."""
        self.former: dict[str, str] = {}
        """Compute node to its host in the last cell, which is no longer its
        host."""
        self.homes: dict[str, str] = dict(HOMES)
        """Host to the cell of its host mapping."""
        self.bad_cells: dict[str, str] = {}
        """Cell to what is bad about its database."""
        self.nodes_ever: set[str] = set()
        self.deletions: collections.Counter[str] = collections.Counter()
        """How often users deleted, or tried to delete, each aggregate through
        this package."""
        self.restored = False
        """Whether a restored database may have undone a deletion, whichever
        state was read."""
        self.marked: set[str] = set()
        """Aggregates with a deletion marker in the ledger."""

    @property
    def deleted(self) -> set[str]:
        """Return the aggregates that users deleted, or tried to delete."""
        return {uuid for uuid, count in self.deletions.items() if count}

    def boot(self, node: str, host: str) -> None:
        """Start a compute node, possibly on a new host."""
        self.nodes[node] = host
        self.nodes_ever.add(node)

    def call(self, method: str, number: int, host: str,
             judged: abc.Callable[[], bool]) -> None:
        """Run nova's method; it may fail before or after its commit.

        :param judged: whether another process may already have read the truth
            that lets it close this call's row, with no guarantee that a later
            read follows
        """
        def commit_late() -> None:
            before = judged()
            self.commit(method, number, host)
            if before:
                self.unexpected(number, host)

        self._world.send(commit_late, 'nova: %s of %s, host %s', method,
                         number, host or '-')
        if self._world.down == 'nova':
            raise simulated.NovaError('away')
        self.commit(method, number, host)
        if self._world.fault(0.1):
            raise simulated.NovaError('committed, and failed then')

    def commit(self, method: str, number: int, host: str) -> None:
        uuid = self.ids[number]
        hosts = self.hosts_of.get(uuid)
        if (hosts is None or (method == 'add' and host in hosts)
                or (method == 'remove' and host not in hosts)
                or (method == 'delete' and hosts)):
            raise simulated.NovaError('refused')
        if method == 'add':
            hosts.add(host)
        elif method == 'remove':
            hosts.discard(host)
        else:
            del self.hosts_of[uuid]

    def unexpected(self, number: int, host: str) -> None:
        """Note a change that only a full sync is required to find."""
        self._world.disturbed |= self.nodes_on({host})
        self._world.say('only a full sync finds aggregate %s, host %s',
                        number, host or '-')

    def nodes_in(self, cell: str) -> dict[str, str]:
        """Return the rows of a cell's table of compute nodes."""
        rows = {node: host for node, host in self.nodes.items()
                if self.homes[host] == cell}
        return {**self.former, **rows} if cell == CELLS[-1] else rows

    def nodes_on(self, hosts: abc.Iterable[str]) -> set[str]:
        return {node for node, host in self.nodes.items() if host in hosts}

    def wanted(self, node: str) -> frozenset[str]:
        """Return the aggregates that the invariant requires for a node."""
        host = self.nodes.get(node)
        return frozenset(uuid for uuid, hosts in self.hosts_of.items()
                         if host in hosts)
