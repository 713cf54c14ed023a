# SPDX-License-Identifier: Apache-2.0
"""The journal's file, its connection to a server, and what is wrong there."""

import os
import pathlib
import socket

import fixtures
import testtools

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror import exceptions
from tests.unit import ends
from tests.unit import servers

# Any user that is not root.
NOVA = 4711
DRIVERS = ('mysql+pymysql', 'postgresql+psycopg2')


def _says_nothing(_server: servers.Server, client: socket.socket) -> None:
    while client.recv(4096):
        pass


class TestServer(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = ends.make_conf(self)
        self.useFixture(fixtures.Timeout(servers.PATIENCE, gentle=True))

    def open(self, url, **options):
        options['connection'] = url
        for name, value in options.items():
            self.conf.set_override(name, value, 'aggregate_mirror_database')
        return engine.Database(self.conf)

    def unavailable(self, database):
        return str(self.assertRaises(exceptions.JournalUnavailable,
                                     database.version))

    def test_server_that_hangs(self):
        """Nobody waits for it longer than a few seconds."""
        # Libpq waits two seconds at least.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.db.engine.PATIENCE', 2))
        server = self.useFixture(servers.Server(_says_nothing))
        for driver in DRIVERS:
            self.unavailable(self.open('%s://user:secret@%s/journal' % (
                driver, server.url.split('/')[2])))
        self.assertEqual(len(DRIVERS), server.accepted)

    def test_parameter_that_the_driver_does_not_know(self):
        """Whoever wrote it is told so, without the password."""
        for driver in DRIVERS:
            message = self.unavailable(self.open(
                driver + '://user:secret@127.0.0.1:1/journal?sneed=1'))
            self.assertIn('sneed', message)
            self.assertNotIn('secret', message)

    def test_timeouts_of_the_operator(self):
        """In the URL or in connection_parameters, they are kept."""
        database = self.open(
            'mysql+pymysql://user@127.0.0.1:1/journal?read_timeout=60',
            connection_parameters='write_timeout=70&charset=utf8')
        self.assertEqual(
            {'read_timeout': '60', 'write_timeout': '70', 'charset': 'utf8',
             'connect_timeout': '5'}, dict(database._engine.url.query))


class TestFile(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = ends.make_conf(self)
        self.path = pathlib.Path(
            self.conf.state_path, 'aggregate_mirror', 'journal.sqlite')

    def test_where_it_is(self):
        """A server has no file, nor has a database in memory."""
        self.assertEqual(self.path, engine.sqlite_file(self.conf))
        for url in ('mysql+pymysql://user@host/journal', 'sqlite://'):
            self.conf.set_override('connection', url,
                                   'aggregate_mirror_database')
            self.assertIsNone(engine.sqlite_file(self.conf))

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_what_root_makes_belongs_to_nova(self):
        """A command that root runs does not shut nova-api's user out."""
        os.chown(self.conf.state_path, NOVA, NOVA)
        engine.Database(self.conf)
        self.assertEqual([NOVA, NOVA], [
            path.stat().st_uid for path in (self.path.parent, self.path)])

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_what_is_there_stays_whose_it_is(self):
        """Root may look at a journal whose directory lies in one of root's."""
        self.path.parent.mkdir()
        os.chown(self.path.parent, NOVA, NOVA)
        for _ in range(2):
            engine.Database(self.conf)
            self.assertEqual([NOVA, NOVA], [
                path.stat().st_uid for path in (self.path.parent, self.path)])
