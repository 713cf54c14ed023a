# SPDX-License-Identifier: Apache-2.0
"""The one table of exit statuses."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from tests.unit.test_exceptions import classes


class TestTable(testtools.TestCase):

    def test_each_status_has_a_text(self):
        """But that of a shell for a reader that ended first."""
        numbers = {value for value in vars(exit_status).values()
                   if isinstance(value, int)}
        self.assertEqual(
            numbers - {exit_status.BROKEN_PIPE}, {*exit_status.TEXTS})

    def test_each_error_is_in_the_manual_of_a_sync(self):
        for error in classes(exceptions.MirrorError):
            for unwritten in False, True:
                self.assertIn(exit_status.of(error(''), unwritten),
                              exit_status.SYNC, error)
