# SPDX-License-Identifier: Apache-2.0
"""A journal belongs to one nova, which its cell mappings identify."""

from collections.abc import Mapping
from typing import Any
from typing import Protocol

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import queries
from nova_aggregate_mirror.journal.db import transactions

LOCK = 'cells'


class CellMappings(Protocol):
    """Where nova's cell mappings are read."""

    def cell_mappings(self) -> Mapping[str, str]:
        """UUID to name of every cell but cell0, fit for a message."""


class Binding:
    """Keeps two novas from sharing a journal by mistake.

    Cells come and go one by one: as long as one of the cells is known, the
    nova is the same.

    :param source: nova's own cell mappings
    """

    def __init__(self, database: transactions.Transactions,
                 source: CellMappings) -> None:
        self._database = database
        self._source = source
        self._checked = False

    def check(self) -> None:
        """Check that the journal is this nova's, or no nova's yet.

        :raises WrongNova: it belongs to another nova
        :raises JournalUnavailable: the journal could not be read
        :raises NovaUnavailable: nova's API database could not be read
        """
        if not self._checked:
            known = self._database.run(queries.cells)
            if known:
                _compare(known, self._source.cell_mappings())
            # Until an agent has bound it, another nova's may.
            self._checked = bool(known)

    def bind(self) -> None:
        """Check as above, and make the journal this nova's from now on.

        Once that was done, a nova that cannot be read is still the same.
        """
        try:
            ours = self._source.cell_mappings()
        except exceptions.NovaUnavailable:
            if self._checked:
                return
            raise

        def work(connection: Any) -> None:
            # First agents of two novas may come at the same time.
            queries.lock(connection, LOCK)
            _compare(queries.cells(connection), ours)
            queries.set_cells(connection, ours)

        known = self._database.run(queries.cells)
        _compare(known, ours)
        if ours and known != frozenset(ours):
            self._database.run(work)
        # A nova without cells has nothing to mirror yet.
        self._checked = bool(ours)


def _compare(known: frozenset[str], ours: Mapping[str, str]) -> None:
    if known and not known & ours.keys():
        raise exceptions.WrongNova(
            'the journal belongs to another nova, with the cells %s; this '
            'nova has the cells %s. Give each nova a database of its own in '
            '[aggregate_mirror_database] connection'
            % (', '.join(sorted(known)),
               ', '.join(sorted(ours.values())) or 'none'))
