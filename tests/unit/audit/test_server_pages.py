# SPDX-License-Identifier: Apache-2.0
"""Servers of all cells, where a cell does not answer."""

import contextlib
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror.audit import server_pages
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections
from tests import patience
from tests.unit import doubles


class TestPages(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cells = mock.Mock(spec=cells.Cells)
        self.cells.all.return_value = [
            mock.Mock(spec=cells.Cell), mock.Mock(spec=cells.Cell)]
        for cell, name in zip(self.cells.all(), ('cell1', 'cell2')):
            cell.name = name
        api = mock.Mock(spec=connections.Pool)
        api.reading.side_effect = contextlib.nullcontext
        for module, name, double in (
                (connections, 'api_database', api),
                (cells, 'Cells', self.cells)):
            self.useFixture(fixtures.MockPatchObject(
                module, name, return_value=double))
        self.servers = server_pages.ServerPages(
            engines.Limits(patience.seconds(60)))

    def test_cell_that_does_not_answer(self):
        """It is named to who holds the cells, until it answers."""
        self.cells.ask.side_effect = self.ask
        cells_down = self.servers.cells_down
        for self.silent in {'cell1'}, set():
            self.assertEqual([], [page for page in self.servers.pages()
                                  if page.servers])
            self.assertEqual(self.silent, cells_down.keys())

    def ask(self, cell, query, default, down):
        """Answer that a cell has no server."""
        if cell.name in self.silent:
            down[cell.name] = doubles.SILENT
        return default
