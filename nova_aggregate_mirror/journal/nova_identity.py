# SPDX-License-Identifier: Apache-2.0
"""Check that a journal is of this nova, by its cells and aggregates."""

from collections import abc
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import commands
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models

_LEDGER = sa.select(models.ledger)
_ROW = sa.select(models.dirty.c.id).limit(1)
Names = abc.Callable[[], abc.Mapping[str, str]]
"""A function that reads UUIDs and their display names."""


def check(database: engine.Database, cell_mappings: Names,
          aggregates: Names) -> bool:
    """Check that the journal is bound to this nova or may still be.

    A nova with one of the recorded cells is the same nova: cells are added and
    removed individually. So is one with an aggregate that the ledger has and
    that no user deleted: cell mappings are also deleted and created again.

    :param cell_mappings: reads every cell but cell0
    :param aggregates: reads every aggregate of nova
    :returns: whether it is bound; until then, another nova may bind it
    :raises WrongNova: the journal belongs to another nova
    :raises JournalUnavailable, NovaUnavailable: one of them cannot be read
    """
    stored = database.run(cells)
    return bool(stored) and is_same(
        database, stored, cell_mappings(), aggregates)


def is_same(database: engine.Database, stored: frozenset[str],
            mappings: abc.Mapping[str, str], aggregates: Names) -> bool:
    """Return whether this is the nova of the stored cells.

    :returns: False if the journal has no content that shows it
    :raises WrongNova: it is another nova
    """
    if stored & mappings.keys():
        return True
    entries, row = database.run(lambda connection: (
        connection.execute(_LEDGER).all(), connection.scalar(_ROW)))
    if not (entries or row):
        return False
    unmarked = {entry.aggregate_uuid for entry in entries
                if entry.deleted_at is None}
    if unmarked & aggregates().keys():
        return True
    present = ', '.join(sorted(mappings.values())) or 'none'
    raise exceptions.WrongNova(
        'the journal belongs to another nova, with the cells %s; this nova '
        'has the cells %s, and no aggregate of the journal'
        % (', '.join(sorted(stored)), present),
        step='give each nova a database of its own in '
        '[aggregate_mirror_database] connection; only if this nova was '
        'rebuilt, with new cell mappings and aggregates, run "%s"'
        % commands.BIND)


def cells(connection: Any) -> frozenset[str]:
    """Read the cell UUIDs of the nova that the journal belongs to."""
    return frozenset(connection.scalars(sa.select(models.cells.c.cell_uuid)))
