# SPDX-License-Identifier: Apache-2.0
"""Data sources and targets of a reconciler."""

import dataclasses

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.reconcile import progress
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement, the ledger, and how requests are run in parallel."""

    ledger: journal.Ledger
    nova: source.Source
    placement: client.Client
    each: parallel.Each = parallel.Workers().each
    display: progress.Progress = progress.Silent()
