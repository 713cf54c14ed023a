# SPDX-License-Identifier: Apache-2.0
"""Journal of a process: rows and ledger in one database."""

from collections import abc
import time

from oslo_config import cfg

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import stored_rows
from nova_aggregate_mirror.journal import synced_ledger


class Journal:
    """Rows and ledger in the journal's database, opened on first use.

    :param database: one that is open already
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 database: engine.Database | None = None,
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self.database = database or engine.Database(conf)
        self.ledger = synced_ledger.SyncedLedger(
            conf, self.database, now, clock)
        self.rows = stored_rows.StoredRows(self.database, self.ledger, now)
