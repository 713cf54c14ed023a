# SPDX-License-Identifier: Apache-2.0
"""Binding of a journal to one nova, by its cell mappings and aggregates."""

from collections import abc
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sql_parts
from nova_aggregate_mirror.journal.db import transactions

_UNMARKED = sa.select(models.ledger.c.aggregate_uuid).where(
    models.ledger.c.deleted_at.is_(None))
_ANY = [sa.select(column).limit(1) for column in (
    models.ledger.c.aggregate_uuid, models.dirty.c.id)]

Names = abc.Callable[[], abc.Mapping[str, str]]
"""Reads UUID to display name."""


class Binding:
    """Guard against two novas sharing a journal by mistake.

    A nova with at least one of the recorded cells is the same nova: cells are
    added and removed individually. So is one with at least one aggregate that
    the ledger has and that no user deleted: cell mappings are also deleted and
    created again. Each method raises ``JournalUnavailable`` or
    ``NovaUnavailable`` if one of them cannot be read.

    :param cell_mappings: of every cell but cell0
    :param aggregates: of every aggregate of nova
    """

    def __init__(self, database: transactions.Transactions,
                 cell_mappings: Names, aggregates: Names) -> None:
        self._database = database
        self._cell_mappings = cell_mappings
        self._aggregates = aggregates
        self._checked = False

    def check(self) -> None:
        """Check that the journal is bound to this nova or may still be.

        :raises WrongNova: the journal belongs to another nova
        """
        if not self._checked:
            stored = self._database.run(cells)
            # Until an agent binds the journal, another nova may still do so.
            self._checked = bool(stored) and self._is_same(
                stored, self._cell_mappings())

    def bind(self, leads: bool = False) -> bool:
        """Check that the journal is this nova's, and bind it.

        Once the check has succeeded, a nova that cannot be read is not an
        error: it is still the same.

        :param leads: whether this agent leads. Of a journal that has other
            cells and no content, only the leader replaces these: otherwise
            the agents of two novas would do so in turn
        :returns: whether it is bound; if not, try again
        :raises WrongNova: the journal has content of another nova
        :raises NovaUnavailable: nova could not be read, for the first time
        """
        try:
            mappings = self._cell_mappings()
            stored = self._database.run(cells)
            is_same = not stored or self._is_same(stored, mappings)
        except exceptions.NovaUnavailable:
            if self._checked:
                return True
            raise
        # It is False only without content: otherwise ``_is_same`` raises.
        is_bound = is_same or leads
        if is_bound and mappings and stored != mappings.keys():
            # False if another agent has bound it meanwhile.
            is_bound = self.replace(mappings, stored)
        # A nova without cells has nothing to mirror yet; check again later.
        self._checked = is_bound and bool(mappings)
        return is_bound

    def replace(self, mappings: abc.Mapping[str, str],
                before: frozenset[str] | None = None) -> bool:
        """Bind the journal to this nova, whatever it is bound to.

        :param before: the only cells to replace; None for any
        :returns: whether it is bound
        """
        def work(connection: Any) -> bool:
            # The first agents of two novas may bind the journal concurrently.
            sql_parts.lock(connection, 'cells')
            if before is not None and cells(connection) != before:
                return False
            connection.execute(sa.delete(models.cells))
            connection.execute(
                sql_parts.insert_new(connection, models.cells),
                [{'cell_uuid': uuid} for uuid in sorted(mappings)])
            return True

        return self._database.run(work)

    def _is_same(self, stored: frozenset[str],
                 mappings: abc.Mapping[str, str]) -> bool:
        """Return whether this is the nova of the stored cells.

        :returns: False if the journal has no content that shows it
        :raises WrongNova: it is another nova
        """
        if stored & mappings.keys():
            return True
        unmarked, has_content = self._database.run(_content)
        if not has_content:
            return False
        if unmarked & self._aggregates().keys():
            return True
        recorded = ', '.join(sorted(stored))
        present = ', '.join(sorted(mappings.values())) or 'none'
        raise exceptions.WrongNova(
            'the journal belongs to another nova, with the cells %s; this '
            'nova has the cells %s, and no aggregate of the journal'
            % (recorded, present),
            step='give each nova a database of its own in '
            '[aggregate_mirror_database] connection or, if the journal is '
            'this nova\'s, run "%s"' % commands.BIND)


def cells(connection: Any) -> frozenset[str]:
    """Read the cell UUIDs of the nova that the journal belongs to."""
    return frozenset(connection.scalars(sa.select(models.cells.c.cell_uuid)))


def _content(connection: Any) -> tuple[frozenset[str], bool]:
    """Read the unmarked aggregates, and whether there is any ledger or row."""
    unmarked = frozenset(connection.scalars(_UNMARKED))
    rows = (connection.execute(statement).first() for statement in _ANY)
    return unmarked, bool(unmarked) or any(rows)
