# SPDX-License-Identifier: Apache-2.0
"""What keeps SQLite from the journal's file, with the next step."""

import os
import pathlib
import resource
import subprocess

import fixtures
import sqlalchemy as sa

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import journal as journal_checks
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from tests import disks
from tests.unit import doubles

LET_USE = (': let this process create and use that path, or correct '
           '[aggregate_mirror_database] connection')


class TestFailures(doubles.TestCase):

    @property
    def directory(self) -> pathlib.Path:
        return pathlib.Path(self.conf.state_path, 'aggregate_mirror')

    @property
    def deployment(self) -> checks.Deployment:
        return checks.Deployment(self.conf, lambda: self.nova)

    def assert_reported(self, text: str) -> None:
        """Assert what is reported when an operation cannot be recorded."""
        error = self.assertRaises(
            exceptions.JournalUnavailable, self.record, 'h1')
        self.assertEqual('the journal ' + text, str(error))

    def use_small_disk(self) -> disks.SmallDisk:
        disk = self.useFixture(disks.SmallDisk(self))
        self.conf.set_override('state_path', str(disk.path))
        return disk

    def test_file_system_that_is_full(self) -> None:
        """A command and the checks advise the same; with space all is well.

        Nothing of a journal is created by halves.
        """
        disk = self.use_small_disk()
        disk.fill()
        finding, = journal_checks.tables(self.deployment)
        self.assertEqual(
            (checks.Code.FAILURE,
             'the journal has no space left: make room in %s.' % disk.path),
            (finding.code, finding.text))
        text = 'has no space left: make room in %s' % self.directory
        self.assert_reported(text)
        disk.clear()
        self.record('h0')
        disk.fill()
        self.assert_reported(text)
        error = self.assertRaises(exceptions.JournalUnavailable,
                                  journal_checks.writes, self.deployment)
        self.assertEqual('the journal ' + text, str(error))
        disk.clear()
        self.record('h1')
        files = os.listdir(self.directory)
        self.assertEqual([], journal_checks.writes(self.deployment))
        self.assertEqual(files, os.listdir(self.directory))

    def test_file_system_that_is_almost_full(self) -> None:
        """It is a warning, also before there is a journal."""
        self.assertEqual([], journal_checks.space(self.deployment))
        disk = self.use_small_disk()
        expected = 'Only 1.0 MiB are free for the SQLite journal: make room '
        self.assertEqual(
            checks.warning(expected + 'in %s.' % disk.path),
            journal_checks.space(self.deployment))
        self.record('h1')
        finding, = journal_checks.space(self.deployment)
        self.assertEqual(checks.Code.WARNING, finding.code)
        self.assertIn('make room in %s.' % self.directory, finding.text)
        self.conf.set_override('connection', 'mysql+pymysql://host/name',
                               'aggregate_mirror_database')
        self.assertIsNone(journal_checks.space(self.deployment)[0].code)

    def test_database_that_has_reached_its_size(self) -> None:
        """SQLite decides, whatever the file system has."""
        def fill(connection: sa.Connection) -> None:
            connection.exec_driver_sql('PRAGMA max_page_count = 1')
            connection.exec_driver_sql(
                'CREATE TABLE big AS SELECT zeroblob(9e6)')

        error = self.assertRaises(exceptions.JournalUnavailable,
                                  engine.Database(self.conf).run, fill)
        self.assertEqual('the journal has no space left: make room in %s'
                         % self.directory, str(error))

    def test_errors_of_the_file_system(self) -> None:
        """The reason of the system is given, if a file gets it, too."""
        self.record('h0')
        for limit, text in (
                (2 ** 14, 'cannot use %s: File too large' + LET_USE),
                (2 ** 15, 'had an I/O error in %s: see the kernel log of this '
                 'host')):
            unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
            try:
                self.assert_reported(text % self.directory)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        self.record('h1')

    def test_file_that_another_process_locks(self) -> None:
        """The step finds it; a shell takes a path with a space as one word."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.sqlite.BUSY_TIMEOUT', 0.01))
        file = pathlib.Path(self.conf.state_path, 'a b.sqlite')
        self.conf.set_override('connection', 'sqlite:///%s' % file,
                               'aggregate_mirror_database')
        self.record('h0')
        with engine.Database(self.conf).open().begin():
            self.assert_reported(
                'is locked by another process: find it with "fuser -v \'%s\'"'
                % file)

    def test_file_that_nothing_repairs(self) -> None:
        """A command and the check name the same; what they say is followed.

        Nova-api creates a new journal.
        """
        file = self.directory / 'journal.sqlite'
        for cause, damage in (
                ('is not an SQLite database, or is damaged',
                 self.overwrite),
                (models.INCOMPLETE % 'column dirty.attempts',
                 lambda: self.execute(
                     'ALTER TABLE dirty DROP COLUMN attempts'))):
            self.journal = self.open_journal()
            self.record('h1')
            damage()
            self.journal = self.open_journal()
            error = self.assertRaises(
                exceptions.JournalUnavailable, self.record, 'h2')
            step = ('%s: move %s* to another directory, and restart nova-api '
                    'and the agent' % (cause, file))
            self.assertEqual(step, str(error)[-len(step):])
            finding, = journal_checks.tables(self.deployment)
            self.assertEqual('%s.' % error, finding.text)
            for command in finding.commands[:2]:
                subprocess.run(command, shell=True, check=True)
            moved, = file.parent.glob('broken-*')
            moved.rename(moved.with_name(cause))
        self.journal = self.open_journal()
        self.record('h3')

    def overwrite(self) -> None:
        for file in self.directory.glob('journal.sqlite*'):
            file.unlink()
        file.with_name('journal.sqlite').write_bytes(b'no database' * 999)

    def execute(self, statement: str) -> None:
        with engine.Database(self.conf).open().begin() as connection:
            connection.exec_driver_sql(statement)

    def test_file_that_was_removed(self) -> None:
        """The error has its name, and no text of SQLite."""
        database = engine.Database(self.conf)
        database.open()
        file = self.directory / 'journal.sqlite'
        file.unlink()
        file.symlink_to(self.directory / 'nowhere' / 'journal.sqlite')
        error = self.assertRaises(
            exceptions.JournalUnavailable, database.schema)
        self.assertEqual(
            'the journal cannot use %s: No such file or directory' % file
            + LET_USE, str(error))
