# SPDX-License-Identifier: Apache-2.0
"""The journal's file, its tables, and its connection to a server."""

import contextlib
import os
import pathlib
import sqlite3
import stat
import types

import fixtures
import testtools
from testtools import matchers

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import sqlite
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from tests import databases
from tests.unit import doubles
from tests.unit import servers

# Any user except root.
NOVA = 4711
DRIVERS = ['mysql+pymysql', 'postgresql+psycopg2', *filter(
    databases.has_driver, ['postgresql+psycopg'])]


class TestLockedFile(testtools.TestCase):

    def test_wait(self):
        """It is limited, also in a command.

        In a call it leaves half of the time for the other parts of the call.
        """
        conf = doubles.make_conf(self)
        existing.migrate(conf)
        now = 0.0

        def sleep(seconds):
            nonlocal now
            now += seconds

        clock = types.SimpleNamespace(monotonic=lambda: now, sleep=sleep)
        for module in 'journal.db.sqlite', 'limits.deadline':
            self.useFixture(fixtures.MonkeyPatch(
                'nova_aggregate_mirror.%s.time' % module, clock))
        for limit, longest in (
                (contextlib.nullcontext(), sqlite.BUSY_TIMEOUT + 1),
                (deadline.within(2.0), 1.1)):
            start = now
            with engine.Database(conf).open().begin(), limit:
                self.assertRaises(exceptions.JournalUnavailable,
                                  engine.Database(conf).schema)
            self.assertLess(now - start, longest)


class TestServer(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = doubles.make_conf(self)
        self.useFixture(fixtures.Timeout(servers.PATIENCE, gentle=True))

    def open(self, url, **options):
        options['connection'] = url
        for name, value in options.items():
            self.conf.set_override(name, value, 'aggregate_mirror_database')
        # Libpq waits at least two seconds.
        return engine.Database(self.conf, limits=engines.Limits(2))

    def unavailable(self, database):
        return str(self.assertRaises(exceptions.JournalUnavailable,
                                     database.schema))

    def test_server_that_hangs(self):
        """A call waits a few seconds at most, and says so."""
        server = self.useFixture(servers.Server(servers.say_nothing))
        for driver in DRIVERS:
            address = server.url.split('/')[2]
            journal = self.open(
                '%s://user:secret@%s/journal' % (driver, address))
            self.assertThat(self.unavailable(journal), matchers.MatchesRegex(
                r'the journal was silent for \d+\.\d s: see in the log of '
                'the database server what it waits for'))
        self.assertEqual(len(DRIVERS), server.accepted)

    def test_connection_that_is_not_opened(self):
        """The reason and the next step are the same for each driver."""
        option = '[aggregate_mirror_database] connection'
        for driver in DRIVERS:
            self.assertEqual(
                'the journal refused the connection: start the database '
                'server; if it runs, correct host and port in ' + option,
                self.unavailable(self.open(
                    driver + '://user:secret@127.0.0.1:1/journal')))
            self.assertEqual(
                'the journal has a host name that does not resolve: correct '
                'the host in %s; if it is right, repair the name resolution '
                'of this host' % option,
                self.unavailable(self.open(
                    driver + '://user@nowhere.invalid/journal')))

    def test_parameter_that_the_driver_cannot_use(self):
        """The error names it, without the password; no file is created."""
        mysql, *postgresql = (
            driver + '://user:secr\u20act@127.0.0.1:1/journal?'
            for driver in DRIVERS)
        sqlite = 'sqlite:///%s/journal?' % self.conf.state_path
        for url, name in (
                (mysql, 'sneed=1'),
                *((url, 'sneed=1') for url in postgresql),
                (mysql, 'charset=nonsense'), (mysql, 'charset=utf8'),
                (mysql, 'connect_timeout=5s'), (mysql, 'compress=maybe'),
                (sqlite, 'timeout=abc')):
            message = str(self.assertRaises(
                exceptions.JournalUnavailable,
                lambda: self.open(url + name).schema()))
            self.assertIn(name.partition('=')[0], message)
            for secret in 'secr', '20ac':
                self.assertNotIn(secret, message)
        self.assertEqual([], os.listdir(self.conf.state_path))

    def test_timeouts_of_the_operator(self):
        """Timeouts in the URL or in connection_parameters are kept."""
        database = self.open(
            'mysql+pymysql://user@127.0.0.1:1/journal?read_timeout=60',
            connection_parameters='write_timeout=70&charset=utf8')
        self.assertEqual(
            {'read_timeout': '60', 'write_timeout': '70', 'charset': 'utf8',
             'connect_timeout': '2'}, dict(database.open().url.query))

    def test_path_that_is_a_directory(self):
        """Each template with an empty variable is an error, not a crash."""
        for path in '/', '.', '/tmp/':
            self.assertRaises(exceptions.JournalUnavailable,
                              self.open('sqlite:///' + path).prepare)

    def test_database_in_memory(self):
        """Nova-api and the agent would each have a journal of their own."""
        for url in 'sqlite://', 'sqlite:///', 'sqlite:///:memory:':
            self.open(url)
            for use in (existing.is_missing, existing.open_existing,
                        existing.display_url):
                with self.assertRaisesRegex(exceptions.JournalUnavailable,
                                            'in memory'):
                    use(self.conf)

    def test_error_that_the_caller_handles(self):
        """It is not taken for that of the database."""
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            with self.assertRaisesRegex(exceptions.JournalUnavailable,
                                        'refused the connection'):
                self.open('mysql+pymysql://nova@127.0.0.1:1/journal').prepare()

    def test_no_time_is_left(self):
        """The error says so, and nothing of the database."""
        journal = store.Journal(self.conf, engine.Database(
            self.conf, limits=engines.Limits.of_call(5.0, 5.0)))
        with deadline.within(0.0):
            error = self.assertRaises(
                exceptions.JournalUnavailable, journal.rows.all)
        self.assertEqual('the journal was not asked: no time is left',
                         str(error))


class TestFile(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = doubles.make_conf(self)
        self.path = pathlib.Path(
            self.conf.state_path, 'aggregate_mirror', 'journal.sqlite')

    def owners(self, *paths):
        """Return the owners of these, or of the file and its directory."""
        paths = paths or (self.path.parent, self.path)
        return [path.stat().st_uid for path in paths]

    def test_file_is_private_and_has_a_write_ahead_log(self):
        """Only nova can read it, and readers do not block writers.

        The directories above are as private.
        """
        state = pathlib.Path(self.conf.state_path, 'created', 'nova')
        self.conf.set_override('state_path', str(state))
        self.addCleanup(os.umask, os.umask(0))
        engine.Database(self.conf).prepare()
        file = existing.sqlite_file(self.conf)
        self.assertEqual([0o700, 0o700, 0o600], [
            stat.S_IMODE(path.stat().st_mode)
            for path in (state, file.parent, file)])
        with sqlite3.connect(file) as plain:
            self.assertEqual(('wal',), plain.execute(
                'PRAGMA journal_mode').fetchone())

    def test_where_it_is(self):
        """A database server has no file.

        Whether one exists that cannot be looked up is not known; it is no
        empty journal.
        """
        self.assertEqual(self.path, existing.sqlite_file(self.conf))
        self.assertTrue(existing.is_missing(self.conf))
        engine.Database(self.conf).open()
        self.assertFalse(existing.is_missing(self.conf))
        doubles.hide_journal(self.conf)
        for read in existing.is_missing, existing.open_existing:
            self.assertRaises(exceptions.JournalUnavailable, read, self.conf)
        self.conf.set_override(
            'connection', 'mysql+pymysql://user@host/journal',
            'aggregate_mirror_database')
        self.assertIsNone(existing.sqlite_file(self.conf))

    @testtools.skipIf(os.geteuid(), 'only root can change owners')
    def test_what_root_makes_belongs_to_nova(self):
        """A command run by root does not lock out nova-api's user.

        The owner of an existing journal and its directory is kept.
        """
        os.chown(self.conf.state_path, NOVA, NOVA)
        engine.Database(self.conf).open()
        self.assertEqual([NOVA, NOVA], self.owners())
        os.chown(self.conf.state_path, 0, 0)
        self.path.unlink()
        for _ in range(2):
            engine.Database(self.conf).open()
            self.assertEqual([NOVA, NOVA], self.owners())

    @testtools.skipIf(os.geteuid(), 'only root can change owners')
    def test_directory_that_is_replaced_by_a_link(self):
        """Ownership is given to what root created, not to a link's target."""
        target = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        target.joinpath(self.path.name).touch()
        state = pathlib.Path(self.conf.state_path)
        os.chown(state, NOVA, NOVA)

        def replace():
            # Nova's user can do so at any time, for example now.
            if not self.path.parent.is_symlink():
                self.path.parent.rename(state / 'created')
                self.path.parent.symlink_to(target)
            return 0

        self.useFixture(fixtures.MonkeyPatch('os.geteuid', replace))
        engine.Database(self.conf).open()
        for folder, owner in (target, 0), (state / 'created', NOVA):
            self.assertEqual([owner, owner], self.owners(
                folder, folder / self.path.name))

    def test_link_without_a_target(self):
        """SQLite does not create the target, which would not be private."""
        target = pathlib.Path(self.conf.state_path, 'target')
        self.path.parent.mkdir()
        self.path.symlink_to(target)
        with self.assertRaisesRegex(exceptions.JournalUnavailable,
                                    str(self.path)):
            engine.Database(self.conf).prepare()
        self.assertFalse(target.exists())
