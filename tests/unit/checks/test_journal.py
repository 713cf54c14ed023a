# SPDX-License-Identifier: Apache-2.0
"""Findings about the journal."""

from importlib import metadata
import itertools
import os
import pathlib
import socket
import time

import fixtures
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal as journal_types
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import rows as journal_rows
from tests.unit import doubles

USER = 4711


class TestJournal(doubles.TestCase):

    @property
    def deployment(self) -> checks.Deployment:
        """A new run of the command."""
        return checks.Deployment(self.conf, lambda: self.nova)

    def test_tables_of_an_older_release(self):
        """The check only reports them; nova-api migrates them."""
        self.assertEqual([], self.journal.rows.all())
        for name, value in ('VERSIONS', ('0001', '0002')), ('HEAD', '0002'):
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.journal.db.models.' + name, value))
        one, = journal.tables(self.deployment)
        self.assertEqual(checks.Code.SUCCESS, one.code)
        self.assertIn('0001', one.text)
        self.assertIsNone(self.deployment.journal)
        self.assertEqual('0001', engine.Database(self.conf).schema().version)

    def test_journal_that_was_never_used(self):
        """The check creates nothing, and nothing is pending."""
        self.assertIsNone(self.deployment.journal)
        for check in (journal.tables, journal.users, journal.ownership,
                      journal.writes, journal.agent, journal.backlog):
            finding, = check(self.deployment)
            self.assertIsNone(finding.code, finding)
        # A command could not create it either: none is printed.
        for path, text in (
                ('/proc/nowhere/journal.sqlite',
                 '/proc/nowhere/journal.sqlite: No such file or directory'),
                ('absent?timeout=5s', 'timeout')):
            self.conf.set_override('connection', 'sqlite:///' + path,
                                   'aggregate_mirror_database')
            finding, = journal.tables(self.deployment)
            self.assertEqual((checks.Code.FAILURE, ()),
                             (finding.code, finding.commands))
            self.assertIn(text, finding.text)
        self.assertIsNone(self.deployment.journal)

    def test_connection_that_cannot_be_used(self):
        """The option is shown as it is to be."""
        self.conf.set_override(
            'connection', 'nonsense', 'aggregate_mirror_database')
        error = self.assertRaises(exceptions.JournalUnavailable,
                                  journal.tables, self.deployment)
        self.assertIn('like mysql+pymysql://user:password@host/name',
                      str(error))

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_files_that_are_not_the_journal(self):
        """A backup may have another owner; the files of SQLite may not."""
        self.assertEqual([], self.journal.rows.all())
        path = existing.sqlite_file(self.conf)
        for suffix, count in (('.backup', 0), ('-journal', 1)):
            other = pathlib.Path('%s%s' % (path, suffix))
            other.touch()
            os.chown(other, USER, -1)
            findings = journal.users(self.deployment)
            self.assertEqual(['chown -R root: %s' % path.parent] * count,
                             [finding.commands[0] for finding in findings])

    def test_operations_that_are_mirrored(self):
        """A row that only waits for its age is not in the backlog."""
        row = self.record('h1')
        self.journal.rows.set_mirrored([row.id])
        self.assertEqual(checks.good('No operation is pending.'),
                         journal.backlog(self.deployment))

    def test_operations_that_are_pending(self):
        """Old ones are a warning, with what lists them or mirrors them."""
        self.now = time.time() - 5
        self.hand_over('h1')
        one, = journal.backlog(self.deployment)
        self.assertEqual((checks.Code.SUCCESS, '1 operation is pending'),
                         (one.code, one.text[:22]))
        self.now = time.time() - 600
        self.hand_over('h2', error='placement refused')
        one, = journal.backlog(self.deployment)
        self.assertEqual((checks.Code.WARNING, (commands.LIST,)),
                         (one.code, one.commands))
        self.assertIn('placement refused', one.text)

    def test_operation_of_a_host_whose_clock_was_ahead(self):
        """Its age is not known, which is no success for all that time."""
        self.now = time.time() + 86400
        self.hand_over('h1')
        finding, = journal.backlog(self.deployment)
        self.assertEqual((checks.Code.WARNING, (commands.LIST,)),
                         (finding.code, finding.commands))
        self.assertIn('recorded by a clock that was 86', finding.text)
        self.now = time.time() + 30
        self.hand_over('h2')
        self.assertEqual(
            checks.good('2 operations are pending, the oldest for 0 s.'),
            journal.backlog(self.deployment))

    def test_backlog_without_a_failure(self):
        """Nothing is claimed of who has tried what."""
        self.hand_over('h1')
        self.execute("UPDATE dirty SET created_at = 0, last_error = ''")
        finding, = journal.backlog(self.deployment)
        self.assert_warning('no attempt to mirror one has failed', finding)
        self.assertNotIn('agent', finding.text)

    def assert_warning(self, text: str, finding: checks.Finding) -> None:
        self.assertEqual(checks.Code.WARNING, finding.code)
        self.assertIn(text, finding.text)

    def execute(self, statement: str) -> None:
        with engine.Database(self.conf).open().begin() as connection:
            connection.exec_driver_sql(statement)

    def tables(self) -> dict[str, list[object]]:
        with engine.Database(self.conf).open().begin() as connection:
            return {table.name: connection.execute(sa.select(table)).all()
                    for table in models.metadata.sorted_tables}

    def test_writes(self):
        """Every table can be written, and has the same rows afterwards."""
        self.record('h1')
        lease.Lease(self.journal.database, 10).step()
        before = self.tables()
        self.assertEqual([], journal.writes(self.deployment))
        self.assertEqual(before, self.tables())

    def test_table_that_cannot_be_written(self):
        """Whichever of them: nothing else would show it before the need."""
        self.record('h1')
        for table in models.metadata.tables:
            self.execute('CREATE TRIGGER denied BEFORE INSERT ON %s BEGIN '
                         "SELECT RAISE(ABORT, 'denied'); END" % table)
            self.assertRaises(exceptions.JournalUnavailable,
                              journal.writes, self.deployment)
            self.execute('DROP TRIGGER denied')
        self.assertEqual([], journal.writes(self.deployment))

    def test_journal_of_another_nova(self):
        """It is none while its ledger is empty, or nova cannot be read."""
        self.assertEqual('', journal.unrelated(self.deployment))
        binding.replace(self.journal.database, {'other': ''})
        self.assertEqual([], journal.ownership(self.deployment))
        self.assertEqual('', journal.unrelated(self.deployment))
        self.journal.ledger.remember({'of other'})
        self.assertRaises(
            exceptions.WrongNova, journal.ownership, self.deployment)
        self.assertEqual('the journal belongs to another nova',
                         journal.unrelated(self.deployment))
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertEqual('', journal.unrelated(self.deployment))

    def agent(self, sleep=lambda _seconds: None) -> checks.Finding:
        with fixtures.MonkeyPatch('time.sleep', sleep):
            finding, = journal.agent(self.deployment)
        return finding

    def test_agents(self):
        """Only an agent that was seen to renew its lease is a success."""
        self.record('h1')
        self.assert_warning('No agent has ever used', self.agent())
        leader = lease.Lease(self.journal.database, 10, now=lambda: 0.0)
        leader.step()
        self.assertEqual(checks.good(
            'The leader is the agent on %s, which took the lease on '
            '1970-01-01T00:00:00Z.' % socket.gethostname()), [self.agent(
                lambda _seconds: leader.step())])
        for _is_released in False, True:
            self.assert_warning('the last leader was the agent on',
                                self.agent())
            leader.release()

    def test_renewal_in_the_last_second(self):
        """The whole time that the finding names was observed."""
        leader = lease.Lease(self.journal.database, 2)
        leader.step()
        renewals = iter([lambda: None, leader.step])
        self.assertEqual(checks.Code.SUCCESS, self.agent(
            lambda _seconds: next(renewals)()).code)

    def test_agent_of_the_other_mode(self) -> None:
        """The step is that of the check of the modes."""
        self.record('h1')
        observer = lease.Lease(self.journal.database, 10, mode=conf.OBSERVE)
        observer.step()
        [expected] = checks.warning(
            'No agent leads in mode mirror; the agent on %s leads in mode '
            'observe.' % socket.gethostname())
        self.assertEqual(expected, self.agent(lambda _seconds:
                                              observer.step()))
        self.assertEqual((journal.START_AGENT,), self.agent().commands)
        agent = lease.Lease(self.journal.database, 10)
        agent.step()
        agent.release()
        self.assertEqual(expected, self.agent(lambda _seconds:
                                              observer.step()))
        observer.release()
        self.assertEqual((journal.START_AGENT,), self.agent().commands)

    def test_leader_that_ends_during_the_check(self):
        """The host that led is not reported as the leader."""
        leader, other = (lease.Lease(self.journal.database, 10)
                         for _number in range(2))
        leader.step()
        self.assert_warning('the last leader was the agent on',
                            self.agent(lambda _seconds: leader.release()))
        leader.step()

        def take_over(_seconds):
            leader.release()
            other.step()

        self.assertEqual(checks.Code.SUCCESS, self.agent(take_over).code)
        other.release()

    def test_lease_that_is_long(self):
        """What was not observed is no success."""
        lease.Lease(self.journal.database, 3600).step()
        self.assert_warning('Not checked', self.agent())

    def rows_of(self, presence):
        """Return what a nova-api process writes its records with."""
        return journal_rows.Rows(self.journal.database, self.journal.ledger,
                                 presence=presence)

    def test_nova_api_processes(self):
        """Each leaves host, version and mode with its first good record."""
        now = time.time()
        self.record('h1')
        for _process in range(2):
            clock = itertools.count(0.0, journal_rows.RETRY)
            rows = self.rows_of(journal_rows.Presence(
                now=lambda: now, clock=clock.__next__))
            self.assertRaises(
                exceptions.JournalUnavailable, rows.record,
                rows.make(journal_types.Dirty('h2', request_id=None)))
            for host in 'h2', 'h3':
                rows.record(rows.make(journal_types.Dirty(host)))
        finding, = journal.processes(self.deployment)
        self.assertEqual(checks.Code.SUCCESS, finding.code)
        self.assertIn(': %s, version %s, mode mirror.' % (
            socket.gethostname(), metadata.version('nova-aggregate-mirror')),
            finding.text)

    def test_nova_api_that_was_not_restarted(self):
        """A warning with the step, until the first operation of all."""
        for journal_exists in False, True:
            if journal_exists:
                self.record('h1')
            finding, = journal.processes(self.deployment)
            self.assertEqual(
                (checks.Code.WARNING, ('systemctl restart nova-api',)),
                (finding.code, finding.commands))
            self.assertIn('has ever recorded an operation', finding.text)
        rows = self.rows_of(journal_rows.Presence(
            now=lambda: time.time() - 40.5 * 86400))
        rows.record(rows.make(journal_types.Dirty('h2')))
        finding, = journal.processes(self.deployment)
        self.assertEqual(
            (checks.Code.SUCCESS, 'The last operation through the hook was '
             '40 days ago, on %s.' % socket.gethostname()),
            (finding.code, finding.text))
