# SPDX-License-Identifier: Apache-2.0
"""Which agent leads, on a real SQLite file."""

import fixtures

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import lease
from tests import statements
from tests.unit import doubles

SECONDS = 15


class TestLease(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.mine = self.contestant()

    def contestant(self, seconds=SECONDS):
        """Return the lease of another agent with its own journal."""
        return lease.Lease(self.open_journal().database, seconds,
                           clock=lambda: self.clock, now=lambda: self.now)

    def test_first_agent_leads(self):
        """It leads while it renews the lease, whatever the wall clock is.

        Two renewals may fail before another agent takes the lease.
        """
        self.assertIsNone(lease.read(self.journal.database))
        self.assertTrue(self.mine.step())
        other = self.contestant()
        for self.now in (1000.0, 0.0, 1e10, 1000.0):
            self.assertFalse(other.step())
            self.clock += 2 * self.mine.renewal
            self.assertFalse(other.step())
            self.clock += self.mine.renewal
            self.assertTrue(self.mine.step())
        self.assertEqual((5, SECONDS), lease.read(self.journal.database)[1:3])

    def test_observing_agent(self):
        """It keeps no other from mirroring, nor the reverse."""
        observer = lease.Lease(
            self.open_journal().database, SECONDS, mode=conf.OBSERVE)
        for agent in observer, self.mine, observer, self.mine:
            self.assertTrue(agent.step())
        observer.release()
        self.assertTrue(lease.read(self.journal.database).holder)

    def test_renewal(self):
        """The leader knows its lease: it writes and does not read.

        It builds no statement: an idle agent renews its lease for years.
        """
        def build(*_arguments):
            raise AssertionError('a statement is built')

        self.mine.step()
        for verb in 'select', 'insert', 'update':
            self.useFixture(fixtures.MonkeyPatch('sqlalchemy.' + verb, build))
        with statements.Statements() as executed:
            self.assertTrue(self.mine.step())
        self.assertEqual(['UPDATE'], [
            text.split()[0] for text in executed.seen])

    def test_renewal_whose_answer_is_lost(self):
        """The agent that may have renewed its lease goes on to lead."""
        database = self.open_journal().database
        mine = lease.Lease(database, SECONDS, clock=lambda: self.clock)
        mine.step()
        run = database.run

        def lose(*args, **kwargs):
            run(*args, **kwargs)
            raise exceptions.JournalUnavailable('lost')

        with fixtures.MockPatchObject(database, 'run', lose):
            self.assertRaises(exceptions.JournalUnavailable, mine.step)
        for _step in range(2):
            self.assertTrue(mine.step())

    def test_lease_that_is_not_renewed(self):
        """It is taken over after it was watched for its whole duration.

        It lasts as long as its holder says, whose next renewal finds nothing.
        """
        for seconds in SECONDS, 10 * SECONDS:
            holder, other = self.contestant(seconds), self.contestant()
            self.assertTrue(holder.step())
            self.clock += 20 * SECONDS
            self.assertFalse(other.step())
            self.clock += seconds - 1
            self.assertFalse(other.step())
            self.clock += 1
            self.assertTrue(other.step())
            with statements.Statements() as executed:
                self.assertFalse(holder.step())
            self.assertEqual(['UPDATE', 'SELECT'], [
                text.split()[0] for text in executed.seen])
            other.release()

    def test_only_one_of_two_takes_it(self):
        """Both agents saw it expire; the second finds it taken.

        It watches again, and leads at once when the leader has released it;
        only the leader can do so.
        """
        self.mine.step()
        first, second = self.contestant(), self.contestant()
        first.step()
        second.step()
        self.clock += SECONDS
        self.assertTrue(first.step())
        for _step in range(2):
            self.assertFalse(second.step())
        self.mine.release()
        self.assertFalse(second.step())
        first.release()
        self.assertTrue(second.step())
        self.assertFalse(first.step())
