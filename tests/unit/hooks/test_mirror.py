# SPDX-License-Identifier: Apache-2.0
"""What the hook does with a row that it could not close."""

import types
from typing import Any

import fixtures

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import contract
from nova_aggregate_mirror.hooks import mirror
from nova_aggregate_mirror.limits import engines
from tests.unit import doubles


class Mirror(mirror.Mirror):
    """The hook in a process whose converge fails."""

    def __init__(self, process: Any, error: exceptions.MirrorError) -> None:
        super().__init__(process.conf)
        self._of_test = process
        self._error = error

    def _process(self) -> Any:
        return self._of_test

    def _converge_and_close(self, *_what: object) -> list[str]:
        raise self._error


class TestHandOver(doubles.TestCase):

    def test_error_without_a_text(self) -> None:
        """Rule 3: the row is handed over, and the log says so."""
        process = types.SimpleNamespace(
            conf=self.conf, journal=self.journal, source=self.nova,
            limits=engines.Limits(5), check=lambda: None)
        hook = Mirror(process, exceptions.CellUnavailable(''))
        log = self.useFixture(fixtures.FakeLogger('nova_aggregate_mirror'))
        operation = contract.Operation(
            'add_host_to_aggregate', 1, 'h1', 'req-of-the-user')
        hook.after(operation, hook.before(operation))
        row, = self.journal.rows.all()
        self.assertEqual((False, 'h1'), (row.running, row.dirty.host))
        self.assertIn('it stays in the journal and is retried', log.output)
