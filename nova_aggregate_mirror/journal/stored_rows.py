# SPDX-License-Identifier: Apache-2.0
"""Journal rows, as the agent and the commands read and change them."""

from collections import abc
import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror import uuids

# Statements are built once, because building takes longer than executing.
_DIRTY = models.dirty.c
_SET_FAILED = sa.update(models.dirty).where(rows.ID).values(
    attempts=_DIRTY.attempts + 1, last_error=sa.bindparam('error'),
    mirrored_at=sa.bindparam('mirrored'))
# Running rows only: a row handed over meanwhile may have failed since.
_SET_MIRRORED = sa.update(models.dirty).where(rows.IDS, _DIRTY.running).values(
    last_error='', mirrored_at=sa.bindparam('now'))
_SET_PENDING = sa.update(models.dirty).where(rows.IDS).values(mirrored_at=None)
_ORDER = (_DIRTY.created_at, _DIRTY.id)
_ROWS = sa.select(models.dirty).order_by(*_ORDER)
_ROWS_OF = _ROWS.where(rows.IDS)
_BRIEFS = sa.select(_DIRTY.id, _DIRTY.running, _DIRTY.attempts,
                    _DIRTY.mirrored_at.is_(None)).order_by(*_ORDER)
_HOSTS = sa.select(_DIRTY.host)
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

        :param errors: IDs of rows, to why
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
        return [_row(row) for row in self._database.read(_ROWS)]

    def get(self, ids: abc.Iterable[str]) -> list[journal.Row]:
        """Read those of a few rows that still exist."""
        rows = self._database.read(_ROWS_OF, some=sorted(ids))
        return [_row(row) for row in rows]

    def hosts(self) -> frozenset[str]:
        """Read the names of the hosts that have rows."""
        return frozenset(host for host, in self._database.read(_HOSTS))

    def briefs(self) -> list[Brief]:
        """Read what decides when each row is due, oldest row first."""
        return [Brief(*row) for row in self._database.read(_BRIEFS)]


def _row(row: Any) -> journal.Row:
    nodes = frozenset(map(uuids.canonical, filter(None, row.nodes.split(','))))
    return journal.Row(
        row.id, journal.Dirty(row.host, nodes, row.request_id), row.running,
        row.created_at, row.attempts, row.last_error, row.mirrored_at)
