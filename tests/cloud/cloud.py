# SPDX-License-Identifier: Apache-2.0
"""A running cloud: its processes, and an administrator's access to it."""

from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
import contextlib
import pathlib
from typing import Self

from keystoneauth1 import adapter

from tests.cloud import access
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import seed
from tests.cloud import services
from tests.cloud import statefile

SEEDING_THREADS = 8


class Cloud(access.Access):
    """A running cloud, as its state describes it.

    :param controller: the number of the controller whose nova-api is used
    """

    config: config.Config

    def __init__(self, state: statefile.State, controller: int = 1) -> None:
        assert state.config is not None
        self.state = state
        self.config = state.config
        self.programs = pathlib.Path(state.programs)
        self._url = self.config.nova_url(controller)

    def environment(self) -> dict[str, str]:
        """Return the clients' variables for the chosen controller."""
        found = super().environment()
        if self._url != self.config.nova_url():
            # The catalog has the first controller. With an override, nova's
            # client sends image requests there too.
            found |= {'OS_COMPUTE_ENDPOINT_OVERRIDE': self._url,
                      'NOVACLIENT_ENDPOINT_OVERRIDE': self._url}
        return found

    def nova(self, url: str = '') -> adapter.Adapter:
        """Return the administrator's adapter for a nova-api, at 2.96.

        :param url: its endpoint; by default the chosen controller's
        """
        return self.rest('compute', default_microversion='2.96',
                         endpoint_override=url or self._url)

    def through(self, controller: int) -> Self:
        """Return the same cloud as seen through a controller."""
        found = type(self)(self.state, controller)
        found.forked = self.forked
        return found

    def nodes(self) -> list[seed.Node]:
        """Ask nova for its compute nodes, sorted by name."""
        # A later version asks every host for its uptime.
        found = self.nova().get('/os-hypervisors/detail',
                                microversion='2.53').json()['hypervisors']
        return sorted((seed.Node(each['service']['host'],
                                 each['hypervisor_hostname'], each['id'])
                       for each in found), key=lambda node: node.name)

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

    def process(self, name: str) -> processes.Process:
        """Return the process with a name."""
        return self.state.process(name)

    def start(self, name: str) -> None:
        """Start a process that does not run, and wait until it is ready."""
        self.state.start(self.process(name)).wait_ready()

    def stop(self, name: str) -> None:
        """Stop a process: connections to it are refused."""
        self.process(name).stop()

    def kill(self, name: str) -> None:
        """Kill a process at an arbitrary instruction."""
        self.process(name).kill()

    def restart(self, name: str) -> None:
        """Stop a process and start it with its current configuration."""
        self.stop(name)
        self.start(name)

    def placement_requests(self) -> int:
        """Count the requests that placement has answered since set-up."""
        log = pathlib.Path(self.state.log('placement'))
        return log.read_text(errors='replace').count('placement.requestlog')

    def agent_lines(self) -> list[str]:
        """Return an agent's log lines, without times and process IDs."""
        log = pathlib.Path(self.state.log('agent-1'))
        return [line.partition(' nova_aggregate_mirror.')[2]
                for line in log.read_text(errors='replace').splitlines()
                if ' nova_aggregate_mirror.' in line]

    @contextlib.contextmanager
    def another_nova_api(self, name: str, options: config.Options,
                         server: programs.Server | None = None
                         ) -> Iterator[adapter.Adapter]:
        """Run a further nova-api on the same databases.

        :param options: added to its nova.conf
        :param server: see ``services.Services``
        """
        port, = loopback.free_ports(1)
        config_files.write_nova(self.config, '%s.conf' % name, options)
        process = services.Services(self.state, server).another_nova_api(
            name, port, '%s.conf' % name)
        try:
            process.start()
            process.wait_ready()
            yield self.nova(process.ready)
        finally:
            process.stop()
