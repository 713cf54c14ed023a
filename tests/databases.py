# SPDX-License-Identifier: Apache-2.0
"""A database for each test: an SQLite file, or a database on a server.

The addresses below are tried first. If no server listens there, a private
server is started if its programs are installed. With CI=true and as root they
are installed first, on Debian and its derivatives.
"""

from collections import abc
import contextlib
import dataclasses
import fcntl
import functools
import glob
import importlib.util
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import fixtures
import sqlalchemy as sa
import testtools

from tests.cloud import sql
from tests import patience

changed, execute, without_tls = sql.changed, sql.execute, sql.without_tls
KINDS = ('sqlite', 'mysql', 'postgresql')
SCENARIOS = [(kind, {'kind': kind}) for kind in KINDS]
PSYCOPG = ('psycopg', {'kind': 'postgresql', 'driver': 'psycopg'})
"""A scenario with the other driver for PostgreSQL."""

INSTALL = ['apt-get', 'install', '--yes', '--no-install-recommends']
POLICY = pathlib.Path('/usr/sbin/policy-rc.d')
START_TIMEOUT = patience.seconds(300)
# Stops the server and removes its files when the process that holds the other
# side of the pipe has exited or was killed.
WATCH = """
import shutil, subprocess, sys
server = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL,
                          user=sys.argv[2] or None)
sys.stdin.read()
server.terminate()
server.wait()
shutil.rmtree(sys.argv[1])
"""


class Unavailable(Exception):
    """The server is unavailable; the text has the remedy."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A kind of database server, and how to start it."""

    url: str
    """Where it may run, as an administrator who can create databases."""
    variable: str
    """The environment variable that overrides the URL."""
    driver: str
    package: str
    programs: tuple[str, ...]
    """Alternative names of the server program."""
    user: str
    """The user to run it as when root runs the tests."""
    commands: abc.Callable[
        [str, pathlib.Path, int], tuple[list[str], list[str]]]
    """Returns the commands that fill the directory and start the server."""
    create: str
    sessions: str
    """A query for the IDs of a database's sessions."""
    end: str


def _mysql(program: str, data: pathlib.Path, port: int
           ) -> tuple[list[str], list[str]]:
    options = [program, '--no-defaults', '--datadir=%s' % data]
    fill = [*options, '--initialize-insecure']
    maker = which('mariadb-install-db')
    if maker:
        fill = [maker, '--no-defaults', '--datadir=%s' % data,
                '--auth-root-authentication-method=normal', '--skip-test-db']
    return fill, [*options, '--port=%d' % port, '--bind-address=127.0.0.1',
                  '--socket=%s' % (data / 'socket'),
                  '--pid-file=%s' % (data / 'pid')]


def _postgresql(program: str, data: pathlib.Path, port: int
                ) -> tuple[list[str], list[str]]:
    fill = [str(pathlib.Path(program).with_name('initdb')), '-D', str(data),
            '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']
    return fill, [program, '-D', str(data), '-p', str(port), '-c',
                  'listen_addresses=127.0.0.1', '-c',
                  'unix_socket_directories=%s' % data]


SERVERS: abc.Mapping[str, Server] = {
    'mysql': Server(
        'mysql+pymysql://root@127.0.0.1:3306',
        'AGGREGATE_MIRROR_TEST_MYSQL', 'pymysql', 'mariadb-server',
        ('mariadbd', 'mysqld'), 'mysql', _mysql,
        # As in nova's installation guides; it ignores case.
        'CREATE DATABASE %s CHARACTER SET utf8 COLLATE utf8_general_ci',
        'SELECT id FROM information_schema.processlist WHERE db = \'%s\'',
        'KILL %d'),
    'postgresql': Server(
        'postgresql+psycopg2://postgres@127.0.0.1:5432',
        'AGGREGATE_MIRROR_TEST_POSTGRESQL', 'psycopg2', 'postgresql',
        ('postgres',), 'postgres', _postgresql, 'CREATE DATABASE %s',
        'SELECT pid FROM pg_stat_activity WHERE datname = \'%s\'',
        'SELECT pg_terminate_backend(%d)')}


def create(test: testtools.TestCase, kind: str, driver: str = '') -> str:
    """Create an empty database for a test, and drop it when the test ends.

    :param kind: a value of ``KINDS``; the test is skipped if unavailable
    :param driver: another driver than that of ``SERVERS``, such as psycopg
    """
    if driver and not has_driver('%s+%s' % (kind, driver)):
        test.skipTest('no driver %s: pip install -r tests/requirements.txt, '
                      'with SQLAlchemy 2' % driver)
    if kind == 'sqlite':
        return 'sqlite:///%s/journal.sqlite' % test.useFixture(
            fixtures.TempDir()).path
    server = SERVERS[kind]
    try:
        address = find(kind)
    except Unavailable as exc:
        test.skipTest(str(exc))
    name = 'aggregate_mirror_test_' + uuid.uuid4().hex[:12]
    execute(address, server.create % name)
    parsed = sa.engine.make_url(address).set(database=name)
    if driver:
        parsed = parsed.set(drivername='%s+%s' % (kind, driver))
    url = without_tls(parsed).render_as_string(hide_password=False)
    test.addCleanup(execute, address, 'DROP DATABASE %s' % name)
    test.addCleanup(disconnect, url)
    return url


def has_driver(name: str) -> bool:
    """Return whether a driver, and SQLAlchemy's dialect of it, is there."""
    try:
        sa.engine.make_url(name + '://').get_dialect().import_dbapi()
    except (ImportError, sa.exc.NoSuchModuleError):
        return False
    return True


def disconnect(url: str) -> None:
    """Close every connection to a server's database, as a restart does."""
    server = SERVERS[sa.engine.make_url(url).get_backend_name()]
    name = sa.engine.make_url(url).database
    found = execute(url, server.sessions % name)
    address = changed(url, database='')
    for number, in found:
        # One of the sessions is that of the query itself.
        with contextlib.suppress(sa.exc.DBAPIError):
            execute(address, server.end % number)


@functools.cache
def find(kind: str) -> str:
    """Return the URL of a server that responds, or raise Unavailable."""
    server = SERVERS[kind]
    if importlib.util.find_spec(server.driver) is None:
        raise Unavailable('no driver for %s: pip install -r '
                          'test-requirements.txt' % kind)
    named = os.environ.get(server.variable)
    url = named or server.url
    if named or answers(url):
        return url
    program = program_of(server)
    if not program and os.environ.get('CI') == 'true' and not os.geteuid():
        _install()
        program = program_of(server)
    if not program:
        raise Unavailable(
            'no %s server: install the package %s, or name one that runs in '
            '%s, as in %s' % (kind, server.package, server.variable,
                              server.url))
    return _start(server, program)


def answers(url: str) -> bool:
    """Return whether a server accepts connections of its administrator."""
    # A server that listens may have another administrator.
    try:
        execute(url, 'SELECT 1')
    except sa.exc.SQLAlchemyError:
        return False
    return True


def which(program: str) -> str | None:
    """Return the path of a server's program, or None."""
    # Debian installs servers outside of a user's PATH.
    folders = [*sorted(glob.glob('/usr/lib/postgresql/*/bin'), reverse=True),
               os.environ.get('PATH', os.defpath), '/usr/sbin', '/usr/libexec']
    return shutil.which(program, path=os.pathsep.join(folders))


def program_of(server: Server) -> str | None:
    """Return the path of a server, or None if it is not installed."""
    return next(filter(None, map(which, server.programs)), None)


def _start(server: Server, program: str) -> str:
    """Start a private server that stops with this process; return its URL."""
    data, user = folder(server.user)
    with socket.create_server(('127.0.0.1', 0)) as probe:
        port = probe.getsockname()[1]
    fill, serve = server.commands(program, data / 'data', port)
    if failed := failure(fill, user, data):
        shutil.rmtree(data)
        raise Unavailable(failed)
    url = changed(server.url, port=port)
    start(data, user, serve, lambda: answers(url))
    return url


def failure(command: abc.Sequence[str], user: str,
            directory: pathlib.Path) -> str:
    """Fill a server's folder by a command; return how it failed, or ''."""
    done = subprocess.run(command, user=user or None, cwd=directory,
                          capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    end = done.stderr[-500:]
    return '%s failed: %s' % (command[0], end) if done.returncode else ''


def folder(user: str) -> tuple[pathlib.Path, str]:
    """Create a folder for a private server; see ``hand_over``."""
    data = pathlib.Path(tempfile.mkdtemp(prefix='aggregate-mirror-'))
    return data, hand_over(data, user)


def hand_over(data: pathlib.Path, user: str) -> str:
    """Give a private server its folder.

    :param user: the account that runs it if root runs the tests
    :returns: the account that runs the server; '' is the current user
    """
    if os.geteuid():
        return ''
    # No database server runs as root.
    user = first_user(user, 'nobody')
    os.chown(data, pwd.getpwnam(user).pw_uid, -1)
    return user


def start(data: pathlib.Path, user: str, command: abc.Sequence[str],
          ready: abc.Callable[[], bool]) -> None:
    """Start a server that stops with this process and leaves no folder."""
    with open(data / 'log', 'wb') as log:
        watch = subprocess.Popen(
            [sys.executable, '-c', WATCH, str(data), user, *command],
            cwd=data, stdin=subprocess.PIPE, stdout=log, stderr=log,
            # Ctrl-C must only reach this process.
            start_new_session=True)
    end = time.monotonic() + START_TIMEOUT
    while not ready():
        if time.monotonic() > end or watch.poll() is not None:
            said = (data / 'log').read_text(errors='replace')[-500:]
            watch.stdin.close()
            raise Unavailable('%s did not start: %s' % (command[0], said))
        time.sleep(0.1)
    _RUNNING.append(watch)


_RUNNING: list[subprocess.Popen] = []
"""Their pipes stay open while this process lives."""


def first_user(*names: str) -> str:
    """Return the first of these accounts that exists on this machine."""
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise Unavailable('no user %s to run a server' % ' or '.join(names))


@functools.cache
def _install() -> None:
    every = SERVERS.values()
    install([server.package for server in every],
            lambda: all(map(program_of, every)))


def install(packages: abc.Sequence[str], there: abc.Callable[[], bool]
            ) -> None:
    """Install servers, once for all processes, without starting any."""
    with open(pathlib.Path(tempfile.gettempdir(),
                           'aggregate-mirror-install.lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if there() or not which('apt-get'):
            return
        guarded = POLICY.exists()
        if not guarded:
            POLICY.write_text('#!/bin/sh\nexit 101\n')
            POLICY.chmod(0o755)
        try:
            for command in (['apt-get', 'update'], [*INSTALL, *packages]):
                subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True,
                    env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'})
        finally:
            if not guarded:
                POLICY.unlink()
