# SPDX-License-Identifier: Apache-2.0
"""An in-memory nova: aggregates, hosts, compute nodes, and their readers."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import types

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import nodes as compute_nodes
from tests.simulation import world as simulated

CELL = 'cell of h2'
# The hosts of that cell.
IN_CELL = frozenset({'h2'})


class Nova:
    """Nova's databases, and what its methods do to them."""

    def __init__(self, world: simulated.World) -> None:
        self._world = world
        self.ids: dict[int, str] = {}
        """All aggregates that ever existed, by number."""
        self.hosts_of: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
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
             judged: Callable[[], bool]) -> None:
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

    def nodes_on(self, hosts: Iterable[str]) -> set[str]:
        return {node for node, host in self.nodes.items() if host in hosts}

    def members(self, hosts: Iterable[str]) -> dict[str, frozenset[str]]:
        found = {host: frozenset(uuid for uuid, has in self.hosts_of.items()
                                 if host in has) for host in hosts}
        return {host: uuids for host, uuids in found.items() if uuids}

    def wanted(self, node: str) -> frozenset[str]:
        """Return the aggregates that the invariant requires for a node."""
        host = self.nodes.get(node)
        return frozenset(uuid for uuid, hosts in self.hosts_of.items()
                         if host in hosts)


class Source:
    """A reader of nova's databases, as a process of this package has it.

    Like the real source, it reads the API database in one transaction, and the
    nodes of the cells in a later one.
    """

    def __init__(self, world: simulated.World, nova: Nova) -> None:
        self._world = world
        self.nova = nova

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        self._read('place of %s, host %s', aggregate_id, host or '-')
        uuid = self.nova.ids.get(aggregate_id, '')
        nodes, down = self._nodes({host} - {''}, set())
        return source.Place(
            uuid if uuid in self.nova.hosts_of else '', frozenset(nodes),
            down if host in IN_CELL else {},
            self.nova.members([host]).get(host, frozenset()))

    def aggregates(self) -> dict[str, str]:
        self._read('aggregates')
        return {uuid: uuid for uuid in self.nova.hosts_of}

    def sizes(self) -> dict[str, int]:
        self._read('sizes')
        return {uuid: len(hosts) for uuid, hosts in self.nova.hosts_of.items()
                if hosts}

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = (),
             down: Mapping[str, str] | None = None) -> source.Nova:
        wanted, asked = frozenset(hosts), frozenset(nodes)
        self._read('truth of %s', wanted)
        members = self.nova.members(wanted)
        named = frozenset(aggregates).union(*members.values())
        existing = {uuid: uuid for uuid in named
                    if uuid in self.nova.hosts_of}
        found: Mapping[str, str] = {}
        silent: Mapping[str, str] = {}
        if wanted or asked:
            self._world.give_way('nodes')
            found, silent = self._nodes(
                wanted if down is None else (), asked, down or {})
            if down is None and not (
                    wanted & IN_CELL or asked - found.keys()):
                # That cell did not have to be read.
                silent = {}
        moved = frozenset(found.values()) - wanted
        if moved:
            self._read('truth of %s too', moved)
            members.update(self.nova.members(moved))
            existing.update((uuid, uuid) for host in moved
                            for uuid in members.get(host, ()))
        return _snapshot(existing, members, found, silent, wanted, asked)

    def read_all(self) -> source.Nova:
        self._read('all truth')
        hosts = frozenset().union(*self.nova.hosts_of.values())
        members = self.nova.members(hosts)
        existing = {uuid: uuid for uuid in self.nova.hosts_of}
        self._world.give_way('all nodes')
        found, silent = self._nodes(
            frozenset(self.nova.nodes.values()), frozenset())
        return _snapshot(existing, members, found, silent, hosts)

    def _nodes(self, hosts: Iterable[str], asked: Iterable[str],
               down: Mapping[str, str] = types.MappingProxyType({})
               ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        silent = (IN_CELL if self._world.down == 'cell' or CELL in down
                  else frozenset())
        return ({node: host for node, host in self.nova.nodes.items()
                 if (host in hosts or node in asked) and host not in silent},
                {CELL: 'silent'} if silent else {})

    def _read(self, what: str, *about: object) -> None:
        self._world.give_way(what, *about)
        if self._world.down == 'nova' or self._world.fault(0.02):
            raise exceptions.NovaUnavailable('nova is away')


def _snapshot(existing: Mapping[str, str],
              members: Mapping[str, frozenset[str]], found: Mapping[str, str],
              silent: Mapping[str, str], hosts: frozenset[str],
              asked: Iterable[str] = ()) -> source.Nova:
    """Return what a read found; every host is mapped to its cell."""
    cell = {host: CELL if host in IN_CELL else 'other'
            for host in found.values()}
    located = compute_nodes.locate(
        [source.Row(cell[host], node, host) for node, host in found.items()],
        cell, not silent, frozenset(asked))
    return source.Nova(
        aggregates=existing, members=members, nodes=located.nodes,
        cells_down=silent, hosts_down=dict.fromkeys(
            hosts & IN_CELL, frozenset({CELL})) if silent else {},
        shared=located.shared, unknown=located.unknown)
