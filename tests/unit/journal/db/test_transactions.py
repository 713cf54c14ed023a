# SPDX-License-Identifier: Apache-2.0
"""Transactions of a process: opened on demand, retried on conflict."""

import concurrent.futures
import contextlib
import gc
import os
import pathlib
import sqlite3
import threading
import types

import fixtures
from oslo_db import exception as db_exc
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from tests import statements
from tests.unit import doubles
from tests.unit import servers

CALLERS = 3
DEADLOCK = db_exc.DBDeadlock()
# MariaDB's since 11.6.2, as translated by an oslo.db without a class for it.
CHANGED = db_exc.DBError(Exception(
    1020, "Record has changed since last read in table 'ledger'"))


class TestTransactions(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = doubles.make_conf(self)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.engine.PAUSE', 0.0))
        self.transactions = engine.Database(self.conf)
        self.path = pathlib.Path(
            self.conf.state_path, 'aggregate_mirror', 'journal.sqlite')

    def stored(self):
        run = engine.Database(self.conf).run
        return {*run(lambda connection: ledger.read_stored(
            connection, {'a', 'b'}))}

    def fails(self, *errors):
        """Return work that writes, then fails with each of these in turn."""
        left = list(errors)

        def work(connection):
            ledger.insert_missing(connection, frozenset({'a'}), 0.0)
            if left:
                raise left.pop(0)
            return 'done'

        return work

    def test_failed_attempts_leave_no_descriptor_open(self):
        """A locked journal is opened again by each attempt."""
        self.path.parent.mkdir()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.sqlite.BUSY_TIMEOUT', 0.0))
        with contextlib.closing(sqlite3.connect(self.path)) as other:
            other.execute('PRAGMA journal_mode = WAL')
            other.execute('BEGIN EXCLUSIVE')
            gc.collect()
            counts = []
            for _attempt in range(10):
                self.assertRaises(exceptions.JournalUnavailable,
                                  self.transactions.run, self.fails())
                counts.append(len(os.listdir('/proc/self/fd')))
            self.assertLessEqual(counts[-1], counts[0])

    def test_conflict_is_repeated(self):
        """Any kind of conflict is retried; the last result is returned.

        No database connection is made before, at import or at start.
        """
        self.assertFalse(self.path.exists())
        self.assertEqual('done', self.transactions.run(
            self.fails(DEADLOCK, CHANGED, DEADLOCK)))
        self.assertEqual({'a'}, self.stored())

    def test_error_after_which_nothing_is_written(self):
        """A conflict is one after several attempts, others are at once."""
        for text, *errors in (
                ('', *[DEADLOCK] * engine.ATTEMPTS),
                ('disk is full', db_exc.DBError(Exception('disk is full')))):
            work = self.fails(*errors)
            with self.assertRaisesRegex(exceptions.JournalUnavailable, text):
                self.transactions.run(work)
            self.assertEqual(set(), self.stored())
        self.assertEqual('done', self.transactions.run(work))

    def test_database_that_is_repaired_is_used(self):
        """A failure to open the database is not cached."""
        self.path.parent.mkdir()
        self.path.write_text('this is not a database, and it is long enough')
        self.assertRaises(exceptions.JournalUnavailable,
                          self.transactions.run, self.fails())
        self.path.unlink()
        self.assertEqual('done', self.transactions.run(self.fails()))

    def test_database_that_is_open_already(self):
        """A command that has already opened it does not open it again."""
        existing.migrate(self.conf)
        self.transactions.prepare(migrates=False)
        with statements.Statements() as executed:
            self.transactions.run(self.fails())
        self.assertFalse(
            [text for text in executed.seen if 'alembic' in text])

    def test_time_that_runs_out_while_it_is_opened(self):
        """The next call continues, and no back-off begins."""
        engine.Database(self.conf).prepare()
        limits, now, opened = engines.Limits(2.0, 30.0), 100.0, []
        clock = types.SimpleNamespace(monotonic=lambda: now)

        def create(url):
            opened.append(url)
            return engines.create(url, {}, limits)

        def answer(*_arguments):
            nonlocal now
            now += 1.9

        for name, value in (
                ('journal.db.engine.sqlite.create', create),
                ('limits.deadline.time', clock),
                ('limits.engines.time', clock)):
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.' + name, value))
        event = sa.engine.Engine, 'after_cursor_execute', answer
        sa.event.listen(*event)
        self.addCleanup(sa.event.remove, *event)
        late = engine.Database(self.conf, limits=limits)
        with deadline.within(4.0):
            error = self.assertRaises(
                exceptions.JournalNotAsked, late.run, self.fails())
        self.assertEqual(
            'the journal was not asked further: no time is left for the rest '
            'of the transaction', str(error))
        opened_first = len(opened)
        self.assertEqual('done', late.run(self.fails()))
        self.assertEqual(opened_first, len(opened))

    def test_server_that_hangs_is_met_by_all_callers_at_once(self):
        """Requests of a process wait in parallel, not in turn."""
        met = threading.Barrier(CALLERS)

        def meet(_server, _client):
            with contextlib.suppress(threading.BrokenBarrierError):
                met.wait(servers.PATIENCE / 2)

        server = self.useFixture(servers.Server(meet))
        waiting = engine.Database(
            self.conf, limits=engines.Limits(servers.PATIENCE))
        self.conf.set_override(
            'connection', 'mysql+pymysql://user@%s/journal'
            % server.url.split('/')[2], 'aggregate_mirror_database')
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            asked = [pool.submit(waiting.run, self.fails())
                     for _ in range(CALLERS)]
        self.assertFalse(met.broken)
        for each in asked:
            self.assertIsInstance(each.exception(),
                                  exceptions.JournalUnavailable)
