# SPDX-License-Identifier: Apache-2.0
"""The journal on SQLite, MySQL or MariaDB, and PostgreSQL.

How each method behaves for a single caller is in the unit tests.
"""

from collections.abc import Iterator
import contextlib
import random
import uuid

import fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from tests import databases
from tests import patience
from tests import processes
from tests.unit import doubles

load_tests = testscenarios.load_tests_apply_scenarios

PROCESSES = 8
PATIENCE = patience.seconds(300)
TURNS = 150
HOST = journal.Dirty(host='h1', nodes=frozenset({'n1', 'n2'}),
                     request_id='req-1')
SERVERS = [*databases.SCENARIOS[1:], databases.PSYCOPG]
# The default of MariaDB since 11.6.2: updating a row that was changed after
# the transaction began is an error.
SNAPSHOT = ('mysql with snapshots', {
    'kind': 'mysql', 'first': 'SET innodb_snapshot_isolation = ON'})


def write(kept: store.Journal, number: int, turns: int) -> int:
    """Write as the process of a number; return how many rows it closed."""
    chance = random.Random(number)
    rows, closed = kept.rows, 0
    for turn in range(turns):
        row = rows.make(HOST)
        rows.record(row, {'aggregate-%d' % turn})
        if chance.random() < 0.2:
            closed += rows.close([row.id])
        else:
            rows.hand_over(row, 'refused')
        if turn % 3:
            continue
        ids = [brief.id for brief in rows.briefs() if not brief.running]
        chance.shuffle(ids)
        rows.set_failed(dict.fromkeys(ids[:2], 'failed'))
        rows.set_mirrored(ids[2:4])
        closed += rows.close(ids[4:8])
        rows.all()
    return closed


class DatabaseTest(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS
    driver = first = ''
    """The first statement of each connection."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(doubles.ShortUUIDs())
        # However busy the machine is.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.sqlite.BUSY_TIMEOUT', 60.0))
        self.conf = doubles.make_conf(self)
        self.url = databases.create(self, self.kind, self.driver)
        connection = sa.engine.make_url(self.url)
        if self.first:
            try:
                databases.execute(self.url, self.first)
            except sa.exc.SQLAlchemyError as exc:
                self.skipTest('this server cannot %s: %s' % (self.first, exc))
            connection = connection.update_query_dict(
                {'init_command': self.first})
        self.conf.set_override(
            'connection', connection.render_as_string(hide_password=False),
            'aggregate_mirror_database')
        if self.kind != 'sqlite':
            existing.migrate(self.conf)
        self.now, self.clock = 1.7e9, 0.0
        self.journal = self.open()
        self.rows, self.ledger = self.journal.rows, self.journal.ledger

    def open(self, limits: engines.Limits = engine.LIMITS) -> store.Journal:
        """Open the journal as another process does."""
        return store.Journal(
            self.conf, engine.Database(self.conf, limits=limits),
            now=lambda: self.now, clock=lambda: self.clock)

    def record(self, dirty: journal.Dirty = HOST) -> journal.Row:
        """Record the row of a running operation."""
        row = self.rows.make(dirty)
        self.rows.record(row)
        return row


class TestLimits(DatabaseTest):

    scenarios = SERVERS

    def setUp(self) -> None:
        super().setUp()
        self.attempts = 0
        self.journal = self.open(engines.Limits(2))
        self.locker = sa.create_engine(
            self.url, isolation_level='REPEATABLE READ').connect()
        self.addCleanup(self.locker.close)
        self.useFixture(fixtures.Timeout(PATIENCE, gentle=True))

    def assert_unavailable(
            self, statement: str,
            error: type[Exception] = exceptions.JournalUnavailable) -> None:
        """Assert that the statement is attempted once, and that it fails."""
        def work(connection: sa.engine.Connection) -> None:
            self.attempts += 1
            connection.exec_driver_sql(statement)

        self.assertIs(error, type(self.assertRaises(
            exceptions.JournalUnavailable, self.journal.database.run, work)))
        self.assertEqual(1, self.attempts)

    def read(self, query: str) -> object:
        """Return the value that a query has in the journal."""
        return self.journal.database.run(
            lambda connection: connection.exec_driver_sql(query).scalar())

    def session(self) -> object:
        """Return the ID of the journal's connection at the server."""
        return self.read(
            'SELECT pg_backend_pid()' if self.kind == 'postgresql'
            else 'SELECT CONNECTION_ID()')

    def test_lost_lock_is_no_silence(self) -> None:
        """It is attempted once, and then other rows are written at once.

        Neither the connection nor the journal's availability is in doubt:
        oslo.db reports the same error as for a deadlock, and a lagging Galera
        node the same as for a lock.
        """
        locked, free = self.record(), self.record()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.engines.SILENT', 0.0))
        self.journal = self.open(engines.Limits(2, backoff=3600))
        session = self.session()
        self.locker.exec_driver_sql(
            "SELECT * FROM dirty WHERE id = '%s' FOR UPDATE" % locked.id)
        for statement in ("UPDATE dirty SET attempts = 1 WHERE id = '%s'",
                          "DELETE FROM dirty WHERE id = '%s'"):
            self.attempts = 0
            self.assert_unavailable(
                statement % locked.id, exceptions.JournalLocked)
        self.assertEqual(1, self.journal.rows.close([free.id]))
        self.assertEqual(session, self.session())

    def test_statements_that_are_not_answered(self) -> None:
        """The server ends each; on MySQL another node may lag less.

        It holds no connection and no lock after its limit: libpq has no
        timeout for it.
        """
        self.record()
        on_postgresql = self.kind == 'postgresql'
        locked = (exceptions.JournalLocked if on_postgresql
                  else exceptions.JournalUnavailable)
        for lock, query, error in (
                ('', 'SELECT pg_sleep(50)' if on_postgresql
                 else 'SELECT SLEEP(50)', exceptions.JournalUnavailable),
                ('SELECT * FROM dirty FOR UPDATE',
                 'SELECT * FROM dirty FOR UPDATE', locked),
                ('LOCK TABLE dirty' if on_postgresql
                 else 'LOCK TABLES dirty WRITE', 'SELECT * FROM dirty',
                 locked)):
            self.attempts = 0
            session = self.session()
            if lock:
                self.locker.exec_driver_sql(lock)
            self.assert_unavailable(query, error)
            if query == lock:
                self.assertEqual(on_postgresql, session == self.session())

    def test_lock_wait(self) -> None:
        """It is half of an answer, and in an agent a second at most."""
        wait = ('SHOW lock_timeout' if self.kind == 'postgresql'
                else 'SELECT @@innodb_lock_wait_timeout')
        one, five = (('1s', '5s') if self.kind == 'postgresql' else (1, 5))
        self.journal = self.open(engines.Limits(10))
        self.assertEqual(five, self.read(wait))
        self.journal = self.open()
        self.assertEqual(one, self.read(wait))
        session, row = self.session(), self.record()
        self.locker.exec_driver_sql('SELECT * FROM dirty FOR UPDATE')
        self.assertRaises(exceptions.JournalLocked,
                          self.journal.rows.close, [row.id])
        self.assertEqual((one, session), (self.read(wait), self.session()))


class TestManyProcesses(DatabaseTest):

    scenarios = [*databases.SCENARIOS, SNAPSHOT]

    def open(self, limits: engines.Limits = engines.Limits()
             ) -> store.Journal:
        # An agent writes alone, here all write what an agent does.
        return super().open(limits)

    def test_no_row_is_lost(self) -> None:
        """All processes record all their rows, and none gets an error."""
        def work(number: int) -> int:
            return write(self.open(), number, TURNS)

        closed = sum(processes.at_once(PROCESSES, work))
        left = self.rows.all()
        self.assertEqual(PROCESSES * TURNS, closed + len(left))
        self.assertEqual({'aggregate-%d' % turn for turn in range(TURNS)},
                         set(self.ledger.entries()))

    def test_ledger_by_many_at_once(self) -> None:
        """The same UUIDs are entered once, and no mark is lost."""
        uuids = {str(uuid.UUID(int=number)) for number in range(300)}
        marked = sorted(uuids)[:PROCESSES]

        def work(number: int) -> None:
            # Each waits for the locks of all others, however slow these are.
            ledger = self.open(engines.Limits(PATIENCE)).ledger
            ledger.remember(uuids)
            for _turn in range(10):
                ledger.observe(uuids - {marked[number]}, marked)
                ledger.mark(marked[number])

        processes.at_once(PROCESSES, work)
        found = self.ledger.entries()
        self.assertEqual(uuids, set(found))
        self.assertEqual(set(marked), {
            one for one, entry in found.items() if entry.deleted})

    def test_lease_is_taken_by_one(self) -> None:
        """Of simultaneous attempts only one succeeds: new, held or left."""
        def work(number: int) -> bool:
            return lease.Lease(self.open().database, 15).step()

        self.assertEqual(1, sum(processes.at_once(PROCESSES, work)))
        databases.execute(self.url, 'DELETE FROM lease')
        first = lease.Lease(self.journal.database, 15)
        self.assertTrue(first.step())
        self.assertEqual(0, sum(processes.at_once(PROCESSES, work)))
        first.release()
        self.assertEqual(1, sum(processes.at_once(PROCESSES, work)))

    def test_first_cells_by_two_novas_at_once(self) -> None:
        """Of two novas that start at once, only one gets the journal."""
        def work(number: int) -> bool:
            agent = binding.Binding(
                self.open().database,
                lambda: {'cell-%d' % (number % 2): ''}, dict)
            # The first attempt may find that another agent was faster.
            return any(agent.bind() for _attempt in range(2))

        for _turn in range(5):
            bound = processes.at_once(PROCESSES, work)
            half = PROCESSES // 2
            self.assertIn(bound, ([True, False] * half, [False, True] * half))
            databases.execute(self.url, 'DELETE FROM cells')


class TestValues(DatabaseTest):

    scenarios = [*databases.SCENARIOS, databases.PSYCOPG]

    def test_names_are_exact(self) -> None:
        """Names stay case-sensitive, even on a case-insensitive server."""
        hosts = ['h1', 'H1', 'h1 ', 'x' * 255]
        for host in hosts:
            self.record(journal.Dirty(host=host))
            self.now += 1
        self.assertEqual(hosts, [
            row.dirty.host for row in self.open().rows.all()])
        self.ledger.remember(['abc'])
        self.assertEqual(
            frozenset(), self.ledger.intersection(['ABC']) - {'abc'})

    def test_row_of_a_host_with_very_many_nodes(self) -> None:
        """A nova-compute with 5000 ironic nodes fits into a row."""
        nodes = frozenset(str(uuid.UUID(int=n)) for n in range(5000))
        self.record(journal.Dirty(host='h1', nodes=nodes))
        row, = self.open().rows.all()
        self.assertEqual(nodes, row.dirty.nodes)

    def test_error_that_no_column_takes(self) -> None:
        """It is truncated, in characters that every database has."""
        bad = 'K\u00f6ln \U0001f600\udc80\0' + 'x' * (1 << 20)
        row = self.record()
        self.rows.hand_over(row, bad)
        handed, = self.rows.all()
        self.assertThat(handed.last_error, testtools.matchers.StartsWith('K'))
        self.assertIn('xxx', handed.last_error)
        self.rows.set_failed({row.id: bad})
        again, = self.rows.all()
        self.assertEqual(handed.last_error, again.last_error)

    def test_times_are_exact(self) -> None:
        """A mark is cleared only if it equals the value that was read."""
        self.now = 1763700000.1234567
        row = self.record()
        self.assertEqual([row], self.open().rows.all())
        self.ledger.mark('a')
        self.ledger.observe(['a'], [])
        self.assertTrue(self.ledger.entries()['a'].deleted)
        self.clock += self.conf.aggregate_mirror.max_call_age
        self.ledger.observe(['a'], [])
        self.assertFalse(self.ledger.entries()['a'].deleted)


class TestServer(DatabaseTest):

    scenarios = SERVERS

    def setUp(self) -> None:
        super().setUp()
        self.name = str(sa.engine.make_url(self.url).database)
        self.account = 'u' + self.name[-12:]

    def test_limit_of_the_user(self) -> None:
        """It is the reason, and a higher one is the step."""
        user, limit = ("'%s'@'127.0.0.1'" % self.account,
                       'ALTER USER %s WITH MAX_USER_CONNECTIONS %d')
        if self.kind == 'postgresql':
            user, limit = self.account, 'ALTER ROLE %s CONNECTION LIMIT %d'
        limited = self.use_account(user)
        databases.execute(self.url, limit % (user, 1))
        with contextlib.closing(sa.create_engine(
                limited, poolclass=sa.pool.NullPool).connect()):
            self.assert_refused(
                'the journal refused the user, whose %s is used up: on the '
                'database server, raise that limit of the user in '
                '[aggregate_mirror_database] connection' % (
                    'connection limit' if self.kind == 'postgresql'
                    else 'max_user_connections'))
            databases.execute(self.url, limit % (user, 9))
            self.assert_used()

    def test_limit_of_the_database(self) -> None:
        """PostgreSQL has one, too."""
        if self.kind != 'postgresql':
            self.skipTest('MySQL has no limit of a database')
        limit = 'ALTER DATABASE %s CONNECTION LIMIT ' % self.name
        self.use_account(self.account)
        databases.execute(self.url, limit + '0')
        self.assert_refused(
            'the journal has too many connections to the database: raise the '
            'connection limit of the database')
        databases.execute(self.url, limit + '9')
        self.assert_used()

    def use_account(self, user: str) -> sa.engine.URL:
        """Use the journal as a new user; return its URL."""
        grant = 'GRANT ALL ON %s.* TO %s' % (self.name, user)
        verbs = ['CREATE USER %s', 'DROP USER %s']
        if self.kind == 'postgresql':
            grant = 'GRANT ALL ON ALL TABLES IN SCHEMA public TO ' + user
            verbs = ['CREATE ROLE %s LOGIN', 'DROP OWNED BY %s',
                     'DROP ROLE %s']
        create, *drop = (verb % user for verb in verbs)
        databases.execute(self.url, create, grant)
        self.addCleanup(databases.execute, self.url, *drop)
        url = sa.engine.make_url(self.url).set(
            username=self.account, password=None)
        self.conf.set_override('connection', url.render_as_string(),
                               'aggregate_mirror_database')
        return url

    def assert_refused(self, text: str) -> None:
        self.assertEqual(text, str(self.assertRaises(
            exceptions.JournalUnavailable,
            engine.Database(self.conf).schema)))

    def assert_used(self) -> None:
        self.assertFalse(engine.Database(self.conf).schema().is_outdated)

    def test_no_statement_is_prepared(self) -> None:
        """A pooler may lead the next transaction to another session."""
        if self.kind != 'postgresql':
            self.skipTest('drivers of MySQL prepare none')
        for _turn in range(20):
            self.rows.all()
        self.assertEqual(0, self.journal.database.run(
            lambda connection: connection.exec_driver_sql(
                'SELECT count(*) FROM pg_prepared_statements').scalar()))

    def test_connections_that_the_server_has_closed(self) -> None:
        """The next call opens a new connection and succeeds."""
        self.record()
        databases.disconnect(self.url)
        self.record()
        self.assertEqual(2, len(self.rows.all()))

    def test_server_that_has_become_a_replica(self) -> None:
        """A new connection may lead to the server that has replaced it."""
        read_only = ('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'
                     if self.kind == 'postgresql' else
                     'SET SESSION TRANSACTION READ ONLY')
        self.journal.database.run(
            lambda connection: connection.exec_driver_sql(read_only))
        error = self.assertRaises(exceptions.JournalUnavailable, self.record)
        self.assertEqual(causes.READ_ONLY.kind, error.failure.kind)
        self.record()

    def test_answer_to_a_commit_is_lost(self) -> None:
        """The row exists, and its own process closes or hands it over."""
        self.record()
        closed, handed = (self.rows.make(HOST) for _ in range(2))
        for row in (closed, handed):
            with self.unanswered():
                self.assertRaises(exceptions.JournalUnavailable,
                                  self.rows.record, row, ['a'])
        self.assertEqual({'a'}, set(self.open().ledger.entries()))
        self.assertEqual(1, self.rows.close([closed.id]))
        self.rows.hand_over(handed, 'refused')
        self.assertEqual(2, len(self.rows.all()))
        found, = self.rows.get([handed.id])
        self.assertEqual((False, 1), (found.running, found.attempts))

    @contextlib.contextmanager
    def unanswered(self) -> Iterator[None]:
        """Commit on the server, then close the connection."""
        def commit(connection: sa.engine.Connection) -> None:
            connection.exec_driver_sql('COMMIT')
            # Psycopg sends no COMMIT without a transaction.
            connection.exec_driver_sql('SELECT 1')
            databases.disconnect(self.url)

        sa.event.listen(sa.engine.Engine, 'commit', commit)
        try:
            yield
        finally:
            sa.event.remove(sa.engine.Engine, 'commit', commit)
