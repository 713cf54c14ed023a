# SPDX-License-Identifier: Apache-2.0
"""Hosts of compute nodes, as one answer of all cells: pure, no I/O.

The same node can be in several cells: after its host was moved to another
cell, or while another nova-compute has taken over an ironic node.
"""

from collections import abc

from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids

Homes = abc.Mapping[str, str]


def decisive(rows: abc.Collection[source.NodeRow], homes: Homes, complete: bool
             ) -> frozenset[source.NodeRow] | None:
    """Return the rows that say where a compute node is.

    :param rows: the rows of one compute node
    :param complete: whether every cell was searched for the node's UUID and
        answered
    :returns: the rows whose host is mapped to their cell or, if there are
        none, all rows; None if a cell that did not answer may have the former
    """
    at_home = frozenset(
        row for row in rows if homes.get(row.host) == row.cell)
    return at_home or (frozenset(rows) if complete else None)


def undecided(rows: abc.Iterable[source.NodeRow], homes: Homes,
              nodes: abc.Collection[str]) -> frozenset[str]:
    """Return the nodes for which every cell has to be searched.

    :param nodes: further compute nodes, which may have no row
    """
    return frozenset(
        node for node, node_rows in _by_node(rows, nodes).items()
        if decisive(node_rows, homes, complete=False) is None)


def locate(rows: abc.Iterable[source.NodeRow], homes: Homes, complete: bool,
           nodes: abc.Collection[str] = ()) -> source.Nova:
    """Return nova with the hosts of compute nodes, and nothing else.

    :param complete: whether all cells answered that were searched for the
        undecided nodes
    :param nodes: further compute nodes. One without any row does not exist if
        ``complete``; otherwise it is unknown
    """
    rows = list(rows)
    located: dict[str, str] = {}
    shared: dict[str, tuple[source.NodeRow, ...]] = {}
    unknown: dict[str, frozenset[str]] = {}
    for node, node_rows in sorted(_by_node(rows, nodes).items()):
        counted = decisive(node_rows, homes, complete)
        if counted is None:
            unknown[node] = frozenset(row.host for row in node_rows)
        elif counted:
            hosts = sorted({row.host for row in counted})
            located[node] = hosts[0]
            if len(hosts) > 1:
                shared[node] = tuple(sorted(counted))
    invalid = frozenset(row for row in rows if not uuids.is_uuid(row.node))
    return source.Nova({}, {}, located, shared=shared, unknown=unknown,
                       invalid_nodes=invalid)


def _by_node(rows: abc.Iterable[source.NodeRow], nodes: abc.Collection[str]
             ) -> abc.Mapping[str, set[source.NodeRow]]:
    by_node: dict[str, set[source.NodeRow]] = {node: set() for node in nodes}
    for row in rows:
        # No request may name a text that is no UUID: it has no provider.
        if uuids.is_uuid(row.node):
            by_node.setdefault(row.node, set()).add(row)
    return by_node
