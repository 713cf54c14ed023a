# SPDX-License-Identifier: Apache-2.0
"""Binding of a journal to one nova, identified by its cell mappings."""

from collections import abc
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sql_parts
from nova_aggregate_mirror.journal.db import transactions


class Binding:
    """Guard against two novas sharing a journal by mistake.

    A nova with at least one of the recorded cells is the same nova: cells are
    added and removed individually. Each method raises ``JournalUnavailable``
    or ``NovaUnavailable`` if one of them cannot be read.

    :param cell_mappings: returns UUID to display name of every cell but cell0
    """

    def __init__(self, database: transactions.Transactions,
                 cell_mappings: abc.Callable[[], abc.Mapping[str, str]]
                 ) -> None:
        self._database = database
        self._cell_mappings = cell_mappings
        self._checked = False

    def check(self) -> None:
        """Check that the journal is bound to this nova or not bound yet.

        :raises WrongNova: the journal belongs to another nova
        """
        if not self._checked:
            stored = self._database.run(cells)
            if stored:
                _check_same(stored, self._cell_mappings())
            # Until an agent binds the journal, another nova may still do so.
            self._checked = bool(stored)

    def bind(self) -> None:
        """Check the journal like ``check`` and bind it to this nova.

        Once the check has succeeded, cell mappings that cannot be read are
        not an error: the nova is still the same.
        """
        try:
            mappings = self._cell_mappings()
        except exceptions.NovaUnavailable:
            if self._checked:
                return
            raise

        def work(connection: Any) -> None:
            # The first agents of two novas may bind the journal concurrently.
            sql_parts.lock(connection, 'cells')
            _check_same(cells(connection), mappings)
            connection.execute(sa.delete(models.cells))
            connection.execute(
                sql_parts.insert_new(connection, models.cells),
                [{'cell_uuid': uuid} for uuid in sorted(mappings)])

        stored = self._database.run(cells)
        _check_same(stored, mappings)
        if mappings and stored != frozenset(mappings):
            self._database.run(work)
        # A nova without cells has nothing to mirror yet; check again later.
        self._checked = bool(mappings)


def cells(connection: Any) -> frozenset[str]:
    """Read the cell UUIDs of the nova that the journal belongs to."""
    return frozenset(connection.scalars(sa.select(models.cells.c.cell_uuid)))


def _check_same(stored: frozenset[str], mappings: abc.Mapping[str, str]
                ) -> None:
    """Raise WrongNova if cells are stored, and none of them is this nova's."""
    if stored and not stored & mappings.keys():
        raise exceptions.WrongNova(
            'the journal belongs to another nova, with the cells %s; this '
            'nova has the cells %s. Give each nova a database of its own in '
            '[aggregate_mirror_database] connection'
            % (', '.join(sorted(stored)),
               ', '.join(sorted(mappings.values())) or 'none'))
