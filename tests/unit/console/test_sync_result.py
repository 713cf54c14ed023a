# SPDX-License-Identifier: Apache-2.0
"""The result of a full sync as rows and lines."""

import testtools

from nova_aggregate_mirror.console import sync_result
from tests.unit.reconcile import test_result


class TestRows(testtools.TestCase):

    def test_actions(self):
        """They are the same in a dry run; what nova has to do has none."""
        for write in True, False:
            self.assertEqual(
                ['add', 'remove', 'stale_kept', 'foreign_aggregate',
                 'foreign_provider', 'unknown_provider', 'absent'],
                [row[0] for row in sync_result.rows(test_result.judged(
                    'absent', 'unknown_provider', 'foreign_provider',
                    'foreign_aggregate', 'stale_kept', 'stale', 'missing',
                    'pending', 'unknown', 'disputed', write=write))])

    def test_table(self):
        """Names come first; an aggregate without a name has its UUID."""
        self.assertEqual(
            [('add', ('h', 'n'), 'zone'),
             ('absent', ('n', 'aggregate a'), '')],
            sync_result.in_table([('add', 'h', 'n', 'zone', 'a'),
                                  ('absent', '', 'n', '', 'a')]))
