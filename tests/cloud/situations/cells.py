# SPDX-License-Identifier: Apache-2.0
"""The database of the cloud's only cell, which can be made to refuse."""

import sqlalchemy as sa

from tests.cloud.outages import wires
from tests.cloud.situations import scene
_CELL = 'cell1'


class CellDatabase:
    """The cell's database behind a relay, until the situation ends.

    Only processes that start meanwhile use the relay, because nova reads the
    cell mappings once: nova-api shows the servers all the time.
    """

    def __init__(self, at: scene.Scene) -> None:
        self._engine = sa.create_engine(
            at.cloud.config.database_url('nova_api'),
            poolclass=sa.pool.NullPool)
        there = sa.engine.make_url(at.cloud.config.database_url('nova'))
        self._wire = at.enter(wires.Wires()).to(there.port)
        at.later(at.schedulers.restart)
        at.later(self._write, self._read())
        self._write(there.set(port=self._wire.port).render_as_string(
            hide_password=False))
        at.schedulers.restart()

    def refuse(self) -> None:
        """Refuse connections, and reset those that are open."""
        self._wire.refuse()

    def answer(self) -> None:
        """Accept connections again."""
        self._wire.forward()

    def _read(self) -> str:
        with self._engine.connect() as connection:
            return str(connection.execute(sa.text(
                'SELECT database_connection FROM cell_mappings '
                'WHERE name = :name'), {'name': _CELL}).scalar_one())

    def _write(self, url: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(
                'UPDATE cell_mappings SET database_connection = :url '
                'WHERE name = :name'), {'url': url, 'name': _CELL})
