# SPDX-License-Identifier: Apache-2.0
"""Facts about a request, from which its explanation follows: pure, no I/O."""

from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror import source


def _none() -> Any:
    return dataclasses.field(default_factory=dict)


class Refusal(Exception):
    """The failure of a request whatever hosts there are."""

    def __init__(self, condition: str, reason: str, step: str = '') -> None:
        super().__init__(reason)
        self.condition = condition
        self.step = step


@dataclasses.dataclass(frozen=True)
class FilterRun:
    """The result of a host filter of nova."""

    name: str
    rejected: abc.Mapping[str, str]
    """Rejected compute node to what the filter has logged about it."""
    broken_rules: frozenset[str] = frozenset()
    """Compute nodes whose aggregates, as nova has them, exclude the request;
    the guard reports them."""
    module: str = ''
    """The module of its class; empty for one of nova."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Observations about a request, and about each compute node."""

    # The request, and what nova and the journal have about hosts.
    nova: source.Nova
    answer: explanation.Answer = explanation.Answer()
    """What is known before conditions are."""
    operation: str = explanation.CREATE
    zones: abc.Mapping[str, str] = _none()
    """Host to its availability zone, if it is in one."""
    unpin: str = ''
    """What unpins a server that exists from its zone."""
    scope: frozenset[str] = frozenset()
    """The compute nodes to explain."""
    disabled: abc.Mapping[str, str] = _none()
    """Host whose nova-compute is disabled, to the reason given for it."""
    down: abc.Mapping[str, bool] = _none()
    """Host whose nova-compute is down for nova, to whether it is forced."""
    serviceless: frozenset[str] = frozenset()
    """Compute nodes of hosts without a nova-compute service."""
    cells_disabled: frozenset[str] = frozenset()
    """Compute nodes of the cells that nova-scheduler leaves out."""
    pending: abc.Mapping[str, float] = _none()
    """Host to the age of its oldest pending row of the journal, in seconds."""

    # What nova's request filters and placement respond.
    refusal: Refusal | None = None
    funnel: candidates.Funnel | None = None
    """None if nova does not query placement for the request."""
    name_conflicts: abc.Mapping[str, exceptions.MirrorError] = _none()
    """Compute node without a provider to why it cannot be created."""
    figures: abc.Mapping[str, candidates.Inventories] = _none()
    """Inventories of some compute nodes with too few resources."""
    holders: abc.Mapping[str, resource_holders.Holders] = _none()
    """Provider of them with too few resources to who holds these."""

    # What nova-scheduler does with the candidates of placement.
    elsewhere: frozenset[str] = frozenset()
    """Compute nodes of other cells than the one that a server stays in."""
    states: frozenset[str] = frozenset()
    """Compute nodes that nova-scheduler has a host state of."""
    ignored: frozenset[str] = frozenset()
    """Compute nodes of the hosts that the request leaves out."""
    requested: frozenset[str] = frozenset()
    """Compute nodes of the hosts that the request names or does not ignore."""
    filter_runs: abc.Sequence[FilterRun] = ()
    scores: abc.Mapping[str, abc.Mapping[str, float]] = _none()
    """Compute node that passes every filter to its weights by weigher."""
    unmapped: frozenset[str] = frozenset()
    """Compute nodes of hosts that are mapped to no cell."""

    def staying_on(self, host: str, node: str) -> 'Facts':
        """Return the facts of a server that stays on its host."""
        nodes = self.nova.nodes_of({host})
        # The names of ironic's, of which a host has many, are their UUIDs.
        return dataclasses.replace(self, requested=nodes & {node} or nodes)

    def host(self, node: str) -> str:
        return self.nova.nodes.get(node, node)
