# SPDX-License-Identifier: Apache-2.0
"""The journal, and reads of nova's databases, on a real Galera cluster."""

import json
import operator
import pathlib
import threading
from typing import Any
import uuid

import fixtures
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import connections
from tests import commands
from tests import databases
from tests.functional import test_journal_databases
from tests import galera
from tests import migrations
from tests import patience
from tests import processes
from tests.unit import doubles

WRITERS = 4
TURNS = 25


class TestGalera(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.Timeout(
            patience.seconds(180), gentle=True))
        try:
            self.nodes = galera.cluster()
        except databases.Unavailable as exc:
            self.skipTest(str(exc))
        self.conf = doubles.make_conf(self)
        self.create()
        existing.migrate(self.conf)

    def create(self) -> None:
        """Use a new database, that each node has, on the first node."""
        self.name = 'journal_%s' % uuid.uuid4().hex[:8]
        self.nodes[0].ask('CREATE DATABASE %s' % self.name)
        self.addCleanup(self.nodes[0].ask, 'DROP DATABASE %s' % self.name)
        for node in self.nodes:
            # A new connection to a database waits for nothing.
            self.assertTrue(patience.wait(lambda node=node: node.ask(
                'SHOW DATABASES LIKE \'%s\'' % self.name)))
        self.connect(0)

    def url(self, node: int) -> str:
        """Return the URL of the journal on a node."""
        return databases.without_tls(sa.engine.make_url(
            self.nodes[node].url).set(database=self.name)).render_as_string()

    def connect(self, node: int) -> None:
        """Let the next journal use a node."""
        self.conf.set_override('connection', self.url(node),
                               'aggregate_mirror_database')

    def open(self, node: int, seconds: float = patience.seconds(5)
             ) -> store.Journal:
        """Open the journal on a node, as a process there does."""
        self.connect(node)
        opened = store.Journal(self.conf, engine.Database(
            self.conf, limits=engines.Limits(seconds)))
        opened.rows.all()
        return opened

    def record(self, kept: store.Journal) -> journal.Row:
        row = kept.rows.make(test_journal_databases.HOST)
        kept.rows.record(row)
        return row

    def value(self, kept: store.Journal, variable: str) -> Any:
        return kept.database.run(
            lambda connection: connection.exec_driver_sql(
                'SELECT @@%s' % variable).scalar_one())

    def fails_once(self, kept: store.Journal) -> None:
        """Assert that a read fails, and is not attempted again."""
        attempts = []

        def work(connection: sa.engine.Connection) -> None:
            attempts.append(connection)
            connection.exec_driver_sql('SELECT * FROM dirty')

        self.assertRaises(exceptions.JournalUnavailable,
                          kept.database.run, work)
        # The ping of older oslo.db fails before it.
        self.assertLessEqual(len(attempts), 1)

    def sessions(self, node: int) -> list[Any]:
        """Return the sessions of the journal on a node."""
        return [row for row in self.nodes[node].ask('SHOW FULL PROCESSLIST')
                if row[3] == self.name]

    # Migrations

    def test_migration_continues_on_another_node(self) -> None:
        """It was killed after any of its statements on the first node."""
        self.create()
        number = 1
        while migrations.killed(self.conf, number):
            number += 1
            self.connect(1)
            existing.migrate(self.conf)
            self.assertEqual([], self.open(0).rows.all())
            self.create()
        self.assertEqual(len(models.metadata.tables) + 3, number)

    def test_concurrent_migrations(self) -> None:
        """Each succeeds, although none of them has found any table."""
        self.create()
        confs = []
        for node in 0, 1, 0, 1:
            conf = doubles.make_conf(self)
            conf.set_override('connection', self.url(node),
                              'aggregate_mirror_database')
            confs.append(conf)
        migrations.at_once(confs)
        for node in 0, 1:
            self.record(self.open(node))

    # Writers

    def test_no_row_is_lost(self) -> None:
        """Processes on all nodes record their rows, and none gets an error."""
        self.useFixture(doubles.ShortUUIDs())

        def write(number: int) -> int:
            return test_journal_databases.write(
                self.open(number % galera.NODES), number, TURNS)

        closed = sum(processes.at_once(WRITERS, write))
        kept = self.open(0)
        self.assertEqual(WRITERS * TURNS, closed + len(kept.rows.all()))
        self.assertEqual({'aggregate-%d' % turn for turn in range(TURNS)},
                         set(kept.ledger.entries()))

    def test_lease_is_taken_by_one(self) -> None:
        """Of simultaneous attempts on all nodes only one succeeds."""
        def take(number: int) -> bool:
            kept = self.open(number % galera.NODES)
            return lease.Lease(kept.database, 15).step()

        self.assertEqual(1, sum(processes.at_once(WRITERS, take)))

    def test_conflict_at_commit_is_retried(self) -> None:
        """A row that was changed on another node is read and changed again."""
        first, second = self.open(0), self.open(1)
        row, attempts = self.record(first), 0

        def work(connection: sa.engine.Connection) -> None:
            nonlocal attempts
            attempts += 1
            connection.exec_driver_sql(
                'UPDATE dirty SET attempts = attempts + 10')
            if attempts == 1:
                second.rows.set_failed({row.id: 'refused'})

        first.database.run(work)
        self.assertEqual(2, attempts)
        found, = second.rows.all()
        self.assertEqual((11, 'refused'), (found.attempts, found.last_error))

    # Reads

    def test_rows_of_another_node_are_found(self) -> None:
        """An UPDATE or DELETE waits for them, however fast it follows."""
        first, second = self.open(0), self.open(1)
        for _turn in range(4 * TURNS):
            row = self.record(first)
            second.rows.hand_over(row, 'refused')
            self.assertEqual(1, first.rows.close([row.id]))
            self.assertEqual(1, second.rows.close([self.record(first).id]))

    def test_read_waits_for_another_node(self) -> None:
        """It sees a commit that its own node had not applied."""
        first, second = self.open(0), self.open(1)
        found: list[journal.Row] = []
        reader = threading.Thread(
            target=lambda: found.extend(second.rows.all()))

        def is_reading() -> bool:
            return not reader.is_alive() or any(
                each[7] for each in self.sessions(1))

        with self.nodes[1].lagging():
            row = self.record(first)
            self.assertEqual(((0,),), self.nodes[1].ask(
                'SELECT COUNT(*) FROM %s.dirty' % self.name))
            reader.start()
            self.assertTrue(patience.wait(is_reading))
        reader.join()
        self.assertEqual([row], found)

    def test_read_that_waits_too_long(self) -> None:
        """It is attempted once; the server or the driver ends it.

        Its connection is closed: a proxy may lead the next to another node.
        """
        first, node = self.open(0), self.nodes[1]
        for timeout in 'PT0.5S', 'PT30S':
            node.set_provider('repl.causal_read_timeout=' + timeout)
            before = {row[0] for row in self.sessions(1)}
            kept = self.open(1, seconds=1.0)
            with node.lagging():
                self.record(first)
                self.fails_once(kept)
            # A session of an earlier test may end meanwhile.
            self.assertTrue(patience.wait(lambda: before.issuperset(
                map(operator.itemgetter(0), self.sessions(1)))))
            kept.rows.all()

    def test_option_of_the_operator_is_respected(self) -> None:
        """It applies to each connection in the place of the default."""
        self.assertEqual(3, self.value(self.open(0), 'wsrep_sync_wait'))
        for value in 0, 1, 7:
            self.conf.set_override('mysql_wsrep_sync_wait', value,
                                   'aggregate_mirror_database')
            self.assertEqual(
                value, self.value(self.open(0), 'wsrep_sync_wait'))

    # Nova's own connections

    def test_status_check(self) -> None:
        """It warns until nova's sections, or the servers, are configured."""
        self.nodes[0].ask(
            'CREATE TABLE %s.aggregates (id INTEGER PRIMARY KEY, uuid '
            'CHAR(36), name VARCHAR(255))' % self.name)
        wait = 'mysql_wsrep_sync_wait = 1\n'
        self.assertEqual(
            (1, ['  [api_database]', '  ' + wait.strip(), '  [database]',
                 '  ' + wait.strip()]), self.check('', ''))
        self.assertEqual((1, ['  [database]', '  ' + wait.strip()]),
                         self.check(wait, ''))
        self.assertEqual((0, []), self.check(wait, wait))
        self.nodes[0].ask('SET GLOBAL wsrep_sync_wait = 1')
        self.addCleanup(
            self.nodes[0].ask, 'SET GLOBAL wsrep_sync_wait = DEFAULT')
        self.assertEqual((0, []), self.check('', ''))

    def check(self, api: str, cells: str) -> tuple[int, list[str]]:
        """Return the result of the check of Galera, and what it suggests."""
        conf = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'conf')
        conf.write_text('[api_database]\nconnection = %s\n%s[database]\n%s' % (
            self.url(0), api, cells))
        done = commands.run(commands.STATUS, [
            '--config-file', str(conf), 'upgrade', 'check', '--json'])
        found, = (row for row in json.loads(done.stdout)['checks']
                  if row['check'] == 'Galera')
        self.assertIn('Galera cluster of 3 nodes', found['details'])
        return found['result'], [
            line for line in found['details'].splitlines()
            if line.startswith(' ')]

    # A node without the others

    def test_node_that_is_separated(self) -> None:
        """It is unavailable, keeps no connection, and heals by itself."""
        used, node = self.open(2), self.nodes[2]
        self.connect(2)
        unused = store.Journal(self.conf)
        nova = connections.Pool(
            connections.PARTY, exceptions.NovaUnavailable,
            lambda: self.url(2), {}, engines.Limits())
        with nova.reading():
            pass

        def is_separated() -> bool:
            [(_name, value)] = node.ask(
                "SHOW STATUS LIKE 'wsrep_cluster_status'")
            return value != 'Primary'

        with node.isolated():
            self.assertTrue(patience.wait(is_separated))
            self.assertEqual(2, len(self.sessions(2)))
            self.fails_once(used)
            self.assertRaises(exceptions.JournalUnavailable, unused.rows.all)
            self.assertRaises(exceptions.NovaUnavailable, self.read, nova)
            self.assertTrue(patience.wait(lambda: not self.sessions(2)))
            row = self.record(self.open(0))
        self.assertTrue(patience.wait(node.is_synced))
        for kept in used, unused:
            self.assertEqual([row], kept.rows.all())
        self.read(nova)

    def read(self, pool: connections.Pool) -> None:
        with pool.reading() as connection:
            connection.exec_driver_sql('SELECT * FROM dirty')
