# SPDX-License-Identifier: Apache-2.0
"""The statements of the history of syncs; each takes an open transaction."""

import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import history

_SYNCS = models.syncs.c
_NEWEST = sa.select(models.syncs).order_by(_SYNCS.id.desc())
_FIELDS = tuple(field.name for field in dataclasses.fields(history.Entry))


def note(connection: Any, entry: history.Entry, keep: int) -> None:
    """Write an entry, or count it to the newest one if that is alike."""
    found = connection.execute(_NEWEST.limit(1)).one_or_none()
    if found is not None and entry.continues(_entry(found)) and _count(
            connection, found, entry):
        return
    connection.execute(sa.insert(models.syncs), dataclasses.asdict(entry))
    # Numbers may have gaps, as on Galera: rows are counted.
    oldest = connection.scalar(
        sa.select(_SYNCS.id).order_by(_SYNCS.id.desc()).offset(
            keep).limit(1))
    if oldest is not None:
        connection.execute(sa.delete(models.syncs).where(_SYNCS.id <= oldest))


def newest(connection: Any, limit: int) -> list[history.Entry]:
    """The last entries, newest first."""
    return [_entry(row) for row in connection.execute(_NEWEST.limit(limit))]


def _count(connection: Any, found: Any, entry: history.Entry) -> bool:
    """Whether the row was as it was found, and counts one more now."""
    return bool(connection.execute(sa.update(models.syncs).where(
        _SYNCS.id == found.id, _SYNCS.passes == found.passes).values(
            passes=found.passes + 1, ended_at=entry.ended_at,
            seconds=entry.seconds, reason=entry.reason)).rowcount)


def _entry(row: Any) -> history.Entry:
    return history.Entry(**{name: getattr(row, name) for name in _FIELDS})
