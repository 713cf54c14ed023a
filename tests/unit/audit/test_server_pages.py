# SPDX-License-Identifier: Apache-2.0
"""Servers of all cells, where a cell does not answer."""

import contextlib
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import display
from nova_aggregate_mirror.audit import server_pages
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import problems
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
        api = mock.Mock(spec=connections.ApiDatabase)
        api.reading.side_effect = contextlib.nullcontext
        for module, name, double in (
                (connections, 'ApiDatabase', api),
                (cells, 'Cells', self.cells)):
            self.useFixture(fixtures.MockPatchObject(
                module, name, return_value=double))
        self.servers = server_pages.ServerPages(
            engines.Limits(patience.seconds(60)))

    def document(self):
        """Build the document before the first page is read."""
        return display.document(
            ([] for page in self.servers.pages()), auditor.Totals(),
            self.servers.cells_down)

    def test_cell_that_does_not_answer(self):
        """A document names it, and no longer once it answers."""
        self.cells.ask.side_effect = self.ask
        self.silent = {'cell1'}
        self.assertEqual(problems.documents({'cell1': doubles.SILENT}),
                         self.document()['cells_down'])
        self.silent = set()
        self.assertEqual([], self.document()['cells_down'])

    def ask(self, cell, query, default, down):
        """Answer that a cell has no server."""
        if cell.name in self.silent:
            down[cell.name] = doubles.SILENT
        return default
