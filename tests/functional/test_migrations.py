# SPDX-License-Identifier: Apache-2.0
"""The journal's tables, from empty, on each database."""

import pathlib

import fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import store
from tests import commands
from tests import databases
from tests import migrations
from tests.unit import doubles

JOURNALS = pathlib.Path(__file__).parent / 'journals'

load_tests = testscenarios.load_tests_apply_scenarios


class MigrationTest(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = doubles.make_conf(self)
        self.open(databases.create(self, self.kind))

    def open(self, url):
        self.url = url
        self.conf.set_override('connection', url, 'aggregate_mirror_database')
        self.database = engine.Database(self.conf)

    def record(self):
        """Write a row as nova-api does."""
        kept = store.Journal(self.conf).rows
        kept.record(kept.make(journal.Dirty('h1')), {'a'})

    def described(self, url):
        """Return columns, indexes and primary keys, except of alembic's."""
        tables = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with tables.connect() as connection:
            inspector = sa.inspect(connection)
            names = {*inspector.get_table_names()} - {'alembic_version'}
            described = {}
            for name in names:
                columns = inspector.get_columns(name)
                for column in columns:
                    column['type'] = repr(column['type'])
                described[name] = (
                    columns, sorted(inspector.get_indexes(name), key=str),
                    inspector.get_pk_constraint(name))
            return described

    def assert_is_the_models(self):
        self.assertEqual(models.HEAD, self.database.schema().version)
        url = databases.create(self, self.kind)
        models.metadata.create_all(
            sa.create_engine(url, poolclass=sa.pool.NullPool))
        self.assertEqual(self.described(url), self.described(self.url))


class TestMigrations(MigrationTest):

    def test_command(self):
        """It can be run repeatedly, and prints the version."""
        path = pathlib.Path(self.useFixture(
            fixtures.TempDir()).path, 'nova.conf')
        path.write_text('[aggregate_mirror_database]\nconnection = %s\n'
                        % self.url)
        for _time in range(2):
            self.assertIn(models.HEAD, commands.run(commands.MANAGE, [
                '--config-file', str(path), 'db', 'sync']).stdout)
        self.assert_is_the_models()

    def test_killed_after_each_statement(self):
        """The next migration continues; until then the command is named."""
        number = 1
        while migrations.killed(self.conf, number):
            number += 1
            if self.kind != 'sqlite':
                with self.assertRaisesRegex(
                        exceptions.JournalUnavailable,
                        'has (no|incomplete) tables; .*: run .* db sync'):
                    self.record()
            # Where DDL is transactional, nothing was created.
            if self.database.schema().tables:
                existing.migrate(self.conf)
                self.assert_is_the_models()
                self.record()
                self.open(databases.create(self, self.kind))
        self.assert_is_the_models()
        # The tables, alembic's own, and the version in it.
        self.assertEqual(len(models.metadata.tables) + 3, number)

    def test_three_at_once(self):
        """Each succeeds, although none of them has found any table."""
        migrations.at_once([self.conf] * 3)
        self.assert_is_the_models()
        self.record()

    def test_every_release_opens_the_journal_of_the_first(self):
        """It gets the current tables and keeps a row of each table."""
        dump = JOURNALS / ('1.0.0-%s.sql' % self.kind)
        databases.execute(self.url, *filter(
            None, dump.read_text().split(';\n')))
        existing.migrate(self.conf)
        self.assert_is_the_models()
        kept = store.Journal(self.conf)
        [row] = kept.rows.all()
        self.assertEqual(
            (journal.Dirty('cmp-1', frozenset({'node-1', 'node-2'}), 'req-1'),
             False, 1.5, 2, 'placement is down'),
            (row.dirty, row.running, row.created_at, row.attempts,
             row.last_error))
        self.assertEqual({
            '1f3b2c4d-0000-4000-8000-0000000000a1': journal.LedgerEntry(True),
        }, kept.ledger.entries())
        [sync] = full_syncs.newest(kept.database)
        self.assertEqual(('controller-1', 3), (sync.host, sync.added))
        self.record()
        self.assertEqual(2, len(kept.rows.all()))


class TestPassword(MigrationTest):

    # The other databases do not accept any password.
    scenarios = [scenario for scenario in databases.SCENARIOS
                 if scenario[0] == 'postgresql']

    def test_message(self):
        """It names the database without the password."""
        self.open(sa.engine.make_url(self.url).set(
            password='s3cret').render_as_string(hide_password=False))
        databases.execute(self.url, 'CREATE TABLE users (id INTEGER)')
        error = self.assertRaises(exceptions.WrongDatabase,
                                  existing.migrate, self.conf)
        self.assertIn('postgres:***@', str(error))
        self.assertNotIn('s3cret', str(error))
