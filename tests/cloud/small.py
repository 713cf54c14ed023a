# SPDX-License-Identifier: Apache-2.0
"""The small profile: keystone, placement and nova-api, and no compute host."""

from collections import abc
import contextlib
import pathlib
import secrets
import sqlite3
import tempfile

from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import programs
from tests.cloud import seed
from tests.cloud import services
from tests.cloud import statefile


@contextlib.contextmanager
def running(database: str = 'sqlite', server: programs.Server | None = None,
            nova_options: config.Options | None = None,
            tell: abc.Callable[[str], object] = bool
            ) -> abc.Iterator[cloud.Cloud]:
    """Start a new cloud in a temporary directory; remove it at the end.

    Nova has no compute hosts until ``seed_hosts`` is called, and the agent is
    not started.
    """
    def start_nova() -> None:
        tell('Starting nova')
        state.start(parts.nova_api(1))

    with tempfile.TemporaryDirectory(prefix='mirror-cloud-') as directory, \
            contextlib.ExitStack() as stack:
        state = statefile.State.create(pathlib.Path(directory))
        state.config = config.Config(
            state.directory, database, secrets.token_hex(16),
            loopback.named_ports(config.SMALL), nova_options or {})
        config_files.write(state.config)
        stack.callback(lambda: [each.kill() for each in state.processes])
        if database == 'sqlite':
            _allow_writes(state.config)
        parts = services.Services(state, server)
        started = start(state, parts, stack, start_nova, tell)
        tell('Waiting for nova')
        state.process('nova-api-1').wait_ready()
        state.processes.append(parts.agent(1))
        state.write()
        yield started


def _allow_writes(cloud: config.Config) -> None:
    """Let nova's services write concurrently: open reads prevent it else."""
    for name in ('keystone', 'nova_api', 'nova', 'nova_cell0'):
        with contextlib.closing(sqlite3.connect(
                cloud.path('%s.sqlite' % name))) as connection:
            connection.execute('PRAGMA journal_mode = WAL')


def start(state: statefile.State, parts: services.Services,
          stack: contextlib.ExitStack, then: abc.Callable[[], object],
          tell: abc.Callable[[str], object] = bool) -> cloud.Cloud:
    """Start keystone and placement; call ``then`` when nova has its tables.

    What takes time runs in parallel.
    """
    tell('Creating the tables of keystone, placement and nova')
    tasks = parts.set_up()
    for task in tasks.values():
        stack.callback(task.kill)
    tasks['placement'].finish()
    tell('Starting placement')
    placement = state.start(parts.placement())
    tasks['keystone'].finish()
    tell('Starting keystone')
    keystone = state.start(parts.keystone())
    tasks['nova'].finish()
    then()
    keystone.wait_ready()
    tell('Creating the accounts in keystone')
    running = cloud.Cloud(state)
    seed.accounts(running.identity(), running.config)
    placement.wait_ready()
    return running
