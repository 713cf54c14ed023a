# SPDX-License-Identifier: Apache-2.0
"""Binding of a journal to the nova of its agent."""

from collections import abc
import contextlib
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import nova_identity


class Binding:
    """Guard against two novas sharing a journal by mistake.

    :param cell_mappings: reads every cell but cell0, UUID to name
    :param aggregates: reads every aggregate of nova, UUID to name
    """

    def __init__(self, database: engine.Database,
                 cell_mappings: nova_identity.Names,
                 aggregates: nova_identity.Names) -> None:
        self._database = database
        self._cell_mappings, self._aggregates = cell_mappings, aggregates
        self._is_checked = False

    def bind(self, leads: bool = False) -> bool:
        """Check that the journal is this nova's, and bind it.

        After a successful check, a nova that cannot be read is no error.

        :param leads: whether this agent leads: only then it replaces the cells
            of a journal without content, or two novas would do so in turn
        :returns: whether it is bound; if not, try again
        :raises WrongNova: the journal has content of another nova
        :raises JournalUnavailable: the journal cannot be used
        :raises NovaUnavailable: nova could not be read, for the first time
        """
        try:
            mappings = self._cell_mappings()
            stored = self._database.run(nova_identity.cells)
            is_ours = not stored or nova_identity.is_same(
                self._database, stored, mappings, self._aggregates)
        except exceptions.NovaUnavailable:
            if self._is_checked:
                return True
            raise
        # It is not ours if it has no content: otherwise ``is_same`` raises.
        is_bound = is_ours or leads
        if is_bound and mappings and stored != mappings.keys():
            # False if another agent was faster, or has left a lock.
            is_bound = False
            with contextlib.suppress(exceptions.JournalLocked):
                is_bound = replace(self._database, mappings, stored)
        # A nova without cells has nothing to mirror yet; check again later.
        self._is_checked = is_bound and bool(mappings)
        return is_bound


def replace(database: engine.Database, mappings: abc.Mapping[str, str],
            before: frozenset[str] | None = None) -> bool:
    """Bind the journal to this nova, whatever it is bound to.

    :param before: the cells that it must have to be bound; None for any
    :returns: whether it is bound
    """
    def work(connection: Any) -> bool:
        # The first agents of two novas may bind the journal concurrently.
        lock(connection, 'cells')
        if before is not None and nova_identity.cells(connection) != before:
            return False
        connection.execute(sa.delete(models.cells))
        connection.execute(sa.insert(models.cells), [
            {'cell_uuid': uuid} for uuid in sorted(mappings)])
        return True

    return database.run(work)


def lock(connection: Any, name: str) -> None:
    """Lock a name until the transaction ends, by writing to its row.

    Others that lock it wait, or one fails with a conflict and is retried: a
    deadlock on MySQL, also on Galera, where row locks are local to a server.
    """
    connection.execute(models.insert_new(connection, models.lease), {
        'name': name, 'holder': '', 'renewals': 0, 'seconds': 0.0,
        'host': '', 'taken_at': 0.0})
    connection.execute(sa.update(models.lease).where(
        models.lease.c.name == name).values(
            renewals=models.lease.c.renewals + 1))
