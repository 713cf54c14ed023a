# SPDX-License-Identifier: Apache-2.0
"""Data sources and targets of a reconciler."""

import dataclasses

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror import source


class Progress:
    """Display of steps and of completed providers; this one shows nothing."""

    def step(self, text: str) -> None:
        """Start a new step."""

    def expect(self, count: int) -> None:
        """Set the number of providers to converge."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement, the ledger, and how requests are run in parallel."""

    ledger: journal.Ledger
    nova: source.Source
    placement: client.Client
    each: parallel.Each = parallel.Workers().each
    display: Progress = Progress()
