# SPDX-License-Identifier: Apache-2.0
"""Who leads, on a real SQLite file."""

import fixtures

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import lease
from tests import processes
from tests.unit import ends

SECONDS = 15


class TestLease(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.elapsed = 100.0
        self.mine = self.contestant()

    def contestant(self):
        """An agent of this host, with a lock of its own."""
        kept = journal.Journal(self.conf, now=lambda: self.now)
        return lease.Lease(kept, 'sync', SECONDS, now=lambda: self.elapsed)

    def test_first_one_leads(self):
        """And goes on for as long as it renews, whatever the time."""
        self.assertTrue(self.mine.step())
        other = self.contestant()
        for _ in range(5):
            self.assertFalse(other.step())
            self.elapsed += SECONDS - 1
            self.assertTrue(self.mine.step())

    def test_lease_that_is_not_renewed(self):
        """It is taken when it was watched for all of its time, not before."""
        self.mine.step()
        other = self.contestant()
        self.elapsed += 10 * SECONDS
        self.assertFalse(other.step())
        self.elapsed += SECONDS - 1
        self.assertFalse(other.step())
        self.elapsed += 1
        self.assertTrue(other.step())
        self.assertFalse(self.mine.step())

    def test_lease_lasts_as_long_as_its_holder_says(self):
        """Of two agents with different options, neither takes it early."""
        lease.Lease(self.journal, 'sync', 10 * SECONDS).step()
        self.assertFalse(self.mine.step())
        self.elapsed += 10 * SECONDS - 1
        self.assertFalse(self.mine.step())
        self.elapsed += 1
        self.assertTrue(self.mine.step())

    def test_only_one_of_two_takes_it(self):
        """Both have seen that it is free: the second one sees that it is not.

        The one that was passed over starts to watch anew.
        """
        self.mine.step()
        others = [self.contestant(), self.contestant()]
        for other in others:
            other.step()
        self.elapsed += SECONDS
        self.assertEqual([True, False], [other.step() for other in others])
        self.assertFalse(others[1].step())

    def test_lease_that_was_left(self):
        """The next one leads at once; who does not lead leaves nothing."""
        self.mine.step()
        other = self.contestant()
        other.leave()
        self.assertFalse(other.step())
        self.mine.leave()
        self.assertTrue(other.step())
        self.assertFalse(self.mine.step())

    def test_leader_that_was_killed(self):
        """The next one on its host leads at once."""
        self.assertTrue(processes.killed(lambda: self.contestant().step()))
        self.assertTrue(self.mine.step())

    def test_leader_of_another_user_that_was_killed(self):
        """Its lock cannot be tested: the lease lasts for all of its time."""
        processes.killed(lambda: self.contestant().step())
        with fixtures.MonkeyPatch('os.access', lambda path, mode: False):
            self.assertFalse(self.mine.step())
            self.elapsed += SECONDS
            self.assertTrue(self.mine.step())

    def test_wall_clock_does_not_matter(self):
        """It may be set to whatever: nobody looks at it."""
        self.mine.step()
        other = self.contestant()
        self.assertFalse(other.step())
        for self.now in (0.0, 1e10):
            self.assertFalse(other.step())
            self.assertTrue(self.mine.step())

    def test_journal_that_is_away(self):
        """Then nobody can tell who leads."""
        self.conf.set_override('connection', 'sqlite:////proc/none/journal',
                               'aggregate_mirror_database')
        self.assertRaises(exceptions.JournalUnavailable,
                          self.contestant().step)
