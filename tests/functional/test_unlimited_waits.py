# SPDX-License-Identifier: Apache-2.0
"""The two waits for a database that no driver limits, as documented."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading

import psutil
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.limits import engines
from tests import databases
from tests.unit import doubles

# Seconds for a statement; the server process is stopped in that time.
LIMIT = 3.0
PATIENCE = 60
# Run in namespaces of its own, where a name server takes every query and never
# answers. Prints how long the journal waited for the address of its server.
RESOLVE = """
import fcntl, socket, struct, sys, time
from oslo_config import cfg
from nova_aggregate_mirror import conf, exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.limits import engines

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
    # SIOCSIFFLAGS, IFF_UP
    fcntl.ioctl(loopback, 0x8914, struct.pack('16sH14x', b'lo', 1))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 53))
settings = cfg.ConfigOpts()
settings([])
conf.register_opts(settings)
settings.set_override('connection', 'mysql+pymysql://nova@db.example/journal',
                      'aggregate_mirror_database')
database = engine.Database(settings, limits=engines.Limits(1.0))
began = time.monotonic()
try:
    database.check()
except exceptions.JournalUnavailable:
    print(time.monotonic() - began)
"""
RESOLVER = """\
nameserver 127.0.0.1
options timeout:%d attempts:1
"""


class TestPostgresql(testtools.TestCase):

    def test_stopped_server_process_is_waited_for(self) -> None:
        """In the middle of a statement, until it continues."""
        conf = doubles.make_conf(self)
        url = databases.create(self, 'postgresql')
        conf.set_override('connection', url, 'aggregate_mirror_database')
        database = engine.Database(conf, limits=engines.Limits(LIMIT))
        self.addCleanup(database.close)
        with database.transaction() as connection:
            number = connection.exec_driver_sql(
                'SELECT pg_backend_pid()').scalar()
            try:
                server = psutil.Process(number)
                self.assertIn('postgres', server.name())
                server.send_signal(0)
            except psutil.Error:
                self.skipTest('the server is not on this machine, or another '
                              'user runs it')
            statement = threading.Thread(target=_sleep, args=(connection,))
            self.addCleanup(os.kill, number, signal.SIGCONT)
            statement.start()
            self.wait_for_statement(url)
            server.suspend()
            statement.join(2 * LIMIT)
            self.assertTrue(statement.is_alive())
            server.resume()
            statement.join(PATIENCE)
            self.assertFalse(statement.is_alive())

    def wait_for_statement(self, url: str) -> None:
        """Wait until the server executes the statement."""
        for _attempt in range(1000):
            if databases.execute(
                    url, "SELECT 1 FROM pg_stat_activity WHERE state = "
                    "'active' AND query LIKE 'SELECT pg_sleep(%%'"):
                return
        self.fail('the statement has not begun')


def _sleep(connection: sa.engine.Connection) -> None:
    """Execute a statement that the server cancels at the limit."""
    with contextlib.suppress(sa.exc.OperationalError):
        connection.exec_driver_sql('SELECT pg_sleep(%d)' % PATIENCE)


class TestNameResolution(testtools.TestCase):

    def resolve(self, timeout: int) -> float:
        """Return the seconds that an unknown address was waited for.

        :param timeout: of the resolver, in seconds
        """
        with tempfile.NamedTemporaryFile('w') as resolver:
            resolver.write(RESOLVER % timeout)
            resolver.flush()
            done = subprocess.run(
                ['unshare', '--map-root-user', '--net', '--mount', 'sh', '-c',
                 'mount --bind "$0" /etc/resolv.conf && exec "$@"',
                 resolver.name, sys.executable, '-c', RESOLVE],
                capture_output=True, text=True, stdin=subprocess.DEVNULL,
                timeout=PATIENCE)
        self.assertEqual(0, done.returncode, done.stderr)
        return float(done.stdout)

    def test_resolver_alone_limits_it(self) -> None:
        """The time is that of resolv.conf, however long a statement may be."""
        try:
            subprocess.run(['unshare', '--map-root-user', '--net', '--mount',
                            'true'], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as exc:
            self.skipTest('no namespaces: %s' % exc)
        self.assertGreaterEqual(self.resolve(3), 3.0)
