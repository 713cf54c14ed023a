# SPDX-License-Identifier: Apache-2.0
"""Deletion of a compute service while rows of the journal are locked.

A controller that loses power inside a transaction leaves such locks: the
database server keeps them until TCP keepalive gives up, two hours later.
"""

import fixtures as base_fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import rows
from tests import databases
from tests import fixtures
from tests import nova_service
from tests import statements

load_tests = testscenarios.load_tests_apply_scenarios

COUNTS = 1, 5, 10
"""Aggregates of each host whose service is deleted."""


class TestLockedRows(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS[1:]

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        with fixtures.StockNova():
            self.hosts = [self.create_host(count) for count in COUNTS]
        self.useFixture(fixtures.MirroredNova())
        url = databases.create(self, self.kind)
        self.cloud.nova.conf.config(
            group='aggregate_mirror_database', connection=url)
        existing.migrate(self.cloud.nova.conf.conf)
        self.locker = sa.create_engine(
            url, isolation_level='REPEATABLE READ',
            poolclass=sa.pool.NullPool).connect()
        self.addCleanup(self.locker.close)
        self.statements = statements.Statements()

    def create_host(self, count: int) -> nova_service.Host:
        """Create a host that is in this many aggregates."""
        host = self.cloud.create_host('h%d' % count)
        for number in range(count):
            self.cloud.add_host(self.cloud.create_aggregate(
                '%s-%d' % (host.name, number)), host)
        return host

    def lock(self, *locks: str) -> None:
        """Lock rows by statements of a transaction that stays open."""
        for statement in locks:
            self.locker.exec_driver_sql(statement)
        self.useFixture(self.statements)

    def lock_gaps(self) -> None:
        """Lock what each INSERT of a row needs."""
        # MariaDB locks the gaps between the rows that it reads, too.
        self.lock('LOCK TABLE dirty IN SHARE MODE'
                  if self.kind == 'postgresql'
                  else 'SELECT * FROM dirty FOR UPDATE')

    def writes(self, table: str) -> list[str]:
        """Return the verbs of the writes to a table since the lock."""
        return [statement.split()[0]
                for statement in self.statements.about(table)
                if statement.startswith(('INSERT', 'UPDATE', 'DELETE'))]

    def assert_logged(self, host: nova_service.Host, *levels: str) -> None:
        """Assert what the deletion of a service logs.

        What is not mirrored to placement has a WARNING for each aggregate.
        """
        self.assertEqual(204, self.cloud.delete_service(host))
        self.assertEqual([*levels], self.cloud.levels())

    def test_new_row(self) -> None:
        """A request waits once, and then does without the journal.

        The locked row may be that of any host.
        """
        self.lock_gaps()
        for host in self.hosts:
            self.assert_logged(host, 'ERROR')
        self.assertEqual(['INSERT'] * len(COUNTS), self.writes('dirty'))

    def test_ledger_entries(self) -> None:
        """Those of its aggregates, in a transaction that did not end."""
        self.lock(*("INSERT INTO ledger (aggregate_uuid, created_at) "
                    "VALUES ('%s', 0)" % uuid
                    for uuid in self.cloud.aggregate_uuids()))
        for host in self.hosts:
            self.assert_logged(host, 'ERROR')
        self.assertEqual(['INSERT'] * len(COUNTS), self.writes('ledger'))
        self.assertEqual([], self.writes('dirty'))

    def test_ledger_entry_of_another_aggregate(self) -> None:
        """Only the requests that need it do without the journal."""
        uuid = self.cloud.aggregate_uuids()[0]
        self.lock("INSERT INTO ledger (aggregate_uuid, created_at) "
                  "VALUES ('%s', 0)" % uuid)
        self.assert_logged(self.hosts[0], 'ERROR')
        self.assert_logged(self.hosts[1])

    def test_own_row(self) -> None:
        """Its row stays in the journal, and other operations have none."""
        record = rows.Rows.record
        is_locked = False

        def locked(*args: object) -> None:
            nonlocal is_locked
            record(*args)
            if not is_locked:
                self.locker.exec_driver_sql('SELECT * FROM dirty FOR UPDATE')
            is_locked = True

        self.lock()
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.rows.Rows.record', locked))
        self.assert_logged(self.hosts[-1], 'WARNING', 'ERROR')
        self.assertEqual(['INSERT', 'DELETE'], self.writes('dirty'))
        self.locker.rollback()
        agent = fixtures.Agent()
        row, = agent.journal.rows.all()
        self.assertTrue(row.running)
        self.assertEqual(self.hosts[-1].name, row.dirty.host)

    def test_next_request(self) -> None:
        """It has a journal again as soon as no row is locked."""
        self.lock_gaps()
        self.assert_logged(self.hosts[0], 'ERROR')
        self.locker.rollback()
        self.assert_logged(self.hosts[1])
        self.assertEqual(['INSERT', *['INSERT', 'DELETE'] * COUNTS[1]],
                         self.writes('dirty'))
