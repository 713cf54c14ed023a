# SPDX-License-Identifier: Apache-2.0
"""Journal of a process, as the agent and the commands read and change it."""

from collections import abc
import dataclasses
import time
from typing import Any
from typing import NamedTuple

from oslo_config import cfg
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.journal import synced_ledger

KEEP_PROCESSES = 7 * 24 * 3600.0
"""Seconds after which the row of a process is deleted, but the newest."""
AHEAD = 3600.0
"""Seconds by which the clock of another host may be ahead: what is later is
wrong, and would be the latest for ever."""
# Statements are built once, because building takes longer than executing.
_DIRTY = models.dirty.c
_UPDATE = sa.update(models.dirty)
_SET_FAILED = _UPDATE.where(rows.ONE_ROW).values(
    attempts=_DIRTY.attempts + 1, last_error=sa.bindparam('error'),
    mirrored_at=sa.bindparam('mirrored'))
# Running rows only: a row handed over meanwhile may have failed since.
_SET_MIRRORED = _UPDATE.where(rows.SOME_ROWS, _DIRTY.running).values(
    last_error='', mirrored_at=sa.bindparam('now'))
_SET_PENDING = _UPDATE.where(rows.SOME_ROWS).values(mirrored_at=None)
_OLDEST_FIRST = _DIRTY.created_at, _DIRTY.id
_ALL = sa.select(models.dirty).order_by(*_OLDEST_FIRST)
_SOME = _ALL.where(rows.SOME_ROWS)
_BRIEFS = sa.select(_DIRTY.id, _DIRTY.running, _DIRTY.attempts,
                    _DIRTY.mirrored_at.is_(None)).order_by(*_OLDEST_FIRST)
_HOSTS = sa.select(_DIRTY.host)
_PROCESSES = models.processes.c
# By whether the operation may still run, and whether it is mirrored.
_STATES = {
    (True, False): ('running', 'may still run'),
    (True, True): ('running_mirrored', 'mirrored, may still run'),
    (False, False): ('to_mirror', 'to be mirrored'),
    (False, True): ('waiting_for_cell', 'mirrored, waits for a cell')}


@dataclasses.dataclass(frozen=True, slots=True)
class Brief:
    """The part of a row that decides when the row is due.

    The agent holds one for each row, and a long outage has many rows.
    """

    id: str
    running: bool
    attempts: int
    pending: bool
    """Whether placement may not reflect the operation yet."""


def state(row: journal.Row) -> tuple[str, str]:
    """Return the name of a row's state, for programs, and its text."""
    return _STATES[row.running, row.mirrored_at is not None]


class StoredRows(rows.Rows):
    """All rows of the journal, with the progress of mirroring them."""

    def set_failed(self, errors: abc.Mapping[str, str],
                   mirrored: abc.Collection[str] = ()) -> None:
        """Record why rows could not be mirrored.

        They become pending, except those that are ``mirrored``.

        :param errors: ID of each row to its error
        :param mirrored: IDs of rows that are in sync, except nodes that a
            silent cell may have: they stay in the journal
        """
        now = self._now()
        failures = [{'row': row, 'error': rows.storable(error),
                     'mirrored': now if row in mirrored else None}
                    for row, error in sorted(errors.items())]

        def work(connection: Any) -> None:
            for failure in failures:
                connection.execute(_SET_FAILED, failure)

        self._database.run(work)

    def set_mirrored(self, ids: abc.Iterable[str]) -> None:
        """Record that running rows are mirrored; they stay in the journal."""
        self._write(_SET_MIRRORED, ids, now=self._now())

    def set_pending(self, ids: abc.Iterable[str]) -> None:
        """Record that rows may be out of sync again; they become pending."""
        self._write(_SET_PENDING, ids)

    def all(self) -> list[journal.Row]:
        """Read every row, oldest first."""
        return [_row(record) for record in self._database.read(_ALL)]

    def get(self, ids: abc.Iterable[str]) -> list[journal.Row]:
        """Read those of a few rows that still exist."""
        records = self._database.read(_SOME, some=sorted(ids))
        return [_row(record) for record in records]

    def hosts(self) -> frozenset[str]:
        """Read the names of the hosts that have rows."""
        return frozenset(host for host, in self._database.read(_HOSTS))

    def briefs(self) -> list[Brief]:
        """Read what decides when each row is due, oldest row first."""
        return [Brief(*record) for record in self._database.read(_BRIEFS)]


def _row(record: Any) -> journal.Row:
    nodes = frozenset(filter(None, record.nodes.split(',')))
    return journal.Row(
        record.id, journal.Dirty(record.host, nodes, record.request_id),
        record.running, record.created_at, record.attempts, record.last_error,
        record.mirrored_at)


class ProcessRecord(NamedTuple):
    """A nova-api process, as it last wrote to the journal; for display."""

    host: str
    version: str
    mode: str
    seen_at: float
    """Seconds since the epoch, by the clock of its host."""


def forget_processes(database: engine.Database, now: float) -> None:
    """Delete rows of old processes but the newest, and those of wrong clocks.

    Rows are deleted by ID: by their time, a server would lock all of them.
    """
    def work(connection: Any) -> None:
        processes = connection.execute(sa.select(models.processes).order_by(
            _PROCESSES.seen_at)).all()
        past = [process for process in processes
                if process.seen_at <= now + AHEAD]
        future = processes[len(past):]
        # The last of them, which is the newest, is kept.
        old = [process for process in past[:-1]
               if process.seen_at < now - KEEP_PROCESSES]
        for id in sorted(process.id for process in old + future):
            connection.execute(
                sa.delete(models.processes).where(_PROCESSES.id == id))

    database.run(work)


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
        self.rows = StoredRows(self.database, self.ledger, now)

    def processes(self, since: float = 0.0) -> list[ProcessRecord]:
        """Read the nova-api processes seen since then, oldest first."""
        seen = _PROCESSES.seen_at.between(since, time.time() + AHEAD)
        columns = [_PROCESSES[field] for field in ProcessRecord._fields]
        statement = sa.select(*columns).where(seen).order_by(
            _PROCESSES.seen_at, _PROCESSES.host, _PROCESSES.id)
        return [ProcessRecord(*row) for row in self.database.read(statement)]

    def try_writes(self) -> None:
        """Write to every table, and commit a lease with an unused name.

        All inserts are rolled back together, so that no agent sees a row. A
        lease is committed, and deleted, to see whether a COMMIT is accepted.
        """
        name = uuidutils.generate_uuid()

        def insert(connection: Any) -> None:
            for table in models.metadata.sorted_tables:
                # The server fills in only those with True, not with 'auto'.
                required = [column for column in table.c if not column.nullable
                            and column.autoincrement is not True]
                connection.execute(sa.insert(table), {
                    column.name: name if column.primary_key
                    else column.type.python_type() for column in required})
            connection.get_transaction().rollback()

        self.database.run(insert)
        # Locking a name inserts it into the table of leases.
        self.database.run(lambda connection: binding.lock(connection, name))
        delete = sa.delete(models.lease).where(models.lease.c.name == name)
        self.database.run(lambda connection: connection.execute(delete))
