# SPDX-License-Identifier: Apache-2.0
"""A running cloud: its processes, and an administrator's access to it."""

from collections import abc
from concurrent import futures
import contextlib
import pathlib
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import sqlalchemy.exc

from tests.cloud import access
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import seed
from tests.cloud import services
from tests.cloud import statefile

AGENTS = ('agent-1', 'agent-2')
SEEDING_THREADS = 8
ERRORS = (processes.CloudError, exceptions.ClientException,
          sqlalchemy.exc.SQLAlchemyError, OSError)
"""Errors that stop a command on a cloud."""


class Cloud(access.Access):
    """A running cloud, as its state describes it, and one of its nova-apis."""

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
        """Return the administrator's adapter for a nova-api, at 2.96."""
        return self.rest('compute', default_microversion='2.96',
                         endpoint_override=url or self._url)

    def nodes(self) -> list[seed.Node]:
        """Ask nova for its compute nodes, sorted by name."""
        # A later version asks every host for its uptime.
        found = self.nova().get('/os-hypervisors/detail',
                                microversion='2.53').json()['hypervisors']
        nodes = [seed.Node(each['service']['host'],
                           each['hypervisor_hostname'], each['id'])
                 for each in found]
        return sorted(nodes, key=lambda node: node.name)

    def seed_hosts(self, hosts: abc.Sequence[str],
                   nodes_per_host: int = 1) -> list[seed.Node]:
        """Add compute hosts to nova, and their providers to placement."""
        nodes = list(seed.nodes(hosts, nodes_per_host))
        seed.compute_hosts(self.config, nodes)
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

    def start(self, *names: str) -> None:
        """Start those processes that do not run at once; wait for all."""
        stopped = [process for process in map(self.process, names)
                   if not process.alive()]
        for process in stopped:
            self.state.start(process)
        for process in stopped:
            process.wait_ready()

    def stop(self, *names: str) -> None:
        """Stop processes: connections to them are refused."""
        processes.stop(map(self.process, names))

    def kill(self, *names: str) -> None:
        """Kill processes at an arbitrary instruction."""
        for name in names:
            self.process(name).kill()

    def restart(self, *names: str) -> None:
        """Stop processes, and start them with their current configuration."""
        self.stop(*names)
        self.start(*names)

    def aggregates(self) -> dict[str, dict[str, Any]]:
        """Return nova's aggregates by name, as its API shows them."""
        found = self.nova().get('/os-aggregates').json()['aggregates']
        return {aggregate['name']: aggregate for aggregate in found}

    def delete_aggregates(self, prefix: str) -> None:
        """Empty and delete the aggregates whose names begin like this."""
        nova = self.nova()
        for name, aggregate in self.aggregates().items():
            if name.startswith(prefix):
                url = '/os-aggregates/%s' % aggregate['id']
                for host in aggregate['hosts']:
                    nova.post(url + '/action',
                              json={'remove_host': {'host': host}})
                nova.delete(url)

    def agent_lines(self) -> list[str]:
        """Return an agent's log lines, without times and process IDs."""
        log = pathlib.Path(self.state.log('agent-1'))
        return [line.partition(' nova_aggregate_mirror.')[2]
                for line in log.read_text(errors='replace').splitlines()
                if ' nova_aggregate_mirror.' in line]

    @contextlib.contextmanager
    def another_nova_api(self, name: str, options: config.Options,
                         server: programs.Server | None = None
                         ) -> abc.Iterator[adapter.Adapter]:
        """Run a further nova-api on the same databases."""
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
