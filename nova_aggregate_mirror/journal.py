# SPDX-License-Identifier: Apache-2.0
"""What is dirty, and which UUIDs ever were nova aggregates; both durable."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import pathlib
import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import owner as row_owner

CHUNK = 500


@dataclasses.dataclass(frozen=True)
class Dirty:
    """What one operation may leave different between nova and placement."""

    host: str = ''
    nodes: frozenset[str] = frozenset()
    aggregate_uuid: str = ''
    """Set instead of the host when the aggregate itself is being deleted."""
    request_id: str = ''


@dataclasses.dataclass(frozen=True)
class Row:
    """A journal row: what is dirty, and what became of it so far."""

    id: int
    dirty: Dirty
    owner: str
    """Who runs the operation; empty once it was handed over."""
    created_at: float
    """Seconds since the epoch."""
    attempts: int
    last_error: str


class Journal:
    """The journal and the ledger of one process.

    :param conf: nova's configuration, with this package's options
    :param now: seconds since the epoch
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 now: Callable[[], float] = time.time) -> None:
        self._conf = conf
        self._now = now
        self._mutex = threading.Lock()
        self._database: engine.Database | None = None
        self._entered: frozenset[str] = frozenset()
        """UUIDs that this process has seen in the ledger, which keeps them."""
        self._owner = row_owner.Owner(
            pathlib.Path(conf.state_path) / 'aggregate_mirror' / 'owners')

    def record(self, dirty: Dirty, aggregates: Iterable[str] = ()) -> Row:
        """Write that something is about to become dirty; durable on return.

        :param aggregates: UUIDs of nova aggregates that enter the ledger in
            the same transaction
        :returns: the row, which this process owns
        :raises JournalUnavailable: when nothing was written
        """
        aggregates = frozenset(aggregates)
        with self._transaction() as connection:
            token, now = self._owner.token(), self._now()
            self._remember(connection, aggregates - self._entered)
            inserted = connection.execute(sa.insert(models.dirty).values(
                host=dirty.host or None, nodes=','.join(sorted(dirty.nodes)),
                aggregate_uuid=dirty.aggregate_uuid or None,
                request_id=dirty.request_id, owner=token, created_at=now,
                attempts=0, last_error=''))
        self._entered |= aggregates
        return Row(id=inserted.inserted_primary_key[0], dirty=dirty,
                   owner=token, created_at=now, attempts=0, last_error='')

    def complete(self, ids: Iterable[int]) -> None:
        """Close rows: placement shows what they were about."""
        with self._transaction() as connection:
            for chunk in _chunks(ids):
                connection.execute(sa.delete(models.dirty).where(
                    models.dirty.c.id.in_(chunk)))

    def hand_over(self, row: int, error: str) -> None:
        """Leave a row of ours to whoever converges it next."""
        with self._transaction() as connection:
            connection.execute(
                sa.update(models.dirty).where(models.dirty.c.id == row).values(
                    owner='', attempts=models.dirty.c.attempts + 1,
                    last_error=error))

    def rows(self) -> list[Row]:
        """Every row, oldest first."""
        with self._transaction() as connection:
            return _rows(connection, sa.true())

    def closable(self, rows: Iterable[Row]) -> list[Row]:
        """Those rows of which the operation has ended, so anyone may close.

        The owner handed it over or is dead. Of an owner on another host
        nobody can tell, so that its row waits for ``max_call_age``.
        """
        oldest = self._now() - self._conf.aggregate_mirror.max_call_age
        with _translated():
            return [row for row in rows
                    if not row.owner or self._owner.is_dead(row.owner)
                    or (row.created_at < oldest
                        and not self._owner.can_tell(row.owner))]

    def ledger(self) -> frozenset[str]:
        """Every UUID that is, or once was, a nova aggregate's."""
        with self._transaction() as connection:
            return frozenset(connection.scalars(
                sa.select(models.ledger.c.aggregate_uuid)))

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        """Those of these UUIDs that are in the ledger."""
        wanted = frozenset(aggregates)
        if not wanted:
            return wanted
        with self._transaction() as connection:
            return _known(connection, wanted)

    def remember(self, aggregates: Iterable[str]) -> None:
        """Enter UUIDs of nova aggregates into the ledger."""
        wanted = frozenset(aggregates)
        if not wanted <= self._entered:
            with self._transaction() as connection:
                self._remember(connection, wanted)
            self._entered |= wanted

    def _remember(self, connection: Any, aggregates: frozenset[str]) -> None:
        for uuid in sorted(aggregates - _known(connection, aggregates)):
            # On a server another controller may enter the same one meanwhile;
            # a savepoint keeps that from undoing the whole transaction.
            with contextlib.suppress(db_exc.DBDuplicateEntry), \
                    connection.begin_nested():
                connection.execute(sa.insert(models.ledger).values(
                    aggregate_uuid=uuid, created_at=self._now()))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _translated():
            with self._mutex:
                # Not before it is known to be usable, so that an outage at
                # the first call does not last.
                if self._database is None:
                    database = engine.Database(self._conf)
                    database.prepare()
                    self._database = database
            with self._database.transaction() as connection:
                yield connection


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (db_exc.DBError, db_exc.CantStartEngineError,
            sa_exc.SQLAlchemyError, OSError, ImportError) as exc:
        lines = str(exc).strip().splitlines()
        raise exceptions.JournalUnavailable(
            'the journal could not be used: %s: %s'
            % (type(exc).__name__, lines[0] if lines else '')) from exc


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]


def _known(connection: Any, aggregates: Iterable[str]) -> frozenset[str]:
    column = models.ledger.c.aggregate_uuid
    return frozenset(
        uuid for chunk in _chunks(aggregates) for uuid in
        connection.scalars(sa.select(column).where(column.in_(chunk))))


def _rows(connection: Any, where: Any) -> list[Row]:
    query = sa.select(models.dirty).where(where).order_by(models.dirty.c.id)
    return [Row(id=row.id, owner=row.owner, created_at=row.created_at,
                attempts=row.attempts, last_error=row.last_error,
                dirty=Dirty(host=row.host or '',
                            nodes=frozenset(filter(None,
                                                   row.nodes.split(','))),
                            aggregate_uuid=row.aggregate_uuid or '',
                            request_id=row.request_id))
            for row in connection.execute(query)]
