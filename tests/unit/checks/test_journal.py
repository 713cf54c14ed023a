# SPDX-License-Identifier: Apache-2.0
"""Findings about the journal."""

import os
import pathlib
import time

import fixtures
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import lease
from tests.unit import doubles

USER = 4711


class TestJournal(doubles.TestCase):

    @property
    def deployment(self) -> inputs.Deployment:
        """A new run of the command."""
        return inputs.Deployment(self.conf, lambda: self.nova)

    def test_tables_of_an_older_release(self):
        """The check only reports them; nova-api migrates them."""
        self.assertEqual([], self.journal.rows.all())
        for name, value in ('VERSIONS', ('0001', '0002')), ('HEAD', '0002'):
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.journal.db.migration.' + name, value))
        one, = journal.tables(self.deployment)
        self.assertEqual(checks.Code.SUCCESS, one.code)
        self.assertIn('0001', one.text)
        self.assertIsNone(self.deployment.journal)
        self.assertEqual('0001', engine.Database(self.conf).schema().version)

    def test_tables_that_are_not_the_journals(self):
        """The option to change is printed, for other columns, too."""
        self.assertEqual([], self.journal.rows.all())
        for statement, text in (
                ('ALTER TABLE dirty RENAME COLUMN nodes TO computes',
                 'the table dirty has no column nodes'),
                ('DROP TABLE dirty', 'but no table dirty')):
            with engine.Database(self.conf).transaction() as connection:
                connection.exec_driver_sql(statement)
            one, = journal.tables(self.deployment)
            self.assertEqual(checks.Code.FAILURE, one.code)
            self.assertIn(text, one.text)
            self.assertEqual((*journal.SERVER, engine.SYNC_COMMAND), one.cure)

    def test_journal_that_was_never_used(self):
        """The check creates nothing, and nothing is pending."""
        self.assertIsNone(self.deployment.journal)
        self.assertEqual([], journal.users(self.deployment))
        self.assertEqual([], journal.belonging(self.deployment))
        one, = journal.backlog(self.deployment)
        self.assertEqual(checks.Code.SUCCESS, one.code)
        self.assertIsNone(self.deployment.journal)

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_files_that_are_not_the_journal(self):
        """A backup may have another owner; the files of SQLite may not."""
        self.assertEqual([], self.journal.rows.all())
        path = engine.sqlite_file(self.conf)
        for suffix, count in (('.backup', 0), ('-journal', 1)):
            other = pathlib.Path('%s%s' % (path, suffix))
            other.touch()
            os.chown(other, USER, -1)
            findings = journal.users(self.deployment)
            self.assertEqual(['chown -R root: %s' % path.parent] * count,
                             [finding.cure[0] for finding in findings])

    def test_journal_of_another_nova(self):
        """The finding has the cells of both, and the option to change."""
        other = doubles.Nova([])
        other.mapped = {'other': 'cell1 (other)'}
        binding.Binding(self.journal.database, other).bind()
        self.assertEqual([], journal.belonging(
            inputs.Deployment(self.conf, lambda: other)))
        one, = journal.belonging(self.deployment)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('with the cells other; this nova has the cells '
                      'cell1 (%s)' % doubles.CELL, one.text)
        self.assertEqual(journal.SERVER, one.cure[:2])

    def test_operations_that_are_mirrored(self):
        """A row that only waits for its age is not in the backlog."""
        row = self.record('h1')
        self.journal.rows.set_mirrored([row.id])
        one, = journal.backlog(self.deployment)
        self.assertEqual((checks.Code.SUCCESS, 'No operation is pending.'),
                         (one.code, one.text))

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
        self.assertEqual((checks.Code.WARNING, (checks.START_AGENT,)),
                         (one.code, one.cure))
        self.assertIn('no agent runs', one.text)
        self.assertTrue(lease.Lease(self.journal.database, 10).step())
        one, = journal.backlog(self.deployment)
        self.assertIn('placement refused', one.text)
        self.assertEqual('nova-aggregate-mirror-manage journal list',
                         one.cure[-1])

    def test_journal_that_cannot_be_used(self):
        """How to replace or to create it, or the option to correct."""
        broken = pathlib.Path(self.conf.state_path, 'broken.sqlite')
        broken.write_bytes(b'no database any more' * 999)
        for url, text, *cure in (
                ('sqlite:///%s' % broken, 'is no SQLite database',
                 'mkdir %s/broken' % broken.parent,
                 'mv %s* %s/broken' % (broken, broken.parent)),
                ('sqlite:////proc/sys/kernel/mirror/journal.sqlite', '/proc',
                 'install -d -m 700 -o '),
                ('mysql+pymysql://mirror:geheim@127.0.0.1:1/mirror',
                 'refused', '[aggregate_mirror_database]\n')):
            self.conf.set_override('connection', url,
                                   'aggregate_mirror_database')
            one, = journal.tables(self.deployment)
            self.assertEqual(checks.Code.FAILURE, one.code)
            self.assertIn(text, one.text)
            self.assertNotIn('geheim', one.text)
            self.assertIn('\n'.join(cure), '\n'.join(one.cure))

    def test_no_url(self):
        """The correct line is printed, without the invalid value."""
        self.conf.set_override('connection', 'geheim@nowhere',
                               'aggregate_mirror_database')
        one, = journal.tables(self.deployment)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual(journal.SERVER, one.cure)
        self.assertNotIn('geheim', one.text)

    def test_journal_that_another_process_locks(self):
        """The journal is intact; the command shows which process locks it."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.sqlite.BUSY_TIMEOUT', 0.01))
        self.journal.rows.all()
        with engine.Database(self.conf).transaction():
            one, = journal.tables(self.deployment)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('fuser', one.cure[0])
