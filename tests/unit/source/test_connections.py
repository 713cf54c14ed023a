# SPDX-License-Identifier: Apache-2.0
"""Failures of nova's API database, with the next step."""

import fixtures
from oslo_db import exception as db_exc
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import connections


class TestApiDatabase(testtools.TestCase):

    def test_table_or_column_that_is_missing(self) -> None:
        """The step is nova's command, which advises no other one."""
        for code, said, text in (
                (1146, 'Table "nova_api.aggregates" does not exist',
                 'lacks the table nova_api.aggregates: correct the name of '
                 'the database in [api_database] connection; if it is right, '
                 'run "nova-manage api_db sync"'),
                (1054, 'Unknown column "aggregates.uuid" in "SELECT"',
                 'lacks the column aggregates.uuid: run "nova-manage api_db '
                 'sync"')):
            self.useFixture(fixtures.MockPatchObject(
                connections.Pool, '_opened', side_effect=db_exc.DBError(
                    Exception(code, said))))
            error = self.assertRaises(exceptions.NovaUnavailable, self.read)
            self.assertEqual(
                'nova\'s API database ' + text, str(error))

    def read(self) -> None:
        with connections.api_database().reading():
            pass
