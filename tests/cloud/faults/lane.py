# SPDX-License-Identifier: Apache-2.0
"""A nova with wires to each party, whose calls can be measured.

Lanes share keystone and placement, each through a wire of its own; everything
else is the lane's own: databases, journals, nova-apis and the agent.
"""

from collections import abc
import dataclasses
import pathlib
import sys
import threading
from typing import Any
from typing import Self

import requests
import sqlalchemy as sa

from tests.cloud import access
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud.faults import backbone
from tests.cloud.faults import moments
from tests.cloud.faults.plugin import outage_moments
from tests.cloud.faults import table
from tests.cloud.faults import wires
from tests.cloud import forks
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import seed
from tests.cloud import servers
from tests.cloud import services
from tests.cloud import sql
from tests.cloud import statefile

# Seconds; short enough to wait for what only the full sync repairs.
SYNC_INTERVAL = 5
STOCK, OURS, AGENT = 'stock', 'ours', 'agent'
PROGRAMS = STOCK, OURS, AGENT
# Stock nova reports the same moments: without the hook "mirror" its own
# mirroring stays in effect.
HOOKS = {STOCK: 'outer,inner', OURS: 'outer,mirror,inner', AGENT: 'mirror'}
_LISTENING = threading.Lock()
CELL = 'cell'
"""The first cell, with the hosts that calls are about."""


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to nova-api."""

    method: str
    path: str
    body: Any = None


class Lane(access.Access):
    """A nova of its own, with a wire to each party.

    :param placement: another port at which nova reaches placement, or 0
    :param forks_agent: whether the agent is forked from a process that has
        imported all of nova, and not started as a program
    """

    def __init__(self, shared: backbone.Backbone, cells: int = 2,
                 placement: int = 0, forks_agent: bool = True) -> None:
        self.number = next(shared.numbers)
        """Distinguishes the lanes of a run."""
        self.cells = {CELL: 'nova', **{
            'cell-%d' % cell: 'nova_%d' % cell
            for cell in range(2, cells + 1)}}
        """Each cell to its database."""
        self.placement_database = shared.config.database_url('placement')
        """The URL of the database of all lanes' placement."""
        self._forks_agent = forks_agent
        self.journal = ''
        """The kind of database that has the journal; see ``use``."""
        self._shared = shared
        self._prefix = '%slane_%d_' % (shared.prefix, self.number)
        directory = shared.state.directory / ('lane-%d' % self.number)
        for folder in ('log', 'lock', 'state', 'journal'):
            (directory / folder).mkdir(mode=0o700, parents=True)
        (directory / 'service_version').symlink_to(
            shared.state.directory / 'service_version')
        self._ports = loopback.named_ports(PROGRAMS)
        self.config = dataclasses.replace(
            shared.config, directory=directory,
            database='%s/%s' % (shared.mysql, self._prefix),
            ports={**shared.config.ports,
                   'placement': placement or shared.config.ports['placement'],
                   'nova-api-1': self._ports[OURS],
                   'agent-1': self._ports[AGENT]})
        self.listener = moments.Listener(directory / 'moments')
        self._create_databases()
        with _LISTENING:
            # A port is free until its wire listens.
            self.wires = self._wires()
        self._map_cells()
        self.processes = {name: self._process(name) for name in PROGRAMS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        for process in self.processes.values():
            process.kill()
        self.listener.close()

    def use(self, journal: str, options: config.Options) -> None:
        """Change the database of the journal: ``sqlite`` or another kind.

        Every process has to be started after that.

        :param options: of nova, in addition or instead; None removes one
        """
        self.journal = journal
        for process in self.processes.values():
            process.kill()
        for name in PROGRAMS:
            merged = {section: {**values, **options.get(section, {})}
                      for section, values in self._options(name).items()}
            config_files.write_nova(self.config, '%s.conf' % name, merged)

    def start(self, *names: str) -> None:
        """Start processes, again if they run."""
        for name in names:
            self.processes[name].kill()
            self.processes[name].start()
        for name in names:
            self.processes[name].wait_ready()

    def send(self, name: str, request: Request, timeout: float
             ) -> requests.Response:
        """Send a request of the administrator to a nova-api.

        It has a new connection: an idle one would be counted, or lost when
        nova-api is killed.
        """
        with loopback.session() as http:
            return http.request(
                request.method, self.processes[name].ready + request.path,
                json=request.body, timeout=timeout, headers={
                    'X-Auth-Token': self._session.get_token(),
                    'OpenStack-API-Version': 'compute 2.96'})

    def journal_url(self, direct: bool = True) -> str:
        """Return the URL of the journal."""
        if self.journal == 'sqlite':
            return 'sqlite:///%s' % self.journal_file
        url = (self.config.database_url('journal') if self.journal == 'mysql'
               else '%s/%sjournal' % (self._shared.postgresql, self._prefix))
        if direct:
            return url
        wire = self.wires['journal-%s' % self.journal]
        return sql.changed(url, port=wire.port)

    @property
    def journal_file(self) -> pathlib.Path:
        """Return the file of the journal on SQLite."""
        return self.config.directory / 'journal' / 'journal.sqlite'

    def wires_of(self, row: table.Row) -> list[str]:
        """Return the names of the wires to the bad party of a row."""
        return ([*self.cells][-row.bad:] if row.party == 'other-cell'
                else [row.party])

    def create_endpoint(self) -> str:
        """Create an endpoint of placement; return its region."""
        identity, region = self.identity(), self.config.directory.name
        service, = identity.get('/services?type=placement').json()['services']
        identity.post('/regions', json={'region': {'id': region}})
        identity.post('/endpoints', json={'endpoint': {
            'service_id': service['id'], 'interface': 'public',
            'region_id': region, 'url': self.config.url('placement')}})
        return region

    def move_endpoint(self, url: str) -> None:
        """Change the URL of the endpoint of placement."""
        identity = self.identity()
        endpoint, = identity.get('/endpoints?region_id=%s' % (
            self.config.directory.name)).json()['endpoints']
        identity.patch('/endpoints/%s' % endpoint['id'], json={
            'endpoint': {'url': url}})

    def seed(self, cell: str, nodes: abc.Sequence[seed.Node]) -> None:
        """Insert compute hosts into a cell."""
        number = [*self.cells].index(cell) + 1
        seed.compute_hosts(
            self.config, nodes, 'cell%d' % number, self.cells[cell])

    def _create_databases(self) -> None:
        shared = self._shared
        for name in ('nova_api', 'nova_cell0', 'journal',
                     *self.cells.values()):
            source = 'nova' if name in self.cells.values() else name
            _clone(shared.mysql, shared.prefix + source, self._prefix + name)
        if shared.postgresql:
            target = self._prefix + 'journal'
            shared.state.add(statefile.Resource(
                'database', shared.postgresql, target))
            sql.execute(
                shared.postgresql, 'CREATE DATABASE %s TEMPLATE %sjournal' % (
                    target, shared.prefix))

    def _wires(self) -> dict[str, wires.Wire]:
        """Create a wire to each party that has a socket."""
        mysql = sa.engine.make_url(self._shared.mysql).port
        targets = {name: self.config.ports[name]
                   for name in ('keystone', 'placement')}
        targets |= {name: mysql for name in (
            'api-database', 'journal-mysql', *self.cells)}
        if self._shared.postgresql:
            targets['journal-postgresql'] = sa.engine.make_url(
                self._shared.postgresql).port
        return {name: self._shared.wires.to(port)
                for name, port in targets.items()}

    def through(self, party: str, name: str) -> str:
        """Return the URL of a database of nova through a party's wire."""
        return sql.changed(
            self.config.database_url(name), port=self.wires[party].port)

    def _map_cells(self) -> None:
        for number, (party, database) in enumerate(
                self.cells.items(), start=1):
            # The first cell was created with the tables.
            sql.execute(
                self.config.database_url('nova_api'),
                "UPDATE cell_mappings SET database_connection = :url "
                "WHERE name = :name" if number == 1 else
                "INSERT INTO cell_mappings (uuid, name, transport_url, "
                "database_connection, disabled) "
                "SELECT UUID(), :name, transport_url, :url, 0 "
                "FROM cell_mappings WHERE name = 'cell1'",
                name='cell%d' % number, url=self.through(party, database))

    def _process(self, name: str) -> processes.Process:
        log = self.config.path('log/%s.log' % name)
        template, port = self._shared.template, self._ports[name]
        if name == AGENT:
            task = ['agent', '--config-file', self.config.path(
                '%s.conf' % name)]
            place = port, '%s/healthz' % self.config.url('agent-1')
            if self._forks_agent:
                return forks.Forked(
                    name, task, log, {}, *place, template=template)
            return processes.Process(
                name, programs.child(*task), log, {}, *place, tied=True)
        return forks.Forked(
            name, ['serve', 'nova.wsgi.osapi_compute', str(port),
                   str(services.THREADS)], log, {
                'OS_NOVA_CONFIG_DIR': str(self.config.directory),
                'OS_NOVA_CONFIG_FILES': '%s/etc/nova/api-paste.ini;%s.conf' % (
                    sys.prefix, name),
                outage_moments.SOCKET: self.config.path('moments')},
            port, 'http://127.0.0.1:%d/v2.1' % port, template=template)

    def _options(self, name: str) -> config.Options:
        return {
            'DEFAULT': {'host': name},
            'api_database': {
                'connection': self.through('api-database', 'nova_api')},
            # As in a nova-api of a deployment with several cells.
            'database': {'connection': self.config.database_url('nova_cell0')},
            'placement': {
                'auth_url': 'http://127.0.0.1:%d/v3' % (
                    self.wires['keystone'].port),
                'endpoint_override': 'http://127.0.0.1:%d' % (
                    self.wires['placement'].port)},
            'aggregate_mirror': {
                'hooks': HOOKS[name],
                'sync_interval': str(SYNC_INTERVAL), 'leader_lease': '3'},
            'aggregate_mirror_database': {
                'connection': self.journal_url(direct=False)}}


def _clone(address: str, source: str, target: str) -> None:
    """Clone a database: nova takes a minute to create its tables."""
    sql.execute(address, servers.MYSQL.create % target)
    with sql.engine('%s/%s' % (address, source)).connect() as connection:
        connection.execution_options(isolation_level='AUTOCOMMIT')

        def run(statement: str) -> sa.engine.CursorResult:
            # A percent sign is no parameter here.
            return connection.exec_driver_sql(statement.replace('%', '%%'))

        statements = {}
        for name, in run('SHOW TABLES').all():
            shown = run('SHOW CREATE TABLE `%s`' % name).one()
            statements[name] = shown[1]
        run('SET foreign_key_checks = 0')
        run('USE `%s`' % target)
        for name, statement in statements.items():
            run(statement)
            run('INSERT INTO `%s` SELECT * FROM `%s`.`%s`' % (
                name, source, name))
