# SPDX-License-Identifier: Apache-2.0
"""Data sources and targets of a reconciler."""

import dataclasses
from typing import Protocol

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.reconcile import failing
from nova_aggregate_mirror import source

Failing = failing.Failing


class Progress(Protocol):
    """Receiver of steps and of completed providers."""

    def step(self, text: str) -> None:
        """Start a new step."""

    def expect(self, count: int) -> None:
        """Set the number of providers to converge."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""


class Silent:
    """No output."""

    def step(self, text: str) -> None:
        pass

    def expect(self, count: int) -> None:
        pass

    def advance(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement, the ledger, and how requests are run in parallel."""

    ledger: journal.Ledger
    nova: source.Source
    placement: client.Client
    each: parallel.Each = parallel.Workers().each
    display: Progress = Silent()
    failing: Failing = dataclasses.field(default_factory=Failing)
