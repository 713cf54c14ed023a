# SPDX-License-Identifier: Apache-2.0
"""Leader election of the agents: a lease row in the journal's database."""

from collections import abc
import socket
import time
from typing import Any
from typing import NamedTuple

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models

NAMES = {conf.MIRROR: 'agent', conf.OBSERVE: 'observer'}
"""Names of leases by mode: an observing agent keeps none from mirroring."""
_LEASE = models.lease.c


class LeaseRow(NamedTuple):
    holder: str
    """Empty after its release."""
    renewals: int
    seconds: float
    """Time without a renewal after which another agent takes it."""
    host: str
    """Of the last agent that took it."""
    taken_at: float
    """Seconds since the epoch, by the clock of that host."""


# Statements are built once, because building takes longer than executing.
_NAME = _LEASE.name == sa.bindparam('lease')
_READ = sa.select(*(_LEASE[field] for field in LeaseRow._fields)).where(_NAME)
_TAKE = sa.update(models.lease).where(
    _NAME, _LEASE.holder == sa.bindparam('previous_holder'),
    _LEASE.renewals == sa.bindparam('previous_renewals'))


class Lease:
    """Candidacy of one agent for the lease.

    Hosts' clocks are not compared: an agent takes the lease whose row has not
    changed for the seconds in it. Every method raises ``JournalUnavailable``.
    """

    def __init__(self, database: engine.Database, seconds: float,
                 clock: abc.Callable[[], float] = time.monotonic,
                 now: abc.Callable[[], float] = time.time,
                 mode: str = conf.MIRROR) -> None:
        self.renewal = seconds / 3
        """Seconds between renewals: two may fail."""
        self._database, self._seconds = database, seconds
        self._clock, self._now = clock, now
        self._mode = mode
        self._name = NAMES[mode]
        self._holder = uuidutils.generate_uuid()
        self._written: LeaseRow | None = None
        """The row that this agent wrote; None if another may have since."""
        self.watched: LeaseRow | None = None
        """The lease of another agent, which this agent waits for."""
        self._since = 0.0
        """When ``watched`` was first read, by the monotonic clock."""
        self.locked: exceptions.Failure | None = None
        """Why this agent leads although it could not write the row, if so."""

    def step(self) -> bool:
        """Renew or try to take the lease; return whether this agent leads."""
        # Only the holder writes the row, and need not read what it wrote. If
        # its next write fails, the row is unknown until it is read below.
        written, self._written = self._written, None
        if written and self._take(written):
            return True
        lease = read(self._database, self._mode)
        if not self._is_free(lease):
            return False
        leads = self._take(lease)
        if not self.locked:
            self.watched = None
        return leads

    def release(self) -> None:
        """Release the lease, if this agent holds it."""
        release = sa.update(models.lease).values(holder='').where(
            _LEASE.name == self._name, _LEASE.holder == self._holder)
        self._database.run(lambda connection: connection.execute(release))

    def _take(self, previous: LeaseRow | None) -> bool:
        """Take or renew the lease; return False if its row has changed."""
        renewals = previous.renewals + 1 if previous else 1
        if previous and previous.holder == self._holder:
            row = previous._replace(renewals=renewals)
        else:
            row = LeaseRow(self._holder, renewals, self._seconds,
                           socket.gethostname()[:255], self._now())

        def work(connection: Any) -> bool:
            if previous:
                result = connection.execute(_TAKE, {
                    'lease': self._name, 'previous_holder': previous.holder,
                    'previous_renewals': previous.renewals, **row._asdict()})
            else:
                result = connection.execute(
                    models.insert_new(connection, models.lease),
                    {'name': self._name, **row._asdict()})
            return bool(result.rowcount)

        self.locked = None
        try:
            success = self._database.run(work)
        except exceptions.JournalLocked as exc:
            # A server keeps the lock of an agent that lost its power for
            # hours. That several agents lead meanwhile is harmless.
            self.locked = exc.failure
            return True
        if success:
            self._written = row
        return success

    def _is_free(self, lease: LeaseRow | None) -> bool:
        """Check whether the lease may be taken; watch it while it may not."""
        if lease is None or lease.holder in ('', self._holder):
            return True
        if lease != self.watched:
            self.watched, self._since = lease, self._clock()
        return self._clock() - self._since >= lease.seconds


def try_write(database: engine.Database, mode: str = conf.MIRROR) -> None:
    """Write the lease of a mode, without a change.

    :raises JournalLocked: another session has locked it
    """
    unchanged = sa.update(models.lease).values(holder=_LEASE.holder).where(
        _LEASE.name == NAMES[mode])
    database.run(lambda connection: connection.execute(unchanged))


def read(database: engine.Database, mode: str = conf.MIRROR
         ) -> LeaseRow | None:
    """Read the lease of a mode; None if no agent has ever taken it."""
    rows = database.read(_READ, lease=NAMES[mode])
    return LeaseRow(*rows[0]) if rows else None
