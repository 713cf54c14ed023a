# SPDX-License-Identifier: Apache-2.0
"""The nova-api processes that the journal has seen, for display."""

import time
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models

KEEP = 7 * 24 * 3600.0
"""Seconds after which the row of a process is deleted, but the newest."""
AHEAD = 3600.0
"""Seconds by which the clock of another host may be ahead: what is later is
wrong, and would be the latest for ever."""
_PROCESSES = models.processes.c


class ProcessRecord(NamedTuple):
    """A nova-api process, as it last wrote to the journal."""

    host: str
    version: str
    mode: str
    seen_at: float
    """Seconds since the epoch, by the clock of its host."""


def read(database: engine.Database, since: float = 0.0
         ) -> list[ProcessRecord]:
    """Read the processes that were seen since then, oldest first."""
    seen = _PROCESSES.seen_at.between(since, time.time() + AHEAD)
    columns = [_PROCESSES[field] for field in ProcessRecord._fields]
    statement = sa.select(*columns).where(seen).order_by(
        _PROCESSES.seen_at, _PROCESSES.host, _PROCESSES.id)
    return [ProcessRecord(*row) for row in database.read(statement)]


def forget(database: engine.Database, now: float) -> None:
    """Delete rows of old processes but the newest, and those of wrong clocks.

    By key: for a condition on the time, a server would lock all rows.
    """
    def work(connection: Any) -> None:
        rows = connection.execute(sa.select(models.processes).order_by(
            _PROCESSES.seen_at)).all()
        past = [row for row in rows if row.seen_at <= now + AHEAD]
        future = rows[len(past):]
        # Without the last, which is the newest.
        old = [row for row in past[:-1] if row.seen_at < now - KEEP]
        for process in sorted(row.id for row in old + future):
            connection.execute(sa.delete(models.processes).where(
                _PROCESSES.id == process))

    database.run(work)
