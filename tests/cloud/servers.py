# SPDX-License-Identifier: Apache-2.0
"""The cloud's own MariaDB and RabbitMQ, which keep their data in folders.

Everything is recorded in the state before it is created, so that it can be
removed.
"""

import os
import pathlib
import secrets
import shutil
import tempfile

import amqp

from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import sql
from tests.cloud import statefile
from tests import databases

MYSQL = databases.SERVERS['mysql']
NAMES = ('keystone', 'placement', 'glance', 'neutron', 'nova', 'nova_api',
         'nova_cell0', 'journal')
PREFIX = 'mirror_cloud_'
RABBIT = 'rabbitmq-server'
# Debian's rabbitmq-server in the PATH would change to another user.
RABBIT_PROGRAM = pathlib.Path('/usr/lib/rabbitmq/bin/rabbitmq-server')


def install() -> None:
    """Install the servers that this machine does not have."""
    missing = _missing()
    if not missing:
        return
    if os.geteuid():
        raise databases.Unavailable(
            'This machine has no %s. Let root install: apt-get install '
            '--no-install-recommends %s' % (
                ' and no '.join(missing), ' '.join(missing)))
    print('Installing', ' and '.join(missing), flush=True)
    databases.install(missing, lambda: not _missing())
    if _missing():
        raise databases.Unavailable(
            'apt-get could not install %s; do it by hand to see why'
            % ' and '.join(missing))


def _missing() -> list[str]:
    """Return the packages of servers that are not installed."""
    # The second one is not in the PATH of every user.
    installed = {MYSQL.package: databases.program_of(MYSQL),
                 RABBIT: RABBIT_PROGRAM.exists()}
    return [package for package, found in installed.items() if not found]


def database(state: statefile.State) -> str:
    """Start MariaDB and create the databases; return how their URLs begin."""
    folder, user = _folder(state, MYSQL.user)
    port, = loopback.free_ports(1)
    program = databases.program_of(MYSQL)
    fill, serve = MYSQL.commands(program, folder / 'data', port)
    if failure := databases.failure(fill, user, folder):
        raise processes.CloudError(failure)
    address = sql.changed(MYSQL.url, port=port)
    process = state.start(processes.Process(
        'mariadb', [*serve, '--max-connections=500',
                    # The cloud is temporary: commits have to survive a kill
                    # -9, but not a power failure.
                    '--innodb-flush-log-at-trx-commit=2'],
        state.log('mariadb'), {}, port, folder=str(folder), user=user))
    process.wait(lambda: databases.answers(address), 'did not answer')
    prefix = PREFIX + secrets.token_hex(4) + '_'
    for name in NAMES:
        databases.execute(address, MYSQL.create % (prefix + name))
    return '%s/%s' % (address, prefix)


def remove(resource: statefile.Resource) -> None:
    """Remove a recorded object, if it still exists."""
    if resource.kind == 'database':
        databases.execute(
            resource.where, 'DROP DATABASE IF EXISTS ' + resource.name)
    else:
        shutil.rmtree(resource.name, ignore_errors=True)


def broker(state: statefile.State) -> str:
    """Start RabbitMQ; return its URL for oslo.messaging."""
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
    argv = [str(databases.which('epmd')), '-address', '127.0.0.1',
            '-port', str(epmd)]
    state.start(processes.Process('epmd', argv, state.log('epmd'), {}, epmd,
                                  folder=str(folder), user=user))
    process = state.start(processes.Process(
        'rabbitmq', [str(RABBIT_PROGRAM)], state.log('rabbitmq'), environment,
        port, folder=str(folder), user=user))
    process.wait(lambda: _broker_answers(port), 'did not answer')
    return 'rabbit://guest:guest@127.0.0.1:%d/' % port


def _folder(state: statefile.State, user: str) -> tuple[pathlib.Path, str]:
    """Create a folder for a server's data; see ``databases.hand_over``."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='mirror-cloud-'))
    state.add(statefile.Resource('folder', '', str(folder)))
    return folder, databases.hand_over(folder, user)


def _broker_answers(port: int) -> bool:
    try:
        with amqp.Connection('127.0.0.1:%d' % port,
                             connect_timeout=loopback.TIMEOUT):
            return True
    except (OSError, amqp.exceptions.AMQPError):
        return False
