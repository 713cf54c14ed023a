# SPDX-License-Identifier: Apache-2.0
"""Parts of the journal's SQL statements that several of its tables need."""

from collections import abc
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

_ON_CONFLICT: dict[str, abc.Callable[[sa.Table], Any]] = {
    'sqlite': sqlite.insert, 'postgresql': postgresql.insert}


def insert_new(connection: Any, table: sa.Table) -> Any:
    """Build an INSERT that ignores existing rows.

    A savepoint is no alternative: a server that rolls back a transaction for
    a deadlock drops the savepoint, which hides the deadlock from the caller.
    """
    name = connection.dialect.name
    if name in _ON_CONFLICT:
        return _ON_CONFLICT[name](table).on_conflict_do_nothing()
    return sa.insert(table).prefix_with('IGNORE')
