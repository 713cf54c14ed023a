# SPDX-License-Identifier: Apache-2.0
"""The database of the cloud's only cell, which can be made to refuse."""

import sqlalchemy as sa

from tests.cloud.faults import wires
from tests.cloud.situations import scene
from tests.cloud import sql


def database(at: scene.Scene) -> wires.Wire:
    """Put the cell's database behind a wire, until the situation ends.

    Only processes that start meanwhile use the wire, because nova reads the
    cell mappings once: nova-api shows the servers all the time.
    """
    api, url = map(at.cloud.config.database_url, ('nova_api', 'nova'))
    wire: wires.Wire = at.enter(wires.Wires()).to(sa.engine.make_url(url).port)

    def write(url: str) -> None:
        sql.execute(api, 'UPDATE cell_mappings SET database_connection = :url '
                    "WHERE name = 'cell1'", url=url)

    [(before,)] = sql.execute(
        api, 'SELECT database_connection FROM cell_mappings '
        "WHERE name = 'cell1'")
    at.later(at.schedulers.restart)
    at.later(write, before)
    write(sql.changed(url, port=wire.port))
    at.schedulers.restart()
    return wire
