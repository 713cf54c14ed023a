# SPDX-License-Identifier: Apache-2.0
"""What all lanes share: servers, keystone, placement and imported nova."""

from collections import abc
import contextlib
import dataclasses
import itertools
import pathlib
import secrets
import tempfile

from tests.cloud import config
from tests.cloud import config_files
from tests.cloud.faults import wires
from tests.cloud import forks
from tests.cloud import full
from tests.cloud import loopback
from tests.cloud import output
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import servers
from tests.cloud import services
from tests.cloud import small
from tests.cloud import statefile
from tests import databases

# The hooks that report each moment of a call.
PLUGIN = pathlib.Path(__file__).resolve().parent / 'plugin'


@dataclasses.dataclass(frozen=True)
class Backbone:
    """The servers and processes of all lanes.

    :param state: of everything that has to be removed
    :param postgresql: the URL of PostgreSQL, or '' if no lane uses it
    """

    state: statefile.State
    config: config.Config
    template: forks.Forker
    wires: wires.Wires
    mysql: str
    postgresql: str
    prefix: str
    numbers: abc.Iterator[int] = dataclasses.field(
        default_factory=lambda: itertools.count(1))
    """Numbers of lanes, each for one."""


@contextlib.contextmanager
def running(postgresql: bool, tell: output.Tell, token_seconds: int = 3600
            ) -> abc.Iterator[Backbone]:
    """Start what all lanes share; remove it at the end."""
    with tempfile.TemporaryDirectory(prefix='mirror-cloud-') as directory, \
            contextlib.ExitStack() as stack:
        state = statefile.State.create(pathlib.Path(directory))
        stack.callback(full.down, state)
        # Nova-apis and agents are forked from this process.
        with open(state.log('template'), 'ab') as log:
            template = forks.Forker(
                programs.child('template', str(PLUGIN)), stdout=log,
                stderr=log,
                env={**processes.clean_environment(), **services.NATIVE})
        stack.callback(template.close)
        other = databases.find('postgresql') if postgresql else ''
        tell('Starting MariaDB')
        database = servers.database(state)
        address, _slash, prefix = database.rpartition('/')
        # Thousands of tables are created faster without a file for each.
        databases.execute(address, 'SET GLOBAL innodb_file_per_table = OFF')
        state.config = config.Config(
            state.directory, database, secrets.token_hex(16),
            loopback.named_ports(config.SMALL), token_seconds=token_seconds)
        config_files.write(state.config)
        state.write()
        shared = Backbone(
            state, state.config, template, stack.enter_context(wires.Wires()),
            address, other, prefix)
        tell('Creating the tables, and starting keystone and placement')
        small.start(state, services.Services(state), stack,
                    lambda: _create_journals(shared))
        yield shared


def _create_journals(shared: Backbone) -> None:
    """Create the tables of the journal, which the lanes copy."""
    name = shared.prefix + 'journal'
    urls = {'mysql': '%s/%s' % (shared.mysql, name)}
    if shared.postgresql:
        shared.state.add(statefile.Resource(
            'database', shared.postgresql, name))
        databases.execute(shared.postgresql, 'CREATE DATABASE %s' % name)
        urls['postgresql'] = '%s/%s' % (shared.postgresql, name)
    for kind, url in urls.items():
        file = 'journal-%s.conf' % kind
        config_files.write_nova(shared.config, file, {
            'aggregate_mirror_database': {'connection': url}})
        task = processes.Process(
            'set-up-journal-%s' % kind, programs.installed(
                'nova-aggregate-mirror-manage', '--config-file',
                shared.config.path(file), 'db', 'sync'),
            shared.state.log('set-up-journal'), services.NATIVE, tied=True)
        task.start()
        task.finish()
