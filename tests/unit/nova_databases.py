# SPDX-License-Identifier: Apache-2.0
"""Nova's databases in SQLite, with the columns that this package reads."""

from collections import abc
import contextlib
import pathlib
import sqlite3
from typing import Any

import fixtures
from nova.conf import CONF
from oslo_config import fixture as config_fixture

API = """
CREATE TABLE aggregates (id INTEGER PRIMARY KEY, uuid TEXT, name TEXT);
CREATE TABLE aggregate_hosts (aggregate_id INTEGER, host TEXT);
CREATE TABLE host_mappings (host TEXT, cell_id INTEGER);
CREATE TABLE cell_mappings (id INTEGER PRIMARY KEY, uuid TEXT, name TEXT,
                            database_connection TEXT);
"""
CELL = 'CREATE TABLE compute_nodes (uuid TEXT, host TEXT, deleted INTEGER);'


class NovaDatabases(fixtures.Fixture):
    """An API database and cells; ``fill`` replaces their content.

    :param cells: names of the cells
    """

    def __init__(self, cells: abc.Iterable[str]) -> None:
        super().__init__()
        self._cells = list(cells)

    def _setUp(self) -> None:
        self._path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._open('api').executescript(API)
        for cell in self._cells:
            self._open(cell).executescript(CELL)
        conf = self.useFixture(config_fixture.Config(CONF)).conf
        conf.set_override('connection', self._url('api'), 'api_database')

    def fill(self, nodes: abc.Iterable[tuple[str, str, str]],
             mapped: abc.Mapping[str, str],
             aggregates: abc.Mapping[str, abc.Iterable[str]],
             silent: abc.Iterable[str] = ()) -> None:
        """Replace everything.

        :param nodes: cell, UUID and host of each compute node
        :param mapped: host to cell
        :param aggregates: UUID to hosts
        :param silent: cells whose database cannot be read
        """
        number = {cell: id for id, cell in enumerate(self._cells, 1)}
        files = {**{cell: cell for cell in self._cells},
                 **dict.fromkeys(silent, 'missing/directory')}
        cells = [(id, cell, cell, self._url(files[cell]))
                 for cell, id in number.items()]
        members = []
        for id, hosts in enumerate(aggregates.values()):
            members += [(id, host) for host in hosts]
        self._write(
            'api', cell_mappings=cells,
            host_mappings=[(host, number[cell])
                           for host, cell in mapped.items()],
            aggregates=[(id, uuid, 'name of ' + uuid)
                        for id, uuid in enumerate(aggregates)],
            aggregate_hosts=members)
        nodes = list(nodes)
        for cell in self._cells:
            self._write(cell, compute_nodes=[
                (uuid, host, 0) for where, uuid, host in nodes
                if where == cell])

    def _write(self, name: str, **tables: list[tuple[Any, ...]]) -> None:
        with contextlib.closing(self._open(name)) as connection, connection:
            for table, rows in tables.items():
                connection.execute('DELETE FROM ' + table)
                for row in rows:
                    marks = ', '.join('?' * len(row))
                    connection.execute(
                        'INSERT INTO %s VALUES (%s)' % (table, marks), row)

    def _open(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path / (name + '.sqlite'))
        connection.execute('PRAGMA synchronous = OFF')
        connection.execute('PRAGMA journal_mode = MEMORY')
        return connection

    def _url(self, name: str) -> str:
        return 'sqlite:///%s' % (self._path / (name + '.sqlite'))
