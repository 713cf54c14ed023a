# SPDX-License-Identifier: Apache-2.0
"""Hosts of compute nodes, as one answer of all cells: pure, no I/O.

The same node can be in several cells: after its host was moved to another
cell, or while another nova-compute has taken over an ironic node.
"""

from collections import abc
import dataclasses

from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids


def locate(rows: abc.Iterable[source.NodeRow], homes: abc.Mapping[str, str],
           complete: bool, nodes: abc.Collection[str] = (),
           nova: source.Nova = source.Nova.of_aggregates(())) -> source.Nova:
    """Add the compute nodes to a ``nova`` that has aggregates and members.

    The rows whose host is mapped to their cell say where a node is. Of a node
    without such a row, all rows do.

    :param homes: host to the name of the cell of its host mapping
    :param complete: whether all cells were searched for the nodes without a
        mapped row, and answered; otherwise these are unknown
    :param nodes: further compute nodes; one without any row does not exist
    """
    by_node: dict[str, set[source.NodeRow]] = {node: set() for node in nodes}
    invalid = set()
    for row in rows:
        # No request may name a text that is no UUID: it has no provider.
        if uuids.is_uuid(row.node):
            by_node.setdefault(row.node, set()).add(row)
        else:
            invalid.add(row)
    located: dict[str, str] = {}
    shared: dict[str, tuple[source.NodeRow, ...]] = {}
    unknown: dict[str, frozenset[str]] = {}
    for node, node_rows in sorted(by_node.items()):
        home = {row for row in node_rows if homes.get(row.host) == row.cell}
        counted = home or node_rows
        hosts = sorted({row.host for row in counted})
        if not (home or complete):
            unknown[node] = frozenset(hosts)
        elif hosts:
            located[node] = hosts[0]
            if len(hosts) > 1:
                shared[node] = tuple(sorted(counted))
    return dataclasses.replace(
        nova, nodes=located, shared=shared, unknown=unknown,
        invalid_nodes=frozenset(invalid))
