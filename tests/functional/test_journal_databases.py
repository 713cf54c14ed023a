# SPDX-License-Identifier: Apache-2.0
"""The journal on SQLite, MySQL or MariaDB, and PostgreSQL: the same promises.

What concerns one process only is in ``tests/unit/test_journal.py``.
"""

import contextlib
import mmap
import pathlib
import random
import uuid

import fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import lease
from nova_aggregate_mirror import owner
from tests import databases
from tests import processes
from tests.unit import ends

load_tests = testscenarios.load_tests_apply_scenarios

PROCESSES = 8
TURNS = 150
HOST = journal.Dirty(host='h1', nodes=frozenset({'n1', 'n2'}),
                     request_id='req-1')
# The default of MariaDB from 11.6.2 on: a row that changed since the
# transaction began is an error.
SNAPSHOT = ('mysql with snapshots', {
    'kind': 'mysql', 'first': 'SET innodb_snapshot_isolation = ON'})


class DatabaseTest(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS
    first = ''
    """What each connection says first."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = ends.make_conf(self)
        self.url = databases.create(self, self.kind)
        connection = sa.make_url(self.url)
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
            engine.Database(self.conf).migrate()
        self.now = 1.7e9
        self.journal = self.open()

    def open(self, **kwargs):
        """The journal as another process of this host has it."""
        return journal.Journal(self.conf, now=lambda: self.now, **kwargs)

    def elsewhere(self):
        """The journal as a process on another host has it."""
        return self.open(owner=owner.Owner(pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)))

    def handed_over(self, count):
        rows = [self.journal.record(HOST) for _ in range(count)]
        for row in rows:
            self.journal.hand_over(row.id, 'refused')
        return [row.id for row in rows]


class TestManyProcesses(DatabaseTest):

    scenarios = [*databases.SCENARIOS, SNAPSHOT]

    def test_no_row_is_lost_and_none_closed_twice(self):
        """All of them write, claim and close at once; none sees an error."""
        # Who holds each row; set after it was claimed, cleared before it is
        # given back.
        holders = mmap.mmap(-1, 1 << 20)

        def work(number):
            chance, kept = random.Random(number), journal.Journal(self.conf)
            closed, twice = 0, []
            for turn in range(TURNS):
                row = kept.record(HOST, {'aggregate-%d' % turn})
                if chance.random() < 0.2:
                    closed += kept.complete([row.id])
                else:
                    kept.hand_over(row.id, 'refused')
                if turn % 3:
                    continue
                claimed = kept.claim(8)
                twice += [one.id for one in claimed if holders[one.id]]
                for one in claimed:
                    holders[one.id] = number + 1
                kept.backlog()
                for one in claimed:
                    holders[one.id] = 0
                kept.retry_later(dict.fromkeys(claimed[:2], 'failed'))
                kept.release(one.id for one in claimed[2:4])
                closed += kept.complete(one.id for one in claimed[4:])
            return closed, twice

        results = processes.at_once(PROCESSES, work)
        self.assertEqual([[]] * PROCESSES, [twice for _, twice in results])
        closed = sum(closed for closed, _ in results)
        left = {row.id for row in self.journal.rows()}
        self.assertEqual(PROCESSES * TURNS, closed + len(left))
        self.assertEqual({'aggregate-%d' % turn for turn in range(TURNS)},
                         self.journal.ledger())
        # Every one that is left can be claimed, and once.
        self.now = max(row.created_at for row in self.journal.rows()) + 1000
        claimed = [row.id for row in self.journal.claim(len(left) + 1)]
        self.assertEqual(sorted(left), sorted(claimed))
        self.assertEqual(len(left), self.journal.complete(claimed))

    def test_row_is_closed_by_one(self):
        """However many complete it at the same time."""
        ids = self.handed_over(40)
        self.assertEqual(len(ids), sum(processes.at_once(
            PROCESSES, lambda number: self.open().complete(ids))))

    def test_row_is_claimed_by_one(self):
        """However many want it at the same time."""
        ids = self.handed_over(40)
        claimed = processes.at_once(PROCESSES, lambda number: [
            row.id for row in self.open().claim(40)])
        self.assertEqual(ids, sorted(sum(claimed, [])))

    def test_ledger_entries_by_many_at_once(self):
        """The same UUIDs in the same moment are entered once."""
        uuids = {str(uuid.UUID(int=number)) for number in range(300)}
        processes.at_once(
            PROCESSES, lambda number: self.open().remember(uuids))
        self.assertEqual(uuids, self.journal.ledger())

    def test_lease_is_taken_by_one(self):
        """Of those that try at the same time, also when it was left."""
        def work(number):
            return lease.Lease(self.open(), 'sync', 15).step()

        self.assertEqual(1, sum(processes.at_once(PROCESSES, work)))
        # All of them are gone, the leader too.
        self.assertEqual(1, sum(processes.at_once(PROCESSES, work)))


class TestOthers(DatabaseTest):

    def test_claim_of_a_killed_process_is_free_at_once(self):
        """And so are its rows; what lives in between keeps its own."""
        mine = self.handed_over(5)
        self.assertEqual(mine, [row.id for row in self.journal.claim(5)])
        self.handed_over(5)

        def work():
            theirs = self.open()
            return [row.id for row in theirs.claim(5)] + [
                theirs.record(HOST).id]

        ids = processes.killed(work)
        self.assertEqual(6, len(ids))
        self.assertEqual(ids, sorted(
            row.id for row in self.open().claim(6)))

    def test_row_of_a_process_on_another_host(self):
        """It is converged when it is overdue, and closed much later."""
        row = self.elsewhere().record(HOST)
        self.assertEqual([], self.journal.claim(5))
        self.now += 2 * self.conf.aggregate_mirror.inline_timeout + 1
        overdue, = self.journal.claim(5)
        self.assertEqual(row.id, overdue.id)
        self.assertEqual([], self.journal.closable([overdue]))
        self.journal.retry_later({overdue: 'may still run'})
        self.now += self.conf.aggregate_mirror.max_call_age + 1
        again, = self.journal.claim(5)
        self.assertEqual([again], self.journal.closable([again]))

    def test_row_that_another_host_has_set_back(self):
        """Whoever can tell need not wait for those who cannot."""
        dead = processes.killed(lambda: self.open().record(HOST).id)
        running = self.journal.record(HOST)
        self.now += 2 * self.conf.aggregate_mirror.inline_timeout + 1
        far = self.elsewhere()
        tried = far.claim(5)
        self.assertEqual([dead, running.id], [row.id for row in tried])
        self.assertEqual([], far.closable(tried))
        far.retry_later(dict.fromkeys(tried, 'may still run'))
        here = self.open()
        taken, = here.claim(5)
        self.assertEqual((dead, ''), (taken.id, taken.owner))
        here.release([dead])
        self.now += journal.LONGEST_BACKOFF
        self.assertEqual([dead], [row.id for row in far.closable(
            far.claim(5))])

    def test_rows_that_fail_keep_nobody_waiting(self):
        """What a dead process has left comes first, once.

        A claim of one row is what an agent makes while nothing succeeds.
        """
        dead = processes.killed(lambda: self.open().record(HOST).id)
        far = self.elsewhere().record(HOST).id
        self.now += 2 * self.conf.aggregate_mirror.inline_timeout + 1
        failing = self.handed_over(4)
        self.now += 1
        here, tried = self.open(), []
        for _ in range(6):
            row, = here.claim(1)
            tried.append(row.id)
            here.retry_later({row: 'fails'}, longest=1)
            self.now += 1
        self.assertEqual([dead, far], tried[:2])
        self.assertTrue(set(failing) & set(tried[2:]), tried)

    def test_claim_on_another_host_lasts_until_its_time_is_up(self):
        """Nobody here can tell whether the claimant lives."""
        ids = self.handed_over(1)
        self.elsewhere().claim(5)
        self.assertEqual([], self.journal.claim(5))
        self.now += journal.CLAIM_SECONDS + 1
        self.assertEqual(ids, [row.id for row in self.journal.claim(5)])

    def test_clocks_of_two_hosts_differ(self):
        """A claim by a clock that is a little ahead is a claim."""
        self.handed_over(1)
        far = self.elsewhere()
        self.now += 20
        self.assertEqual(1, len(far.claim(5)))
        self.now -= 20
        self.assertEqual([], self.journal.claim(5))

    def test_clock_that_was_set_back(self):
        """What was to wait until a time far ahead is due."""
        ids = self.handed_over(2)
        self.journal.retry_later({self.journal.claim(1)[0]: 'failed'})
        self.elsewhere().claim(1)
        self.now -= 86400
        self.assertEqual(ids, sorted(
            row.id for row in self.journal.claim(5)))

    def test_back_off(self):
        """It doubles up to its limit, for however long a row fails."""
        self.handed_over(1)
        for _ in range(6):
            row, = self.journal.claim(5)
            self.journal.retry_later({row: 'failed'})
            self.assertEqual([], self.journal.claim(5))
            self.now += min(journal.LONGEST_BACKOFF, 2.0 ** row.attempts)
        databases.execute(self.url, 'UPDATE dirty SET attempts = 100000')
        self.journal.retry_later({self.journal.claim(5)[0]: 'failed'})
        self.now += journal.LONGEST_BACKOFF
        self.assertEqual(100001, self.journal.claim(5)[0].attempts)


class TestValues(DatabaseTest):

    def test_names_are_exact(self):
        """Also where the server compares without regard to case."""
        hosts = ['h1', 'H1', 'h1 ', 'x' * 255]
        rows = [self.journal.record(journal.Dirty(host=host), ['abc'])
                for host in hosts]
        self.assertEqual(hosts, [
            row.dirty.host for row in self.open().rows()])
        self.assertEqual(frozenset(), self.journal.known(['ABC']) - {'abc'})
        self.journal.complete([rows[1].id])
        self.assertEqual(['h1', 'h1 ', 'x' * 255], [
            row.dirty.host for row in self.journal.rows()])

    def test_row_of_a_host_with_very_many_nodes(self):
        """5000 ironic nodes on one nova-compute."""
        nodes = frozenset(str(uuid.UUID(int=n)) for n in range(5000))
        self.journal.record(journal.Dirty(host='h1', nodes=nodes))
        row, = self.open().rows()
        self.assertEqual(nodes, row.dirty.nodes)

    def test_error_that_no_column_takes(self):
        """Its start is kept, in characters that every database has."""
        bad = 'K\u00f6ln \U0001f600\udc80\0' + 'x' * (1 << 20)
        row = self.journal.record(HOST)
        self.journal.hand_over(row.id, bad)
        handed, = self.journal.claim(1)
        self.assertThat(handed.last_error,
                        testtools.matchers.StartsWith('K'))
        self.assertIn('xxx', handed.last_error)
        self.journal.retry_later({handed: bad})
        again, = self.journal.rows()
        self.assertEqual(handed.last_error, again.last_error)

    def test_times_are_exact(self):
        """A claim is compared with what was read of it."""
        self.now = 1763700000.1234567
        row = self.journal.record(HOST)
        self.assertEqual([row], self.open().rows())


class TestOutage(DatabaseTest):

    @contextlib.contextmanager
    def away(self):
        databases.execute(self.url, 'ALTER TABLE dirty RENAME TO away')
        try:
            yield
        finally:
            databases.execute(self.url, 'ALTER TABLE away RENAME TO dirty')

    def test_hand_over_is_made_up_for(self):
        """By the next record, and exactly once."""
        row = self.journal.record(HOST)
        with self.away():
            self.assertRaises(exceptions.JournalUnavailable,
                              self.journal.hand_over, row.id, 'refused')
            self.assertRaises(exceptions.JournalUnavailable,
                              self.journal.record, HOST, ['a'])
        self.assertEqual([], self.elsewhere().claim(5))
        self.journal.record(HOST)
        self.journal.record(HOST)
        late, = self.elsewhere().claim(5)
        self.assertEqual((row.id, '', 1, 'refused'), (
            late.id, late.owner, late.attempts, late.last_error))

    def test_hand_over_is_known_on_this_host_at_once(self):
        """However long this process has nothing else to write."""
        running, ended = (self.journal.record(HOST) for _ in range(2))
        with self.away():
            self.assertRaises(exceptions.JournalUnavailable,
                              self.journal.hand_over, ended.id, 'refused')
        agent = self.open()
        taken, = agent.claim(5)
        self.assertEqual(ended.id, taken.id)
        self.assertEqual([taken], agent.closable([taken, running]))
        agent.complete([taken.id])
        # What is made up for now is there no more.
        more = self.journal.record(HOST)
        self.assertEqual([], self.open().claim(5))
        self.assertEqual([running.id, more.id],
                         [row.id for row in self.journal.rows()])
        self.assertEqual([], list(self.words()))

    def words(self):
        return owner.directory(self.conf).glob('*.ended')

    def test_nothing_was_entered_in_the_ledger(self):
        """The transaction of a record that failed left nothing."""
        self.journal.record(HOST)
        with self.away():
            self.assertRaises(exceptions.JournalUnavailable,
                              self.journal.record, HOST, ['a'])
        self.assertEqual(frozenset(), self.journal.ledger())
        self.journal.record(HOST, ['a'])
        self.assertEqual({'a'}, self.journal.ledger())

    def test_forgetting(self):
        """Noted, reset when placement has it again, forgotten in the end."""
        seconds = self.conf.aggregate_mirror.forget_after + 1
        self.journal.remember(['a', 'b', 'c'])
        self.assertEqual(0, self.journal.emptied(['a', 'b'], ['c']))
        self.now += seconds
        self.assertEqual(1, self.journal.emptied(['a'], ['b', 'c']))
        self.assertEqual(0, self.journal.emptied(['b'], ['c']))
        self.assertEqual({'b', 'c'}, self.open().ledger())
        self.now -= 2 * seconds
        self.assertEqual(0, self.journal.emptied(['b'], ['c']))
        self.now += seconds
        self.assertEqual(1, self.journal.emptied(['b'], ['c']))
        # What comes back is entered again.
        self.journal.record(HOST, ['a'])
        self.assertEqual({'a', 'c'}, self.open().ledger())


class TestServer(DatabaseTest):

    scenarios = [one for one in databases.SCENARIOS if one[0] != 'sqlite']

    def test_connections_that_the_server_has_closed(self):
        """The next call opens another; nobody notices."""
        self.journal.record(HOST)
        databases.disconnect(self.url)
        self.journal.record(HOST)
        self.assertEqual(2, len(self.journal.rows()))

    def test_answer_to_a_commit_is_lost(self):
        """The row is there; once its operation has ended anyone takes it."""
        self.journal.record(HOST)
        self.now += 1
        with self.unanswered():
            lost = self.assertRaises(exceptions.NotRecorded,
                                     self.journal.record, HOST)
        self.assertEqual(2, len(self.journal.rows()))
        self.now += 1
        running = self.journal.record(HOST)
        self.assertEqual([], self.open().claim(5))

        self.journal.forsake(lost.row)
        agent = self.open()
        written, = agent.claim(5)
        self.assertEqual([written], agent.closable([written, running]))
        agent.release([written.id])
        self.journal.record(HOST)
        written, = self.open().claim(5)
        self.assertEqual((lost.row.created_at, ''),
                         (written.created_at, written.owner))
        self.assertNotEqual(running.id, written.id)

    @contextlib.contextmanager
    def unanswered(self):
        """The server commits; then the connection ends."""
        def commit(connection):
            connection.exec_driver_sql('COMMIT')
            databases.disconnect(self.url)

        sa.event.listen(sa.engine.Engine, 'commit', commit)
        try:
            yield
        finally:
            sa.event.remove(sa.engine.Engine, 'commit', commit)
