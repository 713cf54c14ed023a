# SPDX-License-Identifier: Apache-2.0
"""The row of a nova-api process that has the hook, for display."""

from collections import abc
from importlib import metadata
import socket
import time
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.limits import backoff

INTERVAL = 3600.0
"""Seconds between two writes of a process."""
RETRY, LONGEST = 60.0, 600.0
"""Seconds after a write that failed; each further failure doubles them. It may
have been the whole journal that failed, and a row shows that it works."""
_PROCESSES = models.processes.c
VERSION = metadata.version(conf.PACKAGE)[:64]
"""The version that this process runs, also after an upgrade."""


class Presence:
    """The row of this process, written with journal rows or by itself."""

    def __init__(self, mode: str = conf.MIRROR,
                 now: abc.Callable[[], float] = time.time,
                 clock: abc.Callable[[], float] = time.monotonic) -> None:
        self._id = uuidutils.generate_uuid()
        self._mode = mode
        self._now, self._clock = now, clock
        self._pause = backoff.Backoff(RETRY, LONGEST)
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
        self._pause = backoff.Backoff(RETRY, LONGEST, self._clock() + INTERVAL)

    def write(self, connection: Any) -> None:
        """Write the row in a transaction of the caller."""
        values = {'host': socket.gethostname()[:255], 'mode': self._mode,
                  'version': VERSION, 'seen_at': self._now()}
        update = sa.update(models.processes).where(_PROCESSES.id == self._id)
        # An UPDATE that changes nothing may count no row.
        if not connection.execute(update.values(**values)).rowcount:
            connection.execute(models.insert_new(
                connection, models.processes), {'id': self._id, **values})
