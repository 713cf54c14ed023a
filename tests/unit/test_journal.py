# SPDX-License-Identifier: Apache-2.0
"""The journal and the ledger, on a real SQLite file."""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import sqlite3
import stat
import threading

import fixtures
import sqlalchemy as sa

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import migration
from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import owner
from tests.unit import ends
from tests.unit import servers

CALLERS = 3
HOST = journal.Dirty(host='h1', nodes=frozenset({'n1', 'n2'}),
                     request_id='req-1')


class JournalTest(ends.TestCase):

    def other(self):
        """The journal as another process of this host has it."""
        return journal.Journal(self.conf, now=lambda: self.now)


class TestJournal(JournalTest):

    def test_record_is_seen_by_every_process(self):
        """What was recorded is durable, whole and listed oldest first."""
        first = self.journal.record(HOST, ['a'])
        second = self.journal.record(journal.Dirty(aggregate_uuid='b'))
        self.assertEqual([first, second], self.other().rows())
        self.assertEqual(HOST, self.other().rows()[0].dirty)
        self.assertEqual(1000.0, first.created_at)

    def test_record_enters_the_ledger_in_the_same_transaction(self):
        """Rule 8: no row without the ledger, no ledger without the row."""
        self.journal.record(HOST, ['a'])
        self.assertEqual(frozenset({'a'}), self.other().ledger())
        with self.assertRaisesRegex(exceptions.JournalUnavailable, 'NULL'):
            self.journal.record(journal.Dirty(host='h2', request_id=None),
                                ['b'])
        self.assertEqual(frozenset({'a'}), self.other().ledger())

    def test_every_operation_has_a_row_of_its_own(self):
        """Rule 1: two operations on one host are two rows."""
        self.journal.record(HOST)
        self.journal.record(HOST)
        self.assertEqual(2, len(self.journal.rows()))

    def test_completed_row_is_gone(self):
        """Completing twice, or what is not there, does no harm."""
        row, kept = self.journal.record(HOST), self.journal.record(HOST)
        self.journal.complete([row.id])
        self.journal.complete([row.id, 12345])
        self.journal.complete([])
        self.assertEqual([kept], self.other().rows())

    def test_row_id_never_comes_back(self):
        """A late completion cannot close a newer row."""
        row = self.journal.record(HOST)
        self.journal.complete([row.id])
        self.assertGreater(self.journal.record(HOST).id, row.id)

    def test_handed_over_row_can_be_closed_by_others(self):
        """It says why, and how often it was tried."""
        row = self.journal.record(HOST)
        self.assertEqual([], self.other().closable([row]))
        self.journal.hand_over(row.id, 'refused')
        self.journal.hand_over(row.id, 'still refused')
        left, = self.other().rows()
        self.assertEqual(('', 2, 'still refused'),
                         (left.owner, left.attempts, left.last_error))
        self.assertEqual([left], self.other().closable([left]))

    def test_late_hand_over_is_of_its_own_row(self):
        """Others' rows stay theirs, whatever number they got."""
        row = self.other().record(HOST)
        self.journal.hand_over(row.id, 'refused')
        self.assertEqual([], self.journal.closable(self.journal.rows()))

    def test_word_is_left_of_what_is_late_only(self):
        """By whichever thread the journal is told."""
        rows = [self.journal.record(HOST) for _ in range(2)]
        run, late = self.journal._run, []

        def fails(work):
            if late:
                # Another thread makes up for it meanwhile.
                self.journal._run = run
                self.journal.record(HOST)
            late.append(work)
            raise exceptions.JournalUnavailable('away')

        for row in rows:
            self.journal._run = fails
            self.assertRaises(exceptions.JournalUnavailable,
                              self.journal.hand_over, row.id, 'refused')
        self.assertEqual([rows[0].id, rows[1].id], [
            row.id for row in self.other().claim(5)])
        self.assertEqual([], list(owner.directory(self.conf).glob('*.ended')))

    def test_row_of_a_living_process_stays_its_own(self):
        """Rule 2: nobody else closes it, however old it is."""
        row = self.journal.record(HOST)
        self.now += 1e9
        self.assertEqual([], self.other().closable([row]))
        self.assertEqual([], self.journal.closable([row]))

    def test_row_of_a_killed_process_can_be_closed(self):
        """The kernel frees the lock of a process that dies."""
        child = os.fork()
        if not child:
            self.other().record(HOST)
            os.kill(os.getpid(), 9)
        os.waitpid(child, 0)
        row, = self.journal.rows()
        self.assertEqual([row], self.journal.closable([row]))
        # And again, when the lock file is gone.
        self.assertEqual([row], self.journal.closable([row]))

    def test_child_does_not_keep_a_killed_process_alive(self):
        """What a process forked may outlive it; its rows are free."""
        forked, orphan = os.pipe()
        ended, running = os.pipe()
        child = os.fork()
        if not child:
            self.journal.record(HOST)
            if not os.fork():
                os.close(running)
                os.write(orphan, b'.')
                os.read(ended, 1)
                os._exit(0)
            os.read(forked, 1)
            os.kill(os.getpid(), 9)
        os.waitpid(child, 0)
        row, = self.journal.rows()
        try:
            self.assertEqual([row], self.journal.closable([row]))
        finally:
            os.close(running)

    def test_row_that_failed_very_often_waits_no_longer(self):
        """The back-off has a limit, and no attempt is one too many."""
        row = self.journal.record(HOST)
        self.journal.hand_over(row.id, 'refused')
        often = dataclasses.replace(self.journal.claim(1)[0], attempts=5000)
        self.journal.retry_later({often: 'failed'})
        self.assertEqual([], self.journal.claim(1))
        self.now += journal.LONGEST_BACKOFF
        self.assertEqual(1, len(self.journal.claim(1)))

    def test_error_is_kept_as_every_database_takes_it(self):
        """In ASCII, without a NUL, and not for ever long."""
        row = self.journal.record(HOST)
        self.journal.hand_over(row.id, 'K\u00f6ln\udc80\0')
        left, = self.journal.rows()
        self.assertEqual('K\\xf6ln\\udc80\\x00', left.last_error)
        self.journal.hand_over(row.id, 'x' * 100000)
        left, = self.journal.rows()
        self.assertEqual('x' * journal.ERROR_LENGTH, left.last_error)

    def test_row_of_another_host_waits_for_the_longest_call(self):
        """Nobody here can tell whether its owner is alive."""
        row = self.journal.record(HOST)
        elsewhere = row.__class__(**{**row.__dict__,
                                     'owner': 'controller-2:0123:77-abc'})
        self.assertEqual([], self.journal.closable([elsewhere]))
        self.now += self.conf.aggregate_mirror.max_call_age + 1
        self.assertEqual([elsewhere], self.journal.closable([elsewhere]))

    def test_ledger_knows_what_it_was_told(self):
        """More UUIDs than one query takes, and the same ones twice."""
        uuids = ['uuid-%d' % number for number in range(1200)]
        self.journal.remember(uuids)
        self.journal.remember(uuids[:3])
        self.assertEqual(frozenset(uuids), self.journal.ledger())
        self.assertEqual(frozenset({'uuid-7'}),
                         self.journal.known(['uuid-7', 'foreign']))

    def test_processes_write_at_once(self):
        """No row is lost, and nobody is told that the database is locked."""
        children = []
        for _number in range(4):
            children.append(os.fork())
            if not children[-1]:
                status = 1
                try:
                    other = self.other()
                    for _turn in range(25):
                        other.record(HOST, ['a', 'b'])
                    status = 0
                finally:
                    os._exit(status)
        self.assertEqual([0] * 4, [os.waitstatus_to_exitcode(
            os.waitpid(child, 0)[1]) for child in children])
        self.assertEqual(100, len(self.journal.rows()))

    def test_threads_share_a_journal(self):
        """nova-api has native threads from release 33."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda _: self.journal.record(HOST, ['a']),
                                 range(40)))
        self.assertEqual(40, len({row.id for row in rows}))
        self.assertEqual(1, len({row.owner for row in rows}))

    def test_child_of_a_fork_is_another_owner(self):
        """It signs with its own name, and does not keep ours alive."""
        row = self.journal.record(HOST)
        child = os.fork()
        if not child:
            status = 1
            try:
                theirs = self.journal.record(HOST)
                status = 0 if theirs.owner != row.owner else 2
            finally:
                os._exit(status)
        self.assertEqual(0, os.waitstatus_to_exitcode(
            os.waitpid(child, 0)[1]))


class TestDatabase(JournalTest):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(
            self.conf.state_path, 'aggregate_mirror', 'journal.sqlite')

    def connect_to(self, url):
        self.conf.set_override('connection', url, 'aggregate_mirror_database')

    def test_file_is_private_and_has_a_write_ahead_log(self):
        """Nobody but nova reads it, and readers do not block writers."""
        self.journal.record(HOST)
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
        self.assertEqual(0o700, stat.S_IMODE(self.path.parent.stat().st_mode))
        with sqlite3.connect(self.path) as plain:
            self.assertEqual(('wal',), plain.execute(
                'PRAGMA journal_mode').fetchone())

    def test_migrations_lead_to_the_models(self):
        """The tables of the newest migration are those that we use."""
        database = engine.Database(self.conf)
        self.assertIsNone(database.version())
        database.migrate()
        self.assertEqual(migration.HEAD, database.version())
        with database.transaction() as connection:
            inspector = sa.inspect(connection)
            for table in models.metadata.sorted_tables:
                self.assertEqual(
                    [(column.name, column.nullable) for column in table.c],
                    [(column['name'], column['nullable'])
                     for column in inspector.get_columns(table.name)])
                self.assertEqual(
                    sorted(index.name for index in table.indexes),
                    sorted(index['name']
                           for index in inspector.get_indexes(table.name)))

    def test_head_is_the_newest_migration(self):
        """The constant that spares nova-api alembic is not out of date."""
        versions = pathlib.Path(migration.__file__).parent.joinpath(
            'migrations', 'versions').glob('[0-9]*.py')
        self.assertEqual(migration.HEAD,
                         max(path.name for path in versions)[:4])

    def test_migrating_twice_changes_nothing(self):
        """Two nova-api workers may both find an empty file."""
        self.journal.record(HOST)
        engine.Database(self.conf).migrate()
        self.assertEqual(1, len(self.journal.rows()))

    def test_tables_of_a_newer_release_are_used_as_they_are(self):
        """A controller that is not upgraded yet goes on."""
        database = engine.Database(self.conf)
        database.migrate()
        with database.transaction() as connection:
            connection.execute(sa.text(
                'UPDATE alembic_version SET version_num = \'9999\''))
        self.journal.record(HOST)
        self.assertEqual('9999', database.version())

    def test_file_that_is_no_database_is_a_clear_error(self):
        """And the next call tries again."""
        self.path.parent.mkdir()
        self.path.write_text('this is not a database, and it is long enough')
        with self.assertRaisesRegex(exceptions.JournalUnavailable,
                                    'not a database'):
            self.journal.record(HOST)
        self.path.unlink()
        self.journal.record(HOST)

    def test_server_that_hangs_is_met_by_all_at_once(self):
        """Requests of one process wait beside each other, not in turn."""
        met = threading.Barrier(CALLERS)

        def meet(_server, _client):
            with contextlib.suppress(threading.BrokenBarrierError):
                met.wait(servers.PATIENCE / 2)

        server = self.useFixture(servers.Server(meet))
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.db.engine.PATIENCE', servers.PATIENCE))
        self.connect_to('mysql+pymysql://user@%s/journal'
                        % server.url.split('/')[2])
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            asked = [pool.submit(self.journal.record, HOST)
                     for _ in range(CALLERS)]
        self.assertFalse(met.broken)
        for each in asked:
            self.assertIsInstance(each.exception(), exceptions.NotRecorded)

    def test_directory_that_cannot_be_made_is_a_clear_error(self):
        """The reason is named; nothing is lost that was there."""
        self.connect_to('sqlite:////proc/nowhere/journal.sqlite')
        with self.assertRaisesRegex(exceptions.JournalUnavailable, 'nowhere'):
            self.journal.record(HOST)

    def test_server_that_refuses_is_a_clear_error_without_the_password(self):
        """oslo.db's 100 seconds of retries are not spent."""
        self.connect_to('mysql+pymysql://nova:s3cret@127.0.0.1:1/journal')
        error = self.assertRaises(exceptions.JournalUnavailable,
                                  self.journal.record, HOST)
        self.assertNotIn('s3cret', str(error))

    def test_url_that_is_none_is_a_clear_error_without_the_password(self):
        """The message says which option, and what it should look like."""
        self.connect_to('nova:s3cret@somewhere')
        error = self.assertRaises(exceptions.InvalidConfiguration,
                                  self.journal.record, HOST)
        self.assertIn('[aggregate_mirror_database] connection', str(error))
        self.assertNotIn('s3cret', str(error))
