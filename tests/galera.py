# SPDX-License-Identifier: Apache-2.0
"""A Galera cluster of three nodes on the loopback interface."""

from collections import abc
import contextlib
import dataclasses
import functools
import os
import pathlib
import secrets
import shutil
from typing import Any

import pymysql

from tests.cloud import loopback
from tests import databases
from tests import patience

NODES = 3
MYSQL = databases.SERVERS['mysql']
MYSQL_URL = 'mysql+pymysql://root@127.0.0.1:%d'
# Where packages install it: Debian, Fedora and SUSE.
PROVIDERS = ('/usr/lib/galera/libgalera_smm.so',
             '/usr/lib64/galera-4/libgalera_smm.so',
             '/usr/lib64/galera/libgalera_smm.so')
SECONDS = patience.LONG
SYNCED = 'Synced'
# The option that starts a cluster of one node.
FIRST = '--wsrep-new-cluster'


@dataclasses.dataclass(frozen=True)
class Node:
    """A node, and how to reach it."""

    name: str
    folder: str
    port: int

    @property
    def data(self) -> pathlib.Path:
        """The directory of the databases and of the node's position."""
        return pathlib.Path(self.folder, 'data')

    @property
    def url(self) -> str:
        """The URL of this node's administrator."""
        return MYSQL_URL % self.port

    def fill(self, user: str, first: bool) -> None:
        """Create its directory; all but the first get a copy of the tables."""
        if not first:
            self.data.mkdir()
            if user:
                shutil.chown(self.data, user)
            return
        fill, _serve = MYSQL.commands(
            str(databases.program_of(MYSQL)), self.data, self.port)
        if failure := databases.failure(fill, user, self.folder):
            raise databases.Unavailable(failure)

    def ask(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        """Run a statement on this node; a node may allow only SET and SHOW."""
        with contextlib.closing(pymysql.connect(
                host='127.0.0.1', port=self.port, user='root',
                connect_timeout=SECONDS, read_timeout=SECONDS, autocommit=True,
                ssl_disabled=True)) as connection, \
                connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

    def status(self) -> dict[str, str]:
        """Return its status variables; none if it does not answer."""
        try:
            return dict(self.ask("SHOW STATUS LIKE 'wsrep_%'"))
        except pymysql.Error:
            return {}

    def is_synced(self) -> bool:
        """Check whether it has what the cluster has committed."""
        return self.status().get('wsrep_local_state_comment') == SYNCED

    def set_provider(self, option: str) -> None:
        """Set an option of the provider, such as ``gmcast.isolate=1``."""
        self.ask('SET GLOBAL wsrep_provider_options = \'%s\'' % option)

    @contextlib.contextmanager
    def isolated(self) -> abc.Iterator[None]:
        """Separate it from the other nodes."""
        self.set_provider('gmcast.isolate=1')
        try:
            yield
        finally:
            self.set_provider('gmcast.isolate=0')

    @contextlib.contextmanager
    def lagging(self) -> abc.Iterator[None]:
        """Let it apply nothing, as a backup does; the cluster goes on."""
        with contextlib.closing(pymysql.connect(
                host='127.0.0.1', port=self.port, user='root',
                connect_timeout=SECONDS, read_timeout=SECONDS,
                ssl_disabled=True)) as connection, \
                connection.cursor() as cursor:
            cursor.execute('SET GLOBAL wsrep_desync = ON')
            try:
                cursor.execute('FLUSH TABLES WITH READ LOCK')
                yield
            finally:
                cursor.execute('UNLOCK TABLES')
                cursor.execute('SET GLOBAL wsrep_desync = OFF')


def commands(nodes: abc.Sequence[Node], ports: abc.Sequence[int]
             ) -> list[list[str]]:
    """Return the command that starts each node of a new cluster.

    :param ports: three per node: for the group, for incremental and for full
        state transfers
    """
    cluster, count = 'mirror_%s' % secrets.token_hex(4), len(nodes)
    groups = ports[:count]
    address = 'gcomm://%s' % ','.join('127.0.0.1:%d' % port for port in groups)
    return [[
        str(databases.program_of(MYSQL)), '--no-defaults',
        '--datadir=%s' % node.data, '--socket=%s/socket' % node.folder,
        '--pid-file=%s/pid' % node.folder, '--port=%d' % node.port,
        '--bind-address=127.0.0.1', '--max-connections=500',
        '--innodb-buffer-pool-size=32M', '--innodb-log-file-size=16M',
        # The data is temporary: commits have to survive a kill -9, but not a
        # power failure.
        '--innodb-flush-log-at-trx-commit=2', '--innodb-autoinc-lock-mode=2',
        '--binlog-format=ROW', '--wsrep-on=ON',
        '--wsrep-provider=%s' % provider(),
        '--wsrep-cluster-name=%s' % cluster,
        '--wsrep-cluster-address=%s' % address,
        '--wsrep-node-name=%s' % node.name,
        '--wsrep-node-address=127.0.0.1:%d' % group,
        '--wsrep-sst-method=rsync',
        '--wsrep-sst-receive-address=127.0.0.1:%d' % full,
        '--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;'
        'ist.recv_addr=127.0.0.1:%d;gcache.size=32M' % (group, incremental)]
        for node, group, incremental, full in zip(
            nodes, groups, ports[count:2 * count], ports[2 * count:])]


def provider() -> str | None:
    """Return the path of Galera's library, or None if it is missing."""
    return next(filter(os.path.exists, PROVIDERS), None)


def available() -> bool:
    """Check whether this machine has everything that a cluster needs."""
    programs = ('mariadbd', 'mariadb-install-db', 'rsync')
    return bool(provider() and all(map(databases.which, programs)))


def require() -> None:
    """Install what a cluster needs, as root with CI=true."""
    if (not available() and os.environ.get('CI') == 'true'
            and not os.geteuid()):
        databases.install([MYSQL.package], available)
    if not available():
        raise databases.Unavailable(
            'no Galera: install the package %s of Debian or its derivatives'
            % MYSQL.package)


def cluster() -> abc.Sequence[Node]:
    """Return a cluster that stops with this process."""
    found = _cluster()
    if isinstance(found, databases.Unavailable):
        raise found
    return found


@functools.cache
def _cluster() -> abc.Sequence[Node] | databases.Unavailable:
    # A failure is cached, too: each test would wait for another attempt.
    try:
        require()
        return _start()
    except databases.Unavailable as exc:
        return exc


def _start() -> abc.Sequence[Node]:
    folders = [databases.folder(MYSQL.user) for _number in range(NODES)]
    ports = loopback.free_ports(4 * NODES)
    found = [Node('galera-%d' % (number + 1), str(folder), ports[number])
             for number, (folder, _user) in enumerate(folders)]
    with contextlib.ExitStack() as unused:
        for folder, _user in folders:
            unused.callback(shutil.rmtree, folder, ignore_errors=True)
        for number, (node, command, (folder, user)) in enumerate(zip(
                found, commands(found, ports[NODES:]), folders)):
            node.fill(user, first=not number)
            databases.start(
                folder, user, command if number else [*command, FIRST],
                node.is_synced)
        # The node that sent the last its data refuses connections for a while.
        if not patience.wait(lambda: all(node.is_synced() for node in found)):
            states = [node.status().get('wsrep_local_state_comment')
                      for node in found]
            raise databases.Unavailable('Galera did not start: %s' % states)
        unused.pop_all()
    return found
