# SPDX-License-Identifier: Apache-2.0
"""A real keystone, placement and nova-api on the loopback interface."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
import contextlib
import pathlib
import secrets
import signal
import sqlite3
import sys
import tempfile
from types import TracebackType
from typing import Self

from keystoneauth1 import adapter

from tests.cloud import access
from tests.cloud import config
from tests.cloud import processes
from tests.cloud import seed

SEEDING_THREADS = 8

Server = Callable[[str, int, int], Sequence[str]]


class Cloud(access.Access):
    """Three new real services in one temporary directory.

    Enter it to start the cloud, leave it to stop and remove everything. Nova
    has no compute hosts until ``seed_hosts`` is called.

    :param database: see ``config.Config``
    :param server: returns the command line that serves a WSGI module on a port
        with a number of threads or processes
    :param nova_options: added to nova.conf, by section and option
    """

    def __init__(self, database: str = 'sqlite',
                 server: Server = processes.waitress,
                 nova_options: config.Options | None = None) -> None:
        self._stack = contextlib.ExitStack()
        self._database = database
        self._server = server
        self._nova_options = nova_options or {}

    def __enter__(self) -> Self:
        with self._stack:
            directory = self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix='mirror-cloud-'))
            keystone, placement, nova, metrics = processes.free_ports(4)
            self.config = config.Config(
                pathlib.Path(directory), self._database,
                secrets.token_hex(16), keystone, placement, nova, metrics,
                self._nova_options)
            config.write(self.config)
            self._start()
            # Everything runs: from here on, __exit__ stops it.
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._stack.close()

    @property
    def nova_conf(self) -> str:
        return self.config.path('nova.conf')

    def seed_hosts(self, hosts: Sequence[str],
                   nodes_per_host: int = 1) -> list[seed.Node]:
        """Add compute hosts to nova, and their providers to placement."""
        nodes = list(seed.nodes(hosts, nodes_per_host))
        version = (self.config.directory / 'service_version').read_text()
        seed.compute_hosts(self.config, int(version), nodes)
        placement = self.placement()

        def create(node: seed.Node) -> None:
            placement.post('/resource_providers',
                           json={'name': node.name, 'uuid': node.uuid})

        with futures.ThreadPoolExecutor(SEEDING_THREADS) as pool:
            # This raises the first exception, if any.
            list(pool.map(create, nodes))
        return nodes

    def placement_requests(self) -> int:
        """Count the requests that placement has answered since set-up."""
        log = pathlib.Path(self._placement.log).read_text(errors='replace')
        return log.count('placement.requestlog')

    def placement_cpu_seconds(self) -> float:
        """Return the processor time used by placement since its start."""
        return self._placement.cpu_seconds()

    def start_placement(self) -> None:
        """Start placement, and wait until it answers."""
        self._placement.start()
        self._placement.wait_ready(self.config.placement_url)

    def stop_placement(self) -> None:
        """Stop placement: connections to it are refused."""
        self._placement.stop()

    def start_nova_api(self) -> None:
        """Start nova-api, and wait until it answers."""
        self._nova_api.start()
        self._nova_api.wait_ready(self.config.nova_url)

    def stop_nova_api(self) -> None:
        """Stop nova-api: connections to it are refused."""
        self._nova_api.stop()

    def restart_nova_api(self) -> None:
        """Stop nova-api and start it again with its current configuration."""
        self.stop_nova_api()
        self.start_nova_api()

    def kill_nova_api(self) -> None:
        """Kill nova-api at an arbitrary instruction."""
        self._nova_api.kill()

    def start_agent(self) -> None:
        """Start the package's agent, and wait until it is healthy."""
        self._agent.start()
        self._agent.wait_ready(
            'http://127.0.0.1:%s/healthz' % self.config.metrics_port)

    def stop_agent(self) -> None:
        """Stop the agent as systemd would."""
        self._agent.stop()

    @property
    def agent_runs(self) -> bool:
        return self._agent.running

    def reload_agent(self) -> None:
        """Make the agent read its configuration again."""
        self._agent.send(signal.SIGHUP)

    def agent_lines(self) -> list[str]:
        """Return the agent's log lines, without times and process IDs."""
        log = pathlib.Path(self._agent.log).read_text(errors='replace')
        return [line.partition(' nova_aggregate_mirror.')[2]
                for line in log.splitlines()
                if ' nova_aggregate_mirror.' in line]

    @contextlib.contextmanager
    def another_nova_api(self, name: str, options: config.Options,
                         server: Server | None = None
                         ) -> Iterator[adapter.Adapter]:
        """Run a further nova-api on the same databases.

        :param options: added to its nova.conf
        :param server: serves it instead of the cloud's server
        """
        port, = processes.free_ports(1)
        config.write_nova(self.config, '%s.conf' % name, options)
        process = self._serve_nova(name, '%s.conf' % name, port, server)
        url = self.config.nova_url.replace(str(self.config.nova_port),
                                           str(port))
        try:
            process.start()
            process.wait_ready(url)
            yield self.rest('compute', default_microversion='2.41',
                            endpoint_override=url)
        finally:
            process.stop()

    def _start(self) -> None:
        path, auth_url = self.config.path, self.config.auth_url
        # Threads that write to an SQLite file lock each other out.
        threads = 1 if self.config.database == 'sqlite' else 4
        if self.config.database == 'sqlite':
            # A keystone of 2024 leaves reads open, and then cannot write
            # without a write-ahead log.
            with contextlib.closing(sqlite3.connect(
                    path('keystone.sqlite'))) as connection:
                connection.execute('PRAGMA journal_mode = WAL')
        keystone = self._serve('keystone', 'keystone.wsgi.api',
                               self.config.keystone_port, 4, {
                                   'OS_KEYSTONE_CONFIG_DIR': path('.'),
                                   'OS_KEYSTONE_CONFIG_FILES':
                                       path('keystone.conf')})
        self._placement = self._serve(
            'placement', 'placement.wsgi.api', self.config.placement_port,
            threads, {'OS_PLACEMENT_CONFIG_DIR': path('.')})
        self._nova_api = self._serve_nova(
            'nova-api', 'nova.conf', self.config.nova_port)
        self._agent = self._process(
            'agent', processes.child('agent', self.nova_conf), {})
        set_up_placement = self._task('placement', path('placement.conf'))
        set_up_keystone = self._task(
            'keystone', path('keystone.conf'), self.config.password, auth_url,
            config.REGION)
        set_up_nova = self._task(
            'nova', self.nova_conf, path('cell0.conf'),
            self.config.database_url('nova_cell0'), path('service_version'))
        # Start everything that takes time in parallel.
        set_up_placement.finish()
        self._placement.start()
        set_up_keystone.finish()
        keystone.start()
        set_up_nova.finish()
        self._nova_api.start()
        keystone.wait_ready(auth_url)
        seed.accounts(self.identity(), self.config)
        self._placement.wait_ready(self.config.placement_url)
        self._nova_api.wait_ready(self.config.nova_url)

    def _serve_nova(self, name: str, conf: str, port: int,
                    server: Server | None = None) -> processes.Process:
        return self._serve(name, 'nova.wsgi.osapi_compute', port, 4, {
            'OS_NOVA_CONFIG_DIR': self.config.path('.'),
            # The paste configuration has to come first.
            'OS_NOVA_CONFIG_FILES':
                '%s/etc/nova/api-paste.ini;%s' % (sys.prefix, conf)}, server)

    def _serve(self, name: str, module: str, port: int, threads: int,
               environment: dict[str, str], server: Server | None = None
               ) -> processes.Process:
        return self._process(
            name, (server or self._server)(module, port, threads), environment)

    def _task(self, name: str, *argv: str) -> processes.Process:
        process = self._process(
            'set-up of %s' % name, processes.child(name, *argv),
            # Nova's own commands still default to eventlet, which does not fit
            # a fork.
            {'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'})
        process.start()
        return process

    def _process(self, name: str, argv: Sequence[str],
                 environment: dict[str, str]) -> processes.Process:
        log = self.config.path('log/%s.log' % name.replace(' ', '-'))
        process = processes.Process(name, argv, log, environment)
        self._stack.callback(process.kill)
        return process
