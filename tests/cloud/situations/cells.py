# SPDX-License-Identifier: Apache-2.0
"""The database of the cloud's only cell, which can be made to refuse."""

import sqlalchemy as sa

from tests.cloud.faults import wires
from tests.cloud.situations import scene
from tests.cloud import sql

_CELL = 'cell1'


class CellDatabase:
    """The cell's database behind a relay, until the situation ends.

    Only processes that start meanwhile use the relay, because nova reads the
    cell mappings once: nova-api shows the servers all the time.
    """

    def __init__(self, at: scene.Scene) -> None:
        self._api = at.cloud.config.database_url('nova_api')
        url = at.cloud.config.database_url('nova')
        self._wire = at.enter(wires.Wires()).to(sa.engine.make_url(url).port)
        [(before,)] = sql.execute(
            self._api, 'SELECT database_connection FROM cell_mappings '
            'WHERE name = :name', name=_CELL)
        at.later(at.schedulers.restart)
        at.later(self._write, before)
        self._write(sql.changed(url, port=self._wire.port))
        at.schedulers.restart()

    def refuse(self) -> None:
        """Refuse connections, and reset those that are open."""
        self._wire.fail('refuses')

    def answer(self) -> None:
        """Accept connections again."""
        self._wire.forward()

    def _write(self, url: str) -> None:
        sql.execute(
            self._api, 'UPDATE cell_mappings SET database_connection = :url '
            'WHERE name = :name', url=url, name=_CELL)
