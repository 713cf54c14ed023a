# SPDX-License-Identifier: Apache-2.0
"""The SQL statements and transactions of this process."""

from collections import abc
import contextlib
from typing import Any

import sqlalchemy as sa

WRITES = {'INSERT', 'UPDATE', 'DELETE'}


@contextlib.contextmanager
def recorded() -> abc.Iterator[list[str]]:
    """Collect the first words of the statements that are executed inside."""
    executed: list[str] = []

    def execute(_connection: Any, _cursor: Any, statement: str,
                *_arguments: Any) -> None:
        executed.append(statement.split()[0])

    sa.event.listen(sa.engine.Engine, 'before_cursor_execute', execute)
    try:
        yield executed
    finally:
        sa.event.remove(sa.engine.Engine, 'before_cursor_execute', execute)


@contextlib.contextmanager
def transactions() -> abc.Iterator[list[bool]]:
    """Collect the transactions that are committed inside: does each write?"""
    committed: list[bool] = []
    writing: set[int] = set()

    def execute(connection: Any, _cursor: Any, statement: str,
                *_arguments: Any) -> None:
        if statement.split()[0] in WRITES:
            writing.add(id(connection))

    def commit(connection: Any) -> None:
        committed.append(id(connection) in writing)
        writing.discard(id(connection))

    events = (('before_cursor_execute', execute), ('commit', commit))
    for event in events:
        sa.event.listen(sa.engine.Engine, *event)
    try:
        yield committed
    finally:
        for event in events:
            sa.event.remove(sa.engine.Engine, *event)
