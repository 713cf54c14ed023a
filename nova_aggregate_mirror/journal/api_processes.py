# SPDX-License-Identifier: Apache-2.0
"""The nova-api processes that have the hook, in the journal for display."""

from collections import abc
from importlib import metadata
import socket
import time
from typing import Any
from typing import NamedTuple

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sql_parts
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.limits import backoff

INTERVAL = 3600.0
"""Seconds between two writes of a process."""
RETRY = 60.0
"""Seconds after a write that failed; each further failure doubles them."""
KEEP = 7 * 24 * 3600.0
"""Seconds after which the row of a process is deleted, but the newest."""
AHEAD = 3600.0
"""Seconds by which the clock of another host may be ahead: what is later is
wrong, and would be the latest for ever."""
_PROCESSES = models.processes.c
VERSION = metadata.version(conf.PACKAGE)[:64]
"""The version that this process runs, also after an upgrade."""


class ProcessRecord(NamedTuple):
    """A nova-api process, as it last wrote to the journal."""

    host: str
    version: str
    mode: str
    seen_at: float
    """Seconds since the epoch, by the clock of its host."""


class Presence:
    """The row of this process, written with journal rows or by itself."""

    def __init__(self, mode: str = conf.MIRROR,
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self._id = uuidutils.generate_uuid()
        self._mode = mode
        self._now = now
        self._clock = clock
        self._pause = backoff.Backoff(RETRY, INTERVAL)
        """Until the row is to be written next."""

    def begin_write(self) -> bool:
        """Return whether to write the row now; if so, postpone the next try.

        While this table cannot be written, the record of each try fails, too.
        """
        now = self._clock()
        if now < self._pause.until:
            return False
        self._pause.extend(now)
        return True

    def set_written(self) -> None:
        """Begin the ``INTERVAL`` after a transaction that wrote the row."""
        self._pause = backoff.Backoff(
            RETRY, INTERVAL, self._clock() + INTERVAL)

    def write(self, connection: Any) -> None:
        """Write the row in a transaction of the caller."""
        values = {'host': socket.gethostname()[:255], 'mode': self._mode,
                  'version': VERSION, 'seen_at': self._now()}
        update = sa.update(models.processes).where(_PROCESSES.id == self._id)
        # The row may exist.
        if not connection.execute(update.values(**values)).rowcount:
            connection.execute(sql_parts.insert_new(
                connection, models.processes), {'id': self._id, **values})


def read(database: transactions.Transactions, since: float = 0.0
         ) -> list[ProcessRecord]:
    """Read the processes that were seen since then, oldest first."""
    seen = _PROCESSES.seen_at.between(since, time.time() + AHEAD)
    statement = sa.select(models.processes).where(seen).order_by(
        _PROCESSES.seen_at, _PROCESSES.host, _PROCESSES.id)
    return database.run(lambda connection: [
        ProcessRecord(row.host, row.version, row.mode, row.seen_at)
        for row in connection.execute(statement)])


def forget(database: transactions.Transactions, now: float) -> None:
    """Delete rows of old processes but the newest, and those of wrong clocks.

    It deletes by key: for a condition on the time, a server would lock the
    rows of all processes.
    """
    def work(connection: Any) -> None:
        rows = connection.execute(sa.select(
            _PROCESSES.id, _PROCESSES.seen_at).order_by(
                _PROCESSES.seen_at)).all()
        past = [row for row in rows if row.seen_at <= now + AHEAD]
        future = rows[len(past):]
        # Without the last, which is the newest.
        old = [row for row in past[:-1] if row.seen_at < now - KEEP]
        for process in sorted(row.id for row in old + future):
            connection.execute(sa.delete(models.processes).where(
                _PROCESSES.id == process))

    database.run(work)
