# SPDX-License-Identifier: Apache-2.0
"""Writes of one step to rows that other sessions lock."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import reconciler


class TestRowLocks(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.locks = reconciler.RowLocks()
        self.waits = []

    def wait(self, ids):
        """Wait in vain for the lock of one of the rows."""
        self.waits.append(ids)
        raise exceptions.JournalLocked('locked')

    def test_more_locked_rows_than_a_step_waits_for(self):
        """It waits a few times, and then writes no row of any statement."""
        first, later = ['a', 'b', 'c', 'd'], ['e', 'f']
        self.locks.write(self.wait, first)
        self.assertEqual([first, ['a'], ['b']], self.waits)
        self.locks.write(self.wait, later)
        self.assertEqual(reconciler.MOST_TIMEOUTS, len(self.waits))
        self.assertEqual({*first, *later}, self.locks.locked.keys())
        self.assertEqual({'a', 'b'}, self.locks.waited)
