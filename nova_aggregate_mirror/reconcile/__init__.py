# SPDX-License-Identifier: Apache-2.0
"""Comparison of nova with placement, and repair of the differences."""

from collections import abc
from typing import Protocol

from nova_aggregate_mirror import source


class Source(Protocol):
    """Interface to nova's state; each call reads from the writer, uncached."""

    def aggregates(self) -> abc.Mapping[str, str]:
        """Read every aggregate that has a UUID, UUID to name."""

    def with_hosts(self) -> frozenset[str]:
        """Read the UUIDs of the aggregates that have hosts and a UUID."""

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: source.Down | None = None) -> source.Nova:
        """Read nova's state for the given hosts, nodes and aggregates.

        By default a mapped host is searched for in its own cell, and then only
        undecided nodes in others.

        :param aggregates: aggregate UUIDs to check for existence
        :param down: cells that did not answer ``read_all``: only the nodes are
            searched for, in all other cells and with the same patience
        """

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        """Read the names of those compute nodes, by UUID, that a cell has."""

    def read_all(self) -> source.Nova:
        """Read nova's state for every host and every aggregate."""


class Progress:
    """Display of steps and of completed providers; this one shows nothing."""

    def step(self, text: str, providers: int = 0) -> None:
        """Start a new step, which completes so many providers."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""

    def tell(self, text: str) -> None:
        """Tell how far a step is; most of these are not shown."""
