# SPDX-License-Identifier: Apache-2.0
"""A user's responses while the journal or nova's API database is silent."""

import socket
import time
import types
from typing import Any

import fixtures as base_fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from tests import databases
from tests import fixtures
from tests.unit import servers

load_tests = testscenarios.load_tests_apply_scenarios

DRIVERS = [('mysql', {'driver': 'mysql+pymysql'}),
           ('postgresql', {'driver': 'postgresql+psycopg2'})]


def _says_nothing(_server: servers.Server, client: socket.socket) -> None:
    while client.recv(4096):
        pass


class DatabasesTest(testscenarios.WithScenarios, testtools.TestCase):

    inline_timeout = 5.0

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        self.set('aggregate_mirror', inline_timeout=self.inline_timeout)
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')

    def set(self, group: str, **options: object) -> None:
        self.cloud.nova.conf.config(group=group, **options)

    def add(self, name: str) -> fixtures.Outcome:
        return self.cloud.add_host(
            self.aggregate, self.cloud.create_host(name))


class TestSilentServer(DatabasesTest):

    scenarios = DRIVERS
    # After the wait, a call must have time left on a busy machine, too.
    inline_timeout = 20.0

    def silence(self, group: str) -> servers.Server:
        """Configure a database that accepts connections and is silent."""
        server = self.useFixture(servers.Server(_says_nothing))
        self.set(group, connection='%s://user:secret@%s/database' % (
            self.driver, server.url.split('/')[2]))
        return server

    def test_journal_is_asked_once(self) -> None:
        """Operations are mirrored without it during the back-off."""
        server = self.silence('aggregate_mirror_database')
        for name in 'h1', 'h2':
            seen = self.add(name)
            self.assertEqual((200, True, True),
                             (seen.status, seen.mirrored, seen.ended))
            self.assertIn('mirrored without the journal',
                          self.cloud.warnings()[0])
        self.assertEqual(1, server.accepted)

    def test_api_database(self) -> None:
        """The host is in the journal; nova itself has answered."""
        server = self.silence('api_database')
        seen = self.add('h1')
        self.assertEqual((200, True, False, True), (
            seen.status, seen.member, seen.mirrored, seen.ended))
        self.assertIn('it stays in the journal', self.cloud.warnings()[-1])
        # For the place, and to converge if time is left.
        self.assertLessEqual(server.accepted, 2)


class TestLockedJournal(DatabasesTest):

    scenarios = databases.SCENARIOS[1:]
    # After the wait, a call must have time left on a busy machine, too.
    inline_timeout = 20.0

    def test_is_waited_for_once(self) -> None:
        """By a process: the server ends the statement.

        PostgreSQL does not tell it from a locked row, without a back-off.
        """
        url = databases.create(self, self.kind)
        self.set('aggregate_mirror_database', connection=url)
        engine.Database(self.cloud.nova.conf.conf).migrate()
        self.assertTrue(self.add('h1').mirrored)
        with sa.create_engine(url, poolclass=sa.pool.NullPool).connect() as (
                locker):
            locker.exec_driver_sql(
                'LOCK TABLE dirty' if self.kind == 'postgresql'
                else 'LOCK TABLES dirty WRITE')
            statements = self.useFixture(databases.Statements())
            for name in 'h2', 'h3':
                seen = self.add(name)
                self.assertEqual((200, True), (seen.status, seen.mirrored))
            self.assertEqual({'mysql': 1, 'postgresql': 2}[self.kind],
                             len(statements.about('dirty')))
        self.assertEqual([], self.cloud.drift())


class TestBudget(DatabasesTest):

    scenarios: list[tuple[str, dict[str, str]]] = []

    def setUp(self) -> None:
        super().setUp()
        self.ahead = 0.0
        """Seconds that have passed for the deadline only."""
        self.replace('limits.deadline.time', types.SimpleNamespace(
            monotonic=lambda: time.monotonic() + self.ahead))

    def replace(self, name: str, value: Any) -> None:
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.' + name, value))

    def host_in(self, *names: str) -> fixtures.Host:
        """Create a host that is in these aggregates."""
        host = self.cloud.create_host('h1')
        for name in names:
            self.cloud.add_host(self.cloud.create_aggregate(name), host)
        return host

    def slow_close(self, seconds: float) -> list[float]:
        """Let each converge take some time; return what is left before."""
        close = reconciler.Reconciler.close
        left: list[float] = []

        def slow(*args: Any) -> Any:
            left.append(deadline.remaining())
            self.ahead += seconds
            return close(*args)

        self.replace('reconcile.reconciler.Reconciler.close', slow)
        return left

    def test_operations_of_a_request_share_one(self) -> None:
        """A service is removed from each aggregate of its host."""
        self.set('aggregate_mirror', inline_timeout=10.0)
        host = self.host_in('first', 'second', 'third')
        left = self.slow_close(2.0)
        self.assertEqual(204, self.cloud.delete_service(host))
        first, _second, third = left
        self.assertLessEqual(third, first - 4.0)

    def test_journal_is_written_after_it_is_spent(self) -> None:
        """The agent mirrors what the request had no time for."""
        def slow(*_args: Any) -> Any:
            self.ahead += 60.0
            raise exceptions.DeadlineExceeded('placement is slow')

        host = self.host_in('first', 'second', 'third')
        self.replace('reconcile.reconciler.Reconciler.close', slow)
        self.assertEqual(204, self.cloud.delete_service(host))
        rows = fixtures.Agent().journal.rows.all()
        self.assertEqual([(host.name, False, frozenset(host.nodes))] * 3, [
            (row.dirty.host, row.running, row.dirty.nodes) for row in rows])

    def test_nova_is_not_read_after_it_is_spent(self) -> None:
        """Its API database may be silent; the nodes are known already."""
        reads = []
        scope = database.DatabaseSource.scope

        def read(*args: Any) -> Any:
            reads.append(deadline.remaining())
            return scope(*args)

        host = self.host_in('first', 'second')
        self.slow_close(4.2)
        self.replace('source.database.DatabaseSource.scope', read)
        self.assertEqual(204, self.cloud.delete_service(host))
        # A statement may take two seconds.
        self.assertLessEqual(reads[-1] + 4.2, 5.0)

    def test_unmarked_deletion_has_the_floor(self) -> None:
        """No other attempt includes providers that are no hosts."""
        self.set('aggregate_mirror', inline_timeout=60.0)
        left = []
        remove = reconciler.Reconciler.remove

        def silent(*_args: Any) -> Any:
            self.ahead += 61.0
            raise exceptions.JournalUnavailable('the journal is silent')

        def removed(*args: Any) -> Any:
            left.append(deadline.remaining())
            self.ahead = 0.0
            return remove(*args)

        segment = uuidutils.generate_uuid()
        placement = self.cloud.placement
        placement.create_provider(segment, 'segment')
        placement.set_aggregates(segment, [self.aggregate.uuid])
        self.replace('journal.ledger.DatabaseLedger.mark', silent)
        self.replace('reconcile.reconciler.Reconciler.remove', removed)
        self.assertEqual(200, self.cloud.delete_aggregate(self.aggregate))
        self.assertTrue(0.0 < left[0] <= 3.25, left)
        self.assertEqual(frozenset(), placement.aggregates(segment))
