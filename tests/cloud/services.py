# SPDX-License-Identifier: Apache-2.0
"""The processes of a cloud: the services, and tasks of their set-up."""

import functools
import json
import sys

from tests.cloud import config
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import statefile

THREADS = 4
WORKERS = 2
# Nova's own commands still default to eventlet.
NATIVE = {'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'}


class Services:
    """The processes of a cloud, not yet started.

    In the small profile they end with the process that started them.

    :param server: serves REST APIs; by default waitress in the small profile,
        and uwsgi with two processes in the full profile
    """

    def __init__(self, state: statefile.State,
                 server: programs.Server | None = None) -> None:
        self._state = state
        self._config = state.config
        self._path = self._config.path
        self._server = server or (
            programs.uwsgi if self._config.is_full else programs.waitress)

    def set_up(self) -> dict[str, processes.Process]:
        """Start the set-up of all services in parallel: tables and keys."""
        tasks = {
            'keystone': programs.child(
                'keystone', self._path('keystone.conf'), self._config.password,
                self._config.auth_url, config.REGION),
            'nova': programs.child(
                'nova', self._config.nova_conf, self._path('cell0.conf'),
                self._config.database_url('nova_cell0'),
                self._path('service_version')),
            'placement': programs.child(
                'placement', self._path('placement.conf'))}
        if self._config.is_full:
            tasks |= {
                'neutron': programs.installed(
                    'neutron-db-manage', '--config-file',
                    self._path('neutron.conf'), 'upgrade', 'heads'),
                'glance': programs.installed(
                    'glance-manage', '--config-file',
                    self._path('glance-api.conf'), 'db_sync'),
                'journal': programs.installed(
                    'nova-aggregate-mirror-manage', '--config-file',
                    self._config.nova_conf, 'db', 'sync')}
        started = {name: self._process('set-up-%s' % name, argv, NATIVE)
                   for name, argv in tasks.items()}
        for each in started.values():
            each.start()
        return started

    def keystone(self) -> processes.Process:
        """Return keystone, the first service: the others need its tokens."""
        return self._serve(
            'keystone', 'keystone.wsgi.api', self._config.auth_url, {
                'OS_KEYSTONE_CONFIG_DIR': self._path('.'),
                'OS_KEYSTONE_CONFIG_FILES': self._path('keystone.conf')},
            # It caches in the memory of its process. Without a cache it takes
            # a quarter of all processor time.
            1 if self._config.is_full else None)

    def placement(self) -> processes.Process:
        """Return placement."""
        return self._serve(
            'placement', 'placement.wsgi.api', self._config.url('placement'),
            {'OS_PLACEMENT_CONFIG_DIR': self._path('.')},
            # Threads that write to an SQLite file lock each other out.
            1 if self._config.database == 'sqlite' else None)

    def nova_api(self, number: int) -> processes.Process:
        """Return the nova-api of a controller."""
        return self.another_nova_api(
            'nova-api-%d' % number, self._config.ports['nova-api-%d' % number],
            'controller-%d.conf' % number if self._config.is_full
            else 'nova.conf')

    def another_nova_api(self, name: str, port: int, conf: str
                         ) -> processes.Process:
        """Return a nova-api with a port and a configuration file."""
        server = self._server
        if server is programs.uwsgi:
            # Longer than keystone's timeout: when keystone hangs, as it may
            # without its database, nova still gives its own answer.
            server = functools.partial(programs.uwsgi, timeout=90)
        return self._process(
            name, server('nova.wsgi.osapi_compute', port, self._count()), {
                'OS_NOVA_CONFIG_DIR': self._path('.'),
                # The paste configuration has to come first.
                'OS_NOVA_CONFIG_FILES': '%s/etc/nova/api-paste.ini;%s' % (
                    sys.prefix, conf)},
            port, 'http://127.0.0.1:%d/v2.1' % port)

    def agent(self, number: int) -> processes.Process:
        """Return this package's agent of a controller."""
        name = 'agent-%d' % number
        conf = ('controller-%d.conf' % number if self._config.is_full
                else 'nova.conf')
        return self._process(
            name, programs.child('agent', '--config-file', self._path(conf)),
            port=self._config.ports[name],
            ready='%s/healthz' % self._config.url(name))

    def glance(self) -> processes.Process:
        """Return glance."""
        return self._serve(
            'glance', 'glance.wsgi.api', self._config.url('glance'),
            {'OS_GLANCE_CONFIG_DIR': self._path('.')})

    def neutron(self) -> processes.Process:
        """Return neutron's REST API."""
        return self._serve(
            'neutron', 'neutron.wsgi.api', self._config.url('neutron'),
            {'OS_NEUTRON_CONFIG_DIR': self._path('.'),
             'OS_NEUTRON_CONFIG_FILES': 'neutron.conf'},
            # Several workers would report addresses of segments to placement
            # in any order, which placement refuses and neutron does not retry.
            1)

    def workers(self) -> list[processes.Process]:
        """Return nova's and neutron's processes without a REST API."""
        conf = ('--config-file', self._config.nova_conf)
        neutron = self._path('neutron.conf')
        racks = {host: [config.PUBLIC, self._config.rack_of(host)]
                 for host in self._config.host_names()}
        return [
            self._process('conductor', programs.installed(
                'nova-conductor', *conf)),
            self._process('scheduler', programs.installed(
                'nova-scheduler', *conf)),
            self._process('neutron-rpc', programs.installed(
                'neutron-rpc-server', '--config-file', neutron)),
            self._process('network-agents', programs.script(
                'fakes.py', 'network_agents', neutron, json.dumps(racks)))]

    def computes(self) -> list[processes.Process]:
        """Return a nova-compute for each host."""
        found = []
        for host in self._config.host_names():
            nodes = self._config.nodes_of(host)
            several = nodes if nodes != [host] else []
            argv = programs.script(
                'fakes.py', 'compute', self._path('%s.conf' % host),
                str(self._config.refusal), *several)
            found.append(self._process(host, argv))
        return found

    def _serve(self, name: str, module: str, ready: str,
               environment: dict[str, str], count: int | None = None
               ) -> processes.Process:
        port = self._config.ports[name]
        return self._process(
            name, self._server(module, port, count or self._count()),
            environment, port, ready)

    def _count(self) -> int:
        return WORKERS if self._config.is_full else THREADS

    def _process(self, name: str, argv: list[str],
                 environment: dict[str, str] | None = None, port: int = 0,
                 ready: str = '') -> processes.Process:
        return processes.Process(
            name, argv, self._state.log(name), environment or {}, port, ready,
            tied=not self._config.is_full)
