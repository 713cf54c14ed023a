# SPDX-License-Identifier: Apache-2.0
"""What a reconciler reads from and writes to."""

import dataclasses

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.reconcile import progress
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement and the ledger, and how many requests run at once."""

    ledger: journal.Ledger
    nova: source.Source
    placement: client.Client
    each: parallel.Each = parallel.Workers().each
    display: progress.Progress = progress.Silent()
