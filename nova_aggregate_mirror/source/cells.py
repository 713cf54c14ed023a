# SPDX-License-Identifier: Apache-2.0
"""Nova's cells: which there are, and one read in several of them, bounded."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import queue
import re
import threading
import time
from typing import Any

from nova.conf import CONF
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import tables

CELL0 = '00000000-0000-0000-0000-000000000000'
"""The UUID of the cell that has no compute nodes."""

Nodes = Mapping[str, str]
Reads = Mapping[str, Callable[[], Nodes]]
Answers = Mapping[str, Nodes | exceptions.CellUnavailable]

# Statements are made once: making one takes longer than running it.
COLUMNS = (*tables.cell_mappings.c,)
"""What a row must have to become a cell."""
_ALL = sa.select(*COLUMNS).order_by(tables.cell_mappings.c.id)

# Everything that a database which is away, misconfigured or half migrated
# raises; ImportError is a driver that is not installed, ValueError a port
# that is no number.
DATABASE_ERRORS = (db_exc.DBError, db_exc.CantStartEngineError,
                   sa_exc.SQLAlchemyError, ImportError, OSError, ValueError)


def reason(exc: BaseException) -> str:
    """The one line of a database error that says what happened."""
    lines = str(exc).strip().splitlines()
    # After an @ in a password a URL's host begins with the rest of that.
    return '%s: %s' % (type(exc).__name__, re.sub(
        r'''(?<=['"])[^'"\s]*@(?=[^'"\s@]+['"])''', '',
        lines[0] if lines else 'no details'))


def in_turn(reads: Reads) -> Answers:
    """Read one cell after the other in this thread.

    This is for nova-api, which must not start threads. A cell that hangs
    hangs nova's own queries in the same request too.
    """
    return {name: _attempt(read) for name, read in reads.items()}


def bounded(timeout: float) -> Callable[[Reads], Answers]:
    """Read all cells at once, wait at most ``timeout`` seconds."""

    def run(reads: Reads) -> Answers:
        answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        for name, read in reads.items():
            # A daemon thread, because nobody can stop one that hangs in a
            # socket and the process must be able to end without it.
            threading.Thread(
                target=lambda name=name, read=read: answers.put(
                    (name, _attempt(read))),
                name=name, daemon=True).start()
        found: dict[str, Any] = {}
        end = time.monotonic() + timeout
        with contextlib.suppress(queue.Empty):
            while len(found) < len(reads):
                name, answer = answers.get(
                    timeout=max(0.0, end - time.monotonic()))
                found[name] = answer
        late = exceptions.CellUnavailable(
            'no answer within %g seconds' % timeout)
        return {name: found.get(name, late) for name in reads}

    return run


def _attempt(read: Callable[[], Nodes]) -> Nodes | exceptions.CellUnavailable:
    try:
        return read()
    except DATABASE_ERRORS as exc:
        error = exceptions.CellUnavailable(reason(exc))
        error.__cause__ = exc
        return error


@enginefacade.transaction_context_provider
class Transaction:
    """What oslo.db keeps a transaction in; a new one for each."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell that can have compute nodes."""

    id: int
    uuid: str
    name: str
    """Unique and fit for a message."""
    connection: str = dataclasses.field(repr=False)


class Cells:
    """The cells of this deployment, with a connection pool of our own each.

    Nova keeps the list of cells for the life of the process and targets
    request contexts at them. Reading the mappings anew each time finds cells
    that were added meanwhile, and own pools leave nova's contexts alone.

    :param run: ``in_turn`` inside nova-api, ``bounded(timeout)`` elsewhere
    """

    def __init__(self, run: Callable[[Reads], Answers]) -> None:
        self._run = run
        self._managers: dict[str, Any] = {}

    def all(self, connection: Any) -> list[Cell]:
        """Every cell but cell0, oldest first, as nova knows them now.

        :param connection: to nova's API database
        """
        return [cell_of(row) for row in connection.execute(_ALL)
                if row.uuid != CELL0]

    def nodes(self, cells: Iterable[Cell], query: Callable[[Any], Nodes]
              ) -> tuple[Nodes, Mapping[str, str]]:
        """Run one query in each of these cells.

        :param query: takes a connection, gives node UUID to host
        :returns: the nodes of all cells that answered, and the cells that did
            not: name to reason
        """
        answers = self._run({
            cell.name: functools.partial(self._read, cell, query)
            for cell in cells})
        nodes: dict[str, str] = {}
        down: dict[str, str] = {}
        for name, answer in sorted(answers.items()):
            if isinstance(answer, exceptions.CellUnavailable):
                down[name] = str(answer)
            else:
                nodes.update(answer)
        return nodes, down

    def _read(self, cell: Cell, query: Callable[[Any], Nodes]) -> Nodes:
        manager = self._managers.get(cell.connection)
        if manager is None:
            manager = enginefacade.transaction_context()
            # Nova's default waits 100 seconds for the first connection.
            manager.configure(**{
                **CONF.database, 'connection': cell.connection,
                'max_retries': 0})
            self._managers[cell.connection] = manager
        with manager.reader.connection.using(
                Transaction()) as connection:
            return query(connection)


def cell_of(row: Any) -> Cell:
    """The cell in a row that has ``COLUMNS``."""
    connection = row.database_connection
    if '{' in connection:
        # Nova expands what an operator wrote as a template; it is seldom one,
        # and the import takes longer than all the rest.
        from nova.objects import cell_mapping
        connection = cell_mapping.CellMapping.format_db_url(connection)
    return Cell(id=row.id, uuid=row.uuid, connection=connection,
                name='%s (%s)' % (row.name or 'unnamed', row.uuid))
