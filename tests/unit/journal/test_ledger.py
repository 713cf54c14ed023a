# SPDX-License-Identifier: Apache-2.0
"""The ledger, on a real SQLite file."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.journal import synced_ledger
from nova_aggregate_mirror.limits import engines
from tests import databases
from tests.unit import doubles

HOUR = 3600.0


class TestLedger(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.ledger = self.journal.ledger
        self.longest = self.conf.aggregate_mirror.max_call_age

    def entries(self):
        """Return the entries as another process reads them."""
        return self.open_journal().ledger.entries()

    def test_remembered_uuids_are_known(self):
        """Also more than fit into a statement, and duplicates."""
        uuids = ['uuid-%d' % number for number in range(1200)]
        self.ledger.remember(uuids)
        self.open_journal().ledger.remember(uuids[:3])
        self.assertEqual(dict.fromkeys(uuids, journal.LedgerEntry()),
                         self.entries())
        self.assertEqual(frozenset({'uuid-7'}),
                         self.ledger.intersection(['uuid-7', 'foreign']))
        self.assertEqual(frozenset(), self.ledger.intersection([]))

    def test_without_a_journal_nothing_is_known(self):
        """Without a journal only nova's current aggregates are owned."""
        none = journal.Ledger()
        none.remember(['a'])
        none.observe(['a'], [])
        self.assertEqual(({}, frozenset()),
                         (none.entries(), none.intersection(['a'])))

    def test_absence_lasts_from_the_first_sync_that_saw_it(self):
        """It restarts after a sync that finds the aggregate.

        Also when the clock was set back, at the next sync.
        """
        self.ledger.remember(['a', 'b'])
        for seconds, is_found in (
                (HOUR, False), (0.0, True), (-10 * HOUR, False)):
            self.now += seconds
            if is_found:
                self.ledger.observe(['a', 'b'], [])
            self.assertEqual(0.0, self.entries()['a'].absent)
            for _hour in range(3):
                self.ledger.observe(['b'], [])
                self.now += HOUR
            self.assertEqual(
                {'a': journal.LedgerEntry(absent=3 * HOUR),
                 'b': journal.LedgerEntry()}, self.entries())

    def test_forgetting(self):
        """A UUID is forgotten after a long absence without any provider.

        A process does not rely on an entry that it has deleted.
        """
        self.ledger.remember(['a', 'used', 'kept'])
        self.ledger.observe(['kept'], ['a', 'kept'])
        self.now += synced_ledger.FORGET_AFTER
        self.ledger.observe(['kept'], ['a', 'kept'])
        self.assertEqual({'a', 'used', 'kept'}, set(self.entries()))
        self.now += 1
        self.ledger.observe(['kept'], ['a', 'kept'])
        self.assertEqual({'used', 'kept'}, set(self.entries()))
        self.ledger.remember(['a'])
        self.assertEqual({'a', 'used', 'kept'}, set(self.entries()))

    def marked(self):
        return [uuid for uuid, entry in self.entries().items()
                if entry.deleted]

    def test_mark_enters_the_ledger(self):
        """Rule 8: a deletion is recorded even for an unknown aggregate.

        The mark of one that is gone stays: it allows the removal from every
        provider.
        """
        self.ledger.remember(['a'])
        self.ledger.mark('a')
        self.ledger.mark('b')
        self.assertEqual(
            dict.fromkeys('ab', journal.LedgerEntry(deleted=True)),
            self.entries())
        for _sync in range(2):
            self.ledger.observe([], [])
            self.clock += self.longest
        self.assertEqual(['a', 'b'], sorted(self.marked()))

    def test_mark_of_an_aggregate_that_nova_still_has(self):
        """Rule 9: it is cleared when no call can have made it.

        That is by the monotonic clock: those of two hosts are not compared.
        """
        self.ledger.mark('a')
        self.ledger.observe(['a'], [])
        self.now += 100 * self.longest
        self.clock += self.longest - 1
        self.ledger.observe(['a'], [])
        self.assertEqual(['a'], self.marked())
        # A second deletion gets its full time.
        self.open_journal().ledger.mark('a')
        for passed, marked in (1, ['a']), (self.longest - 1, ['a']), (1, []):
            self.clock += passed
            self.ledger.observe(['a'], [])
            self.assertEqual(marked, self.marked())
        self.assertEqual({'a'}, set(self.entries()))

    def test_what_could_not_be_entered_is_entered_later(self):
        """Its operations were mirrored; placement may have the UUIDs.

        A mark is attempted during a back-off: nova will not have its
        aggregate.
        """
        # Every failure begins a back-off.
        stored = store.Journal(self.conf, engine.Database(
            self.conf, limits=engines.Limits(timeout=0.0, backoff=60.0)))
        row = stored.rows.make(journal.Dirty('h1'))
        stored.rows.all()
        url = 'sqlite:///%s' % existing.sqlite_file(self.conf)
        databases.execute(url, 'ALTER TABLE ledger RENAME TO hidden')
        self.assertRaises(
            exceptions.JournalUnavailable, stored.ledger.mark, 'a')
        databases.execute(url, 'ALTER TABLE hidden RENAME TO ledger')
        self.assertRaises(exceptions.JournalUnavailable,
                          stored.ledger.remember, ['b'])
        self.assertRaises(exceptions.JournalUnavailable,
                          stored.rows.record, row, ['c'])
        stored.ledger.mark('d')
        self.assertTrue(self.entries()['d'].deleted)
        stored.rows.record(row)
        self.assertEqual({*'abcd'}, set(self.entries()))
