# SPDX-License-Identifier: Apache-2.0
"""The cloud's MariaDB and RabbitMQ: this machine's, or private servers.

On this machine's servers a cloud has its own databases and virtual host.
Private servers keep their data in their own folder. Everything is recorded in
the state before it is created, so that it can be removed.
"""

import functools
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile

import amqp
import sqlalchemy as sa

from tests.cloud import cluster
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import statefile
from tests import databases
from tests import galera

MYSQL = databases.SERVERS['mysql']
NAMES = ('keystone', 'placement', 'glance', 'neutron', 'nova', 'nova_api',
         'nova_cell0', 'journal', 'cinder')
PREFIX = 'mirror_cloud_'
RABBIT = 'rabbitmq-server'
# Debian's rabbitmq-server in the PATH would change to another user.
RABBIT_SCRIPTS = '/usr/lib/rabbitmq/bin'
SECONDS = 60


class Unavailable(Exception):
    """A server is unavailable here; the text says what to do."""


def install(private: bool, clustered: bool) -> None:
    """Install the servers that this machine neither runs nor has.

    :param clustered: whether MariaDB is for a Galera cluster
    :raises Unavailable: when that cannot be done
    """
    missing = [package for package, there in (
        (MYSQL.package, _has_database(private, clustered)),
        (RABBIT, _has_broker(private))) if not there]
    if not missing:
        return
    if os.geteuid():
        raise Unavailable(
            'This machine has no %s. Let root install: apt-get install '
            '--no-install-recommends %s' % (
                ' and no '.join(missing), ' '.join(missing)))
    print('Installing', ' and '.join(missing), flush=True)

    def there() -> bool:
        return _has_database(private, clustered) and _has_broker(private)

    databases.install(missing, there)
    if not there():
        raise Unavailable('apt-get could not install %s; do it by hand to '
                          'see why' % ' and '.join(missing))


def database(state: statefile.State, private: bool, clustered: bool
             ) -> dict[str, str]:
    """Create the databases.

    :returns: the beginning of their URLs: for each host that has its own, and
        for all others with the key ``cluster.OTHERS``
    """
    addresses = {cluster.OTHERS: MYSQL.url}
    if clustered:
        addresses = cluster.start(state, [
            _folder(state, MYSQL.user) for _node in cluster.NODES])
    elif private or not _machine_database():
        addresses = {cluster.OTHERS: _start_database(state)}
    prefix = PREFIX + secrets.token_hex(4) + '_'
    address = addresses[cluster.OTHERS]
    for name in NAMES:
        state.add(statefile.Resource('database', address, prefix + name))
        databases.execute(address, MYSQL.create % (prefix + name))
    return {host: address + '/' + prefix
            for host, address in addresses.items()}


def broker(state: statefile.State, private: bool) -> str:
    """Create the virtual host; return its URL for oslo.messaging."""
    if not private and _machine_broker():
        name = PREFIX + secrets.token_hex(4)
        state.add(statefile.Resource('virtual host', '', name))
        _control('add_vhost', name)
        _control('set_permissions', '-p', name, 'guest', '.*', '.*', '.*')
        return 'rabbit://guest:guest@127.0.0.1:5672/' + name
    return _start_broker(state)


def remove(resource: statefile.Resource) -> None:
    """Remove a recorded object, if it still exists.

    :raises CloudError: when RabbitMQ fails to remove it or to list it
    """
    if resource.kind == 'database':
        databases.execute(
            resource.where, 'DROP DATABASE IF EXISTS ' + resource.name)
    elif resource.kind == 'virtual host':
        try:
            _control('delete_vhost', resource.name)
        except processes.CloudError:
            # This also fails for a virtual host that does not exist.
            if resource.name in _control('list_vhosts').split():
                raise
    elif resource.kind == 'folder':
        shutil.rmtree(resource.name, ignore_errors=True)


def _start_database(state: statefile.State) -> str:
    folder, user = _folder(state, MYSQL.user)
    port, = loopback.free_ports(1)
    program = databases.program_of(MYSQL)
    fill, serve = MYSQL.commands(program, folder / 'data', port)
    filled = subprocess.run(
        fill, user=user or None, cwd=folder, capture_output=True, text=True,
        stdin=subprocess.DEVNULL)
    if filled.returncode:
        raise processes.CloudError(
            '%s failed: %s' % (fill[0], filled.stderr[-500:]))
    url = sa.engine.make_url(MYSQL.url).set(port=port).render_as_string()
    process = state.start(processes.Process(
        'mariadb', [*serve, '--max-connections=500',
                    # The cloud is temporary: commits have to survive a kill
                    # -9, but not a power failure.
                    '--innodb-flush-log-at-trx-commit=2'],
        state.log('mariadb'), {}, port, folder=str(folder), user=user))
    process.wait(lambda: databases.answers(url), 'did not answer')
    return url


def _start_broker(state: statefile.State) -> str:
    folder, user = _folder(state, 'rabbitmq')
    port, distribution, epmd = loopback.free_ports(3)
    node = 'mirror-%s@localhost' % secrets.token_hex(4)
    environment = {
        'HOME': str(folder),
        'ERL_EPMD_ADDRESS': '127.0.0.1', 'ERL_EPMD_PORT': str(epmd),
        'RABBITMQ_NODENAME': node,
        'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
        'RABBITMQ_NODE_PORT': str(port),
        'RABBITMQ_DIST_PORT': str(distribution),
        'RABBITMQ_MNESIA_BASE': str(folder / 'mnesia'),
        'RABBITMQ_LOG_BASE': str(folder), 'RABBITMQ_LOGS': '-',
        'RABBITMQ_PID_FILE': str(folder / 'pid'),
        'RABBITMQ_GENERATED_CONFIG_DIR': str(folder / 'config'),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(folder / 'plugins'),
        # Use none of this machine's own configuration.
        'RABBITMQ_CONFIG_FILE': str(folder / 'rabbitmq'),
        'RABBITMQ_CONF_ENV_FILE': str(folder / 'env'),
        # Use the cloud's own epmd; Erlang would leave its own running.
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
            '-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}'}
    for name in ('rabbitmq.conf', 'env', 'plugins'):
        (folder / name).write_text('[].' if name == 'plugins' else '')
        if user:
            shutil.chown(folder / name, user)
    state.start(processes.Process(
        'epmd', [str(databases.which('epmd')), '-address', '127.0.0.1',
                 '-port', str(epmd)], state.log('epmd'), {}, epmd,
        folder=str(folder), user=user))
    process = state.start(processes.Process(
        'rabbitmq', [RABBIT_SCRIPTS + '/rabbitmq-server'],
        state.log('rabbitmq'), environment, port, folder=str(folder),
        user=user))
    process.wait(lambda: _broker_answers(port), 'did not answer')
    return 'rabbit://guest:guest@127.0.0.1:%d/' % port


def _folder(state: statefile.State, user: str) -> tuple[pathlib.Path, str]:
    """Create a folder for a server's data.

    :returns: the folder, and the account that runs the server; '' is the
        current user
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix='mirror-cloud-'))
    state.add(statefile.Resource('folder', '', str(folder)))
    if os.geteuid():
        return folder, ''
    # MariaDB refuses to run as root.
    user = databases.first_user(user, 'nobody')
    shutil.chown(folder, user)
    return folder, user


def _has_database(private: bool, clustered: bool) -> bool:
    if clustered:
        return galera.available()
    return bool(databases.program_of(MYSQL)) or (
        not private and _machine_database())


def _has_broker(private: bool) -> bool:
    # It is not in the PATH of every user.
    return pathlib.Path(RABBIT_SCRIPTS, 'rabbitmq-server').exists() or (
        not private and _machine_broker())


@functools.cache
def _machine_database() -> bool:
    return databases.answers(MYSQL.url)


@functools.cache
def _machine_broker() -> bool:
    """Check whether this machine's RabbitMQ can be used and managed."""
    if not _broker_answers(5672):
        return False
    try:
        _control('list_vhosts')
    except processes.CloudError:
        return False
    return True


def _broker_answers(port: int) -> bool:
    try:
        with amqp.Connection('127.0.0.1:%d' % port, connect_timeout=5):
            return True
    except (OSError, amqp.exceptions.AMQPError):
        return False


def _control(*command: str) -> str:
    """Run this machine's rabbitmqctl; return its output.

    :raises CloudError: when it fails, takes too long, or does not exist
    """
    program = databases.which('rabbitmqctl')
    if not program:
        raise processes.CloudError('there is no rabbitmqctl')
    try:
        done = subprocess.run(
            [program, '--quiet', *command], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as exc:
        raise processes.CloudError('rabbitmqctl %s took over %s s' % (
            command[0], SECONDS)) from exc
    if done.returncode:
        raise processes.CloudError('rabbitmqctl %s failed: %s' % (
            command[0], done.stderr[-500:]))
    return done.stdout
