# SPDX-License-Identifier: Apache-2.0
"""The journal's tables from empty and from every release, on each database."""

import pathlib
import subprocess
import sys

from alembic import command
from alembic import config
import fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import migration
from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import history
from nova_aggregate_mirror import journal
from tests import databases
from tests.unit import ends

load_tests = testscenarios.load_tests_apply_scenarios

COMMAND = str(pathlib.Path(sys.executable).with_name(
    'nova-aggregate-mirror-manage'))
HOST = journal.Dirty(host='h1', nodes=frozenset({'n1', 'n2'}),
                     request_id='req-1')
ENTRY = history.Entry('agent --prune', 'api1', 1000.5, 1001.5, 1.0, added=2)
# What nova-api of the first release writes, which knows no other column.
WRITTEN_BY_0001 = """
    INSERT INTO dirty (host, nodes, request_id, owner, created_at, attempts,
                       last_error)
    VALUES ('h1', 'n1,n2', 'req-1', '', 1000.5, 1, 'refused')
"""
LEDGERED_BY_0001 = """
    INSERT INTO ledger (aggregate_uuid, created_at) VALUES ('a', 1000.5)
"""


class MigrationTest(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = ends.make_conf(self)
        self.url = databases.create(self, self.kind)
        self.conf.set_override('connection', self.url,
                               'aggregate_mirror_database')
        self.database = engine.Database(self.conf)

    def open(self):
        return journal.Journal(self.conf, now=lambda: 2000.0)

    def migrate_to(self, version):
        """Be a database that a release of the past has made."""
        settings = config.Config()
        settings.set_main_option('script_location', str(
            pathlib.Path(migration.__file__).with_name('migrations')))
        with self.database.transaction() as connection:
            settings.attributes['connection'] = connection
            command.upgrade(settings, version)

    def described(self, url):
        """Every table but alembic's: its columns, indexes and primary key."""
        tables = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with tables.connect() as connection:
            inspector = sa.inspect(connection)
            return {
                name: ([(column['name'], repr(column['type']),
                         column['nullable'], column['default'])
                        for column in inspector.get_columns(name)],
                       sorted((index['name'], index['column_names'])
                              for index in inspector.get_indexes(name)),
                       inspector.get_pk_constraint(name))
                for name in inspector.get_table_names()
                if name != 'alembic_version'}

    def assert_is_the_models(self):
        self.assertEqual(migration.HEAD, self.database.version())
        url = databases.create(self, self.kind)
        models.metadata.create_all(
            sa.create_engine(url, poolclass=sa.pool.NullPool))
        self.assertEqual(self.described(url), self.described(self.url))


class TestMigrations(MigrationTest):

    def test_from_empty(self):
        """The tables are those of the models, also after a second time."""
        self.assertIsNone(self.database.version())
        for _ in range(2):
            self.database.migrate()
            self.assert_is_the_models()

    def test_from_0001(self):
        """What the first release has written is there, and is claimed."""
        self.migrate_to('0001')
        self.assertEqual('0001', self.database.version())
        databases.execute(self.url, WRITTEN_BY_0001, LEDGERED_BY_0001)
        self.database.migrate()
        self.assert_is_the_models()
        row, = self.open().claim(5)
        self.assertEqual((HOST, 1000.5, 1, 'refused', ''), (
            row.dirty, row.created_at, row.attempts, row.last_error,
            row.claimant))
        self.assertEqual({'a'}, self.open().ledger())
        self.assertEqual(0, self.open().emptied(['a'], []))

    def test_from_0002(self):
        """What agents have written is there; the history is empty."""
        self.migrate_to('0002')
        databases.execute(self.url, WRITTEN_BY_0001, LEDGERED_BY_0001)
        self.database.migrate()
        self.assert_is_the_models()
        kept = self.open()
        row, = kept.claim(5)
        self.assertEqual((HOST, []), (row.dirty, kept.syncs()))
        kept.note_sync(ENTRY)
        self.assertEqual([ENTRY], kept.syncs())

    def test_tables_of_a_newer_release(self):
        """They are left as they are, and work."""
        self.database.migrate()
        databases.execute(
            self.url, 'UPDATE alembic_version SET version_num = \'9999\'')
        self.database.migrate()
        self.assertEqual('9999', self.database.version())
        self.open().record(HOST)

    def test_nova_api_of_the_release_before(self):
        """During a rolling upgrade it writes as it knows, and is heard."""
        self.database.migrate()
        databases.execute(self.url, WRITTEN_BY_0001, LEDGERED_BY_0001)
        kept = self.open()
        row, = kept.claim(5)
        self.assertEqual(HOST, row.dirty)
        self.assertEqual({'a'}, kept.ledger())
        kept.retry_later({row: 'failed'})
        self.assertEqual(1, kept.complete([row.id]))

    def test_agent_of_the_release_before(self):
        """During a rolling upgrade it works on, beside one of this."""
        self.database.migrate()
        self.open().note_sync(ENTRY)
        with fixtures.MonkeyPatch(
                'nova_aggregate_mirror.db.migration.HEAD', '0002'):
            before = self.open()
            number = before.record(HOST, {'a'}).id
            before.hand_over(number, 'refused')
            self.assertTrue(before.take_lease('sync', None, 15))
            self.assertEqual([number], [row.id for row in before.claim(5)])
            self.assertEqual(1, before.complete([number]))
        self.assertEqual([ENTRY], self.open().syncs())

    def test_command(self):
        """db sync and db version, once and again."""
        path = pathlib.Path(self.useFixture(
            fixtures.TempDir()).path, 'nova.conf')
        path.write_text('[aggregate_mirror_database]\nconnection = %s\n'
                        % self.url)
        said = [subprocess.run(
            [COMMAND, '--config-file', path, 'db', what], capture_output=True,
            text=True, timeout=120, check=True).stdout
            for what in ('version', 'sync', 'version', 'sync')]
        self.assertIn('no tables', said[0])
        self.assertEqual(said[1], said[3])
        self.assertIn(migration.HEAD, said[2])
        self.assert_is_the_models()


class TestServer(MigrationTest):

    scenarios = [one for one in databases.SCENARIOS if one[0] != 'sqlite']

    def test_server_without_tables(self):
        """One clear error that names the command; then it works."""
        kept = self.open()
        for _ in range(2):
            with self.assertRaisesRegex(
                    exceptions.JournalUnavailable,
                    'no tables: run "nova-aggregate-mirror-manage db sync"'):
                kept.record(HOST)
        self.database.migrate()
        kept.record(HOST)

    def test_server_with_tables_of_a_release_before(self):
        """Likewise, with both versions."""
        for version in ('0001', '0002'):
            self.migrate_to(version)
            with self.assertRaisesRegex(
                    exceptions.JournalUnavailable,
                    'version %s instead of %s: run "nova-aggregate-mirror-'
                    'manage db sync"' % (version, migration.HEAD)):
                self.open().record(HOST)
        self.database.migrate()
        self.open().record(HOST)
