# SPDX-License-Identifier: Apache-2.0
"""Journal rows, on a real SQLite file."""

import concurrent.futures
import dataclasses
import os

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.journal import store
from tests.unit import doubles

DIRTY = journal.Dirty('h1', frozenset({'n1', 'n2'}), 'req-1')


class TestRows(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.rows = self.journal.rows

    def recorded(self, dirty=DIRTY, aggregates=()):
        row = self.rows.make(dirty)
        self.rows.record(row, aggregates)
        return row

    def stored(self):
        """Return the rows as another process reads them."""
        return self.open_journal().rows.all()

    def test_recorded_row_is_read_by_every_process(self):
        """A row is durable on return, complete, and listed oldest first."""
        first = self.recorded()
        self.now += 1
        second = self.recorded(journal.Dirty('h0'))
        self.assertEqual([first, second], self.stored())
        self.assertEqual(
            (DIRTY, True, 1000.0, 0, '', None),
            (first.dirty, first.running, first.created_at, first.attempts,
             first.last_error, first.mirrored_at))

    def test_aggregates_enter_the_ledger_in_the_same_transaction(self):
        """Rule 8: neither is committed without the other."""
        self.recorded(aggregates=['a'])
        row = self.rows.make(journal.Dirty('h2', request_id=None))
        with self.assertRaisesRegex(exceptions.JournalUnavailable, 'NULL'):
            self.rows.record(row, ['b'])
        other = self.open_journal()
        self.assertEqual({'a'}, set(other.ledger.entries()))
        # Nor does this process consider it entered.
        self.journal.ledger.remember(['b'])
        self.assertEqual({'a', 'b'}, set(other.ledger.entries()))

    def test_threads_share_a_journal(self):
        """nova-api has native threads since release 33."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            written = list(pool.map(
                lambda _: self.recorded(aggregates=['a']), range(40)))
        self.assertEqual({row.id for row in written},
                         {row.id for row in self.stored()})

    def test_forked_process_uses_the_journal(self):
        """A worker may be forked after the journal was used."""
        self.recorded()
        child = os.fork()
        if not child:
            status = 1
            try:
                self.recorded()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        self.assertEqual(2, len(self.stored()))

    def test_closed_row_is_deleted(self):
        """The number of deleted rows is returned; they may be many."""
        kept = self.recorded()
        ids = [self.recorded().id for _number in range(501)]
        self.assertEqual(501, self.rows.close(ids))
        self.assertEqual(0, self.rows.close([ids[0], 'unknown']))
        self.assertEqual(0, self.rows.close([]))
        self.assertEqual([kept], self.stored())

    def test_row_that_was_handed_over(self):
        """It is pending, with its error and the number of attempts.

        Rule 1: a row that a lost COMMIT did not write is inserted. Others stay
        as they are.
        """
        recorded, lost = self.recorded(), self.rows.make(DIRTY)
        self.assertEqual([recorded], self.stored())
        other = self.recorded()
        self.rows.set_mirrored([recorded.id])
        for row in recorded, lost:
            self.rows.hand_over(row, 'refused')
            self.assertIn(dataclasses.replace(
                row, running=False, attempts=1, last_error='refused'),
                self.stored())
        self.assertIn(other, self.stored())

    def test_mirrored_row_is_not_pending(self):
        """A running operation that is mirrored only waits.

        Rule 2: a failure clears the time of the last success. A row that was
        handed over stays pending: its own converge failed after the agent's.
        """
        row, other = self.recorded(), self.hand_over('h1')
        self.rows.set_failed({row.id: 'refused'})
        self.now += 5
        self.rows.set_mirrored([row.id, other.id])
        for attempts, error, mirrored_at in (1, '', 1005.0), (2, 'no', None):
            self.assertIn(dataclasses.replace(
                row, attempts=attempts, last_error=error,
                mirrored_at=mirrored_at), self.stored())
            self.assertEqual({
                store.Brief(row.id, True, attempts, not mirrored_at),
                store.Brief(other.id, False, 1, True)}, {*self.rows.briefs()})
            self.rows.set_failed({row.id: 'no'})

    def test_error_fits_every_database(self):
        """It is stored in ASCII, without NUL, and truncated."""
        row = self.recorded()
        self.rows.set_failed({row.id: 'K\u00f6ln\udc80\0'})
        self.assertEqual('K\\xf6ln\\udc80\\x00', self.stored()[0].last_error)
        self.rows.hand_over(row, '\u00f6' * 100000)
        self.assertEqual(rows.ERROR_LENGTH, len(self.stored()[0].last_error))
