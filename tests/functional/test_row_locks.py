# SPDX-License-Identifier: Apache-2.0
"""The drain next to rows that another session locks, on real servers.

A server keeps the locks of a controller that lost its power inside a
transaction: MySQL until TCP keepalive gives up, after two hours.
"""

import logging

import fixtures
import sqlalchemy as sa

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.reconcile import reconciler
from tests import databases
from tests.functional import test_journal_databases
from tests.unit.agent import case
from tests.unit import doubles


class TestRowLocks(test_journal_databases.DatabaseTest):

    scenarios = databases.SCENARIOS[1:]

    def setUp(self) -> None:
        super().setUp()
        self.messages = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.WARNING))
        self.nova, self.placement = doubles.Nova([]), doubles.Placement([])
        self.nova.hosts_of = {'a': set()}
        self.drain = drain.Drain(
            self.conf, self.rows, reconciler.Reconciler(
                self.ledger, self.nova, self.placement, self.rows),
            case.Recorder(), now=lambda: self.clock)
        self.locker = sa.create_engine(self.url).connect()
        self.addCleanup(self.locker.close)

    def add(self, *hosts: str) -> list[journal.Row]:
        """Hand over a row for each host."""
        rows = []
        for host in hosts:
            self.nova.hosts_of['a'].add(host)
            self.nova.nodes['node of ' + host] = host
            self.placement.create('node of ' + host)
            rows.append(self.record(journal.Dirty(host)))
            self.rows.hand_over(rows[-1], 'refused')
        return rows

    def step(self, seconds: float = 0.0) -> list[str]:
        """Step; return the hosts whose rows are left."""
        self.clock += seconds
        self.drain.step()
        return sorted(row.dirty.host for row in self.rows.all())

    def test_one_locked_row(self) -> None:
        """The others are closed by the same step; only it is reported."""
        rows = self.add(*('h%d' % number for number in range(8)))
        self.locker.exec_driver_sql(
            "SELECT * FROM dirty WHERE id = '%s' FOR UPDATE" % rows[3].id)
        self.assertEqual(['h3'], self.step())
        self.assertEqual(8 * [{'a'}], [*self.placement.aggregates.values()])
        self.add('h9')
        self.assertEqual(['h3'], self.step(2))
        self.locker.rollback()
        self.assertEqual([], self.step(4))
        message, = self.messages.output.splitlines()
        self.assertIn('Host h3', message)

    def test_locked_table(self) -> None:
        """Nothing is lost: its rows are closed when the lock is gone."""
        self.add('h1', 'h2')
        self.locker.exec_driver_sql(
            'LOCK TABLE dirty' if self.kind == 'postgresql'
            else 'LOCK TABLES dirty WRITE')
        self.assertRaises(exceptions.JournalUnavailable, self.drain.step)
        self.locker.rollback()
        if self.kind == 'mysql':
            self.locker.exec_driver_sql('UNLOCK TABLES')
        self.assertEqual([], self.step())

    def test_locked_lease(self) -> None:
        """Its holder goes on, and another agent begins when it has expired."""
        now = 0.0
        holder, other = (
            lease.Lease(self.open().database, 15, clock=lambda: now)
            for _agent in range(2))
        holder.step()
        self.assertFalse(other.step())
        self.locker.exec_driver_sql('SELECT * FROM lease FOR UPDATE')
        for _renewal in range(2):
            self.assertTrue(holder.step())
            self.assertFalse(other.step())
        now += 15
        for _renewal in range(2):
            self.assertTrue(other.step())
            self.assertIn('lock', str(other.locked))
        self.assertRaises(exceptions.JournalLocked, lease.try_write,
                          self.journal.database)
        self.locker.rollback()
        self.assertTrue(other.step())
        self.assertIsNone(other.locked)
        self.assertFalse(holder.step())

    def test_locked_history(self) -> None:
        """Its newest entry stays as it is, and the next ones are added."""
        entry = full_syncs.Entry('agent', 'host', 1.0, 2.0, 1.0)
        database = self.journal.database
        full_syncs.add(database, entry)
        self.locker.exec_driver_sql('DELETE FROM syncs WHERE id = 1')
        for _sync in range(2):
            full_syncs.add(database, entry)
        self.assertEqual([2, 1], [
            stored.passes for stored in full_syncs.newest(database)])

    def test_locked_binding(self) -> None:
        """It waits; the journal is known to be of this nova."""
        names = {'cell': ''}
        agent = binding.Binding(self.journal.database, lambda: names, dict)
        self.assertTrue(agent.bind(leads=True))
        names['new cell'] = ''
        binding.lock(self.locker, 'cells')
        self.assertFalse(agent.bind(leads=True))
        self.locker.rollback()
        self.assertTrue(agent.bind(leads=True))
