# SPDX-License-Identifier: Apache-2.0
"""The parts of one process's journal, over one database."""

from collections.abc import Callable
import time

from oslo_config import cfg

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.journal import rows


class Journal:
    """What one process keeps in the journal's database.

    Nothing is opened before one of the parts is first used.

    :param conf: nova's configuration, with this package's options
    :param database: a database that is open and up to date already
    :param now: seconds since the epoch
    :param clock: seconds of a clock that is never set
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 database: engine.Database | None = None,
                 now: Callable[[], float] = time.time,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.database = transactions.Transactions(conf, database)
        self.ledger = ledger.DatabaseLedger(conf, self.database, now, clock)
        self.rows = rows.Rows(self.database, self.ledger, now)
        self.history = history.History(self.database)
