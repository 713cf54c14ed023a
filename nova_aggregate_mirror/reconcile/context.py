# SPDX-License-Identifier: Apache-2.0
"""What a converge reads and writes."""

import dataclasses
import typing

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import source

if typing.TYPE_CHECKING:
    # Needs SQLAlchemy, which each command of the openstack client would load.
    from nova_aggregate_mirror.journal import store


class Progress:
    """Display of steps and of completed providers; this one shows nothing."""

    def step(self, text: str, providers: int = 0) -> None:
        """Start a new step, which completes so many providers."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""

    def tell(self, text: str) -> None:
        """Tell how far a step is; most of these are not shown."""


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement, the journal, and how requests are run in parallel."""

    ledger: journal.Ledger
    nova: source.Source
    placement: client.Client
    rows: 'store.StoredRows | None' = None
    """None where no journal is used."""
    each: isolation.Each = isolation.in_turn
    display: Progress = Progress()
    batch: int = 200
    """Hosts per read of nova's truth; bounds memory and the time between
    reading the truth and writing to placement."""
