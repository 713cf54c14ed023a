# SPDX-License-Identifier: Apache-2.0
"""SQL statements of the sync history; each takes an open transaction."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.journal.db import models

_SYNCS = models.syncs.c
_NEWEST = sa.select(models.syncs).order_by(_SYNCS.id.desc())


def insert(connection: Any, values: Mapping[str, Any], keep: int) -> None:
    """Add an entry and delete all but the newest entries.

    :param keep: number of entries to keep
    """
    connection.execute(sa.insert(models.syncs), values)
    # Rows are counted, because IDs may have gaps, for example on Galera.
    oldest = connection.scalar(
        sa.select(_SYNCS.id).order_by(_SYNCS.id.desc()).offset(
            keep).limit(1))
    if oldest is not None:
        connection.execute(sa.delete(models.syncs).where(_SYNCS.id <= oldest))


def newest(connection: Any, limit: int) -> list[Any]:
    """Read the latest entries, newest first."""
    return list(connection.execute(_NEWEST.limit(limit)))


def count(connection: Any, row: Any, values: Mapping[str, Any]) -> bool:
    """Count another pass in an entry, unless its row has changed."""
    return bool(connection.execute(sa.update(models.syncs).where(
        _SYNCS.id == row.id, _SYNCS.passes == row.passes).values(
            passes=row.passes + 1, **values)).rowcount)
