# SPDX-License-Identifier: Apache-2.0
"""Whose tables a database has, and whether this release can use them."""

import pathlib
from unittest import mock

import fixtures
from oslo_db import exception as db_exc
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from tests.unit import doubles

STAMP = 'CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)'
# As in nova's API database.
NOVA = ('CREATE TABLE aggregates (id INTEGER PRIMARY KEY)',
        'CREATE TABLE aggregate_hosts (id INTEGER PRIMARY KEY)')
NOVA_VERSION = 'INSERT INTO alembic_version VALUES (\'cdeec0c85668\')'
OURS = 'such as aggregate_hosts, aggregates, but no table dirty'


class TestTables(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = doubles.make_conf(self)
        self.database = engine.Database(self.conf)

    def execute(self, *statements):
        with self.database.open().begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def migrate(self):
        return existing.migrate(self.conf)

    def names(self):
        with self.database.open().begin() as connection:
            return set(sa.inspect(connection).get_table_names()) - {
                # SQLite's own table, which older SQLAlchemy also lists.
                'sqlite_sequence'}

    def set_version(self, version):
        self.execute('UPDATE alembic_version SET version_num = \'%s\''
                     % version)

    def assert_refused(self, text, *statements):
        """Assert that everything refuses the database and creates nothing."""
        self.execute(*statements)
        names = self.names()
        for attempt in (self.migrate, self.database.prepare,
                        self.database.check_tables):
            error = self.assertRaises(exceptions.WrongDatabase, attempt)
            self.assertIn(text, str(error))
            self.assertIn('journal.sqlite', str(error))
            self.assertIn(models.USE_ANOTHER_FILE, str(error))
        self.assertEqual(names, self.names())

    def test_list_of_versions(self):
        """It has every migration; nova-api does not load alembic for it."""
        versions = pathlib.Path(models.__file__).parent.joinpath(
            'migrations', 'versions').glob('[0-9]*.py')
        self.assertEqual(sorted(path.name[:4] for path in versions),
                         list(models.VERSIONS))

    def test_migrating_twice_changes_nothing(self):
        """Two nova-api workers may both find an empty file.

        No descriptor stays open: a journal that is protected afterwards is
        protected at once.
        """
        self.migrate()
        state_path = pathlib.Path(self.conf.state_path).resolve()
        descriptors = pathlib.Path('/proc/self/fd').iterdir()
        self.assertFalse([
            descriptor for descriptor in descriptors
            if descriptor.resolve().is_relative_to(state_path)])
        self.database.prepare()
        self.migrate()
        self.database.prepare()
        self.assertEqual(models.HEAD, self.database.schema().version)

    def test_table_that_another_controller_creates(self):
        """MySQL tells nothing of it meanwhile; it is looked at again."""
        skipped = db_exc.DBError(Exception(
            1684, 'Table was skipped since its definition is being modified'))
        self.useFixture(fixtures.MockPatchObject(
            models, 'read_schema', wraps=models.read_schema,
            side_effect=[skipped, skipped, *[mock.DEFAULT] * 9]))
        self.migrate()
        self.assertEqual(models.HEAD, self.database.schema().version)

    def test_tables_of_an_older_release(self):
        """Until they are migrated, the check names both versions."""
        self.migrate()
        for name, value in ('VERSIONS', ('0001', '0002')), ('HEAD', '0002'):
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.journal.db.models.' + name, value))
        with self.assertRaisesRegex(
                exceptions.JournalUnavailable,
                'tables of version 0001; this release needs version 0002'):
            self.database.prepare(migrates=False)

    # Tables of a newer release

    def test_tables_of_a_newer_release_are_used_as_they_are(self):
        """A controller that is not upgraded yet continues.

        What an interrupted migration has added does not disturb it either.
        """
        self.database.prepare()
        self.execute('CREATE TABLE later (id INTEGER PRIMARY KEY)',
                     'ALTER TABLE dirty ADD COLUMN later INTEGER',
                     'ALTER TABLE ledger ADD COLUMN later INTEGER')
        names = self.names()
        for version in models.HEAD, '0002':
            self.set_version(version)
            self.database.prepare()
            self.migrate()
            self.assertEqual(version, self.database.check_tables().version)
            self.assertEqual(names, self.names())

    # Tables of another program

    def test_nova(self):
        """Without alembic, before it has a version, and with any version.

        The names of both programs' tables could be the same later.
        """
        for statements in NOVA, [STAMP], [NOVA_VERSION]:
            self.assert_refused(OURS, *statements)
        self.set_version('0000')
        self.assert_refused(OURS)

    def test_other_tables(self):
        """Nothing is created next to them, even if they have our names."""
        for text, *statements in (
                # A journal has the table of its rows before it has a version.
                ('tables such as alembic_version, but no', STAMP,
                 NOVA_VERSION),
                ('such as t0, t1, t2, but', *(
                    'CREATE TABLE t%d (id INTEGER)' % number
                    for number in range(8))),
                ('the column cells.cell_uuid is missing',
                 'CREATE TABLE cells (id INTEGER PRIMARY KEY)')):
            self.conf = doubles.make_conf(self)
            self.database = engine.Database(self.conf)
            self.assert_refused(text, *statements)

    def test_journal_in_the_database_of_another_program(self):
        """The step does not move that program's file."""
        self.migrate()
        self.execute(
            *NOVA, 'ALTER TABLE lease RENAME COLUMN seconds TO duration')
        error = self.assertRaises(
            exceptions.WrongDatabase, self.database.check_tables)
        self.assertEqual(models.USE_ANOTHER_FILE, error.failure.step)

    def test_tables_and_columns_that_are_missing(self):
        """The message names the table; nothing is created by guesswork."""
        self.migrate()
        file = existing.sqlite_file(self.conf)
        for table, name, statement in (
                ('lease', 'column lease.seconds',
                 'ALTER TABLE lease RENAME COLUMN seconds TO later'),
                ('syncs', 'table syncs', 'DROP TABLE syncs'),
                ('dirty', 'table dirty', 'DROP TABLE dirty')):
            self.execute(statement)
            for attempt in self.migrate, self.database.check_tables:
                error = self.assertRaises(exceptions.WrongDatabase, attempt)
                self.assertIn('the %s is missing: move %s* to another '
                              'directory' % (name, file), str(error))
            with self.database.open().begin() as connection:
                models.metadata.tables[table].drop(connection, checkfirst=True)
                models.metadata.tables[table].create(connection)
        # Without its rows it is not opened, whatever a process reads of it.
        self.execute('DROP TABLE dirty')
        self.assertRaises(exceptions.WrongDatabase,
                          engine.Database(self.conf).prepare)

    # A migration that was interrupted

    def test_version_that_is_missing(self):
        """The next migration continues."""
        self.execute(STAMP)
        self.assertEqual('incomplete tables', str(self.database.schema()))
        self.database.prepare()
        self.execute('DELETE FROM alembic_version', 'DROP TABLE syncs')
        self.assertTrue(self.database.schema().is_outdated)
        self.migrate()
        self.assertEqual(models.HEAD, self.database.check_tables().version)
