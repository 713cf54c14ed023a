# SPDX-License-Identifier: Apache-2.0
"""The SQL statements and transactions of this process."""

from collections import abc
import contextlib
from typing import Any

import fixtures
import sqlalchemy as sa

WRITES = {'INSERT', 'UPDATE', 'DELETE'}


class Statements(fixtures.Fixture):
    """Records the statements of all engines of this process in ``seen``."""

    def _setUp(self) -> None:
        self.seen: list[str] = []
        self.databases: set[str] = set()
        """Those that executed the statements."""
        arguments = sa.engine.Engine, 'before_cursor_execute', self._record
        sa.event.listen(*arguments)
        self.addCleanup(sa.event.remove, *arguments)

    def _record(self, connection: Any, _cursor: Any, statement: str,
                *_arguments: Any) -> None:
        self.seen.append(statement)
        self.databases.add(connection.engine.url.database)

    def about(self, table: str) -> list[str]:
        """Return the statements that name a table."""
        return [one for one in self.seen if table in one]


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
