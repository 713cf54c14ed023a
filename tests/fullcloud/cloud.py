# SPDX-License-Identifier: Apache-2.0
"""The full cloud: how it is started, used and removed."""

from collections.abc import Callable
import contextlib
import pathlib
import secrets
from typing import Self

from keystoneauth1 import adapter
from keystoneauth1 import exceptions

from tests.cloud import access
from tests.cloud import processes
from tests.cloud import seed
from tests.fullcloud import config
from tests.fullcloud import daemons
from tests.fullcloud import servers
from tests.fullcloud import services
from tests.fullcloud import state
from tests.fullcloud import tempest_run

PORTS = 8


class Cloud(access.Access):
    """A running full cloud, as its state file describes it.

    :param controller: 1 or 2; the controller whose nova-api is used
    """

    def __init__(self, kept: state.State, controller: int = 1) -> None:
        self.state = kept
        self.config = kept.config
        self.programs = pathlib.Path(kept.programs)
        self._url = (self.config.nova_url if controller == 1
                     else self.config.second_nova_url)

    def environment(self) -> dict[str, str]:
        """Return the clients' variables for the chosen controller."""
        found = super().environment()
        if self._url != self.config.nova_url:
            # The catalog has the first controller. With an override, nova's
            # client sends image requests there too.
            found |= {'OS_COMPUTE_ENDPOINT_OVERRIDE': self._url,
                      'NOVACLIENT_ENDPOINT_OVERRIDE': self._url}
        return found

    def nova(self) -> adapter.Adapter:
        """Return the administrator's adapter for its nova-api, at 2.96."""
        return self.rest('compute', default_microversion='2.96',
                         endpoint_override=self._url)

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

    def daemon(self, name: str) -> daemons.Daemon:
        """Return the process with a name."""
        return self.state.daemon(name)

    def start(self, name: str) -> None:
        """Start a process again, and wait until it is ready."""
        self.state.start(self.daemon(name)).wait_ready()


def up(directory: pathlib.Path, hosts: int, private: bool,
       tell: Callable[[str], None]) -> Cloud:
    """Start a cloud; remove it again if that fails.

    :param private: whether to start private servers instead of this machine's
    :param tell: is called with each progress message
    :raises FileExistsError: when the directory has other files in it
    :raises CloudError: when something does not start
    """
    kept = state.State.create(directory)
    try:
        _start(kept, hosts, private, tell)
    except BaseException:
        down(kept, keep_logs=True)
        raise
    return Cloud(kept)


def down(kept: state.State, keep_logs: bool = False) -> None:
    """Stop everything and remove it."""
    # The chaos lock is a file that is removed too: an incomplete state keeps a
    # new run from starting.
    kept.complete = False
    kept.write()
    own = {'mariadb', 'epmd', 'rabbitmq'}
    daemons.stop(each for each in kept.daemons if each.name not in own)
    private = [each for each in kept.daemons if each.name in own]
    for made in reversed(kept.made):
        # What is inside of a private server is removed with that server.
        if made.kind != 'folder' and not _in(made, private):
            servers.remove(made)
    daemons.stop(reversed(private))
    for made in kept.made:
        if made.kind == 'folder':
            servers.remove(made)
    kept.forget(keep_logs)


def _in(made: state.Made, private: list[daemons.Daemon]) -> bool:
    return any(':%s' % each.port in made.where for each in private)


def _start(kept: state.State, hosts: int, private: bool,
           tell: Callable[[str], None]) -> None:
    tell('Starting MariaDB and RabbitMQ, or making room in those that run')
    database = servers.database(kept, private)
    transport = servers.broker(kept, private)
    kept.config = _configure(kept.directory, database, transport, hosts)
    config.write(kept.config)
    kept.write()
    with contextlib.ExitStack() as stack:
        tell('Making the tables of all services')
        tasks = services.set_up(kept)
        for task in tasks.values():
            stack.callback(task.kill)
        tasks['keystone'].finish()
        keystone = kept.start(services.keystone(kept))
        keystone.wait_ready()
        running = Cloud(kept)
        _accounts(running)
        for name in ('placement', 'glance', 'journal', 'nova', 'neutron'):
            tasks[name].finish()
    tell('Starting placement, glance, neutron and nova')
    started = [kept.start(each) for make in (
        services.workers, services.apis, services.computes)
        for each in make(kept)]
    for each in started:
        each.wait_ready()
    started += [kept.start(each) for each in services.agents(kept)]
    tell('Waiting for the compute hosts')
    _wait_for_hosts(running)
    _furnish(running)
    _wait_for_network_agents(running)
    for each in started:
        each.wait_ready()
        each.check()
    kept.complete = True
    kept.write()


def _configure(directory: pathlib.Path, database: str, transport: str,
               hosts: int) -> config.FullConfig:
    (keystone, placement, nova, second_nova, metrics, second_metrics, glance,
     neutron) = processes.free_ports(PORTS)
    return config.FullConfig(
        directory=directory, database=database, transport_url=transport,
        password=secrets.token_hex(16), hosts=hosts, keystone_port=keystone,
        placement_port=placement, nova_port=nova, second_nova_port=second_nova,
        metrics_port=metrics, second_metrics_port=second_metrics,
        glance_port=glance, neutron_port=neutron)


def _accounts(running: Cloud) -> None:
    seed.accounts(running.identity(), running.config, others=(
        ('glance', 'image', running.config.glance_url),
        ('neutron', 'network', running.config.neutron_url)),
        # Neutron creates nova aggregates, and nova binds ports.
        roles=('service', 'admin'))


def _wait_for_hosts(running: Cloud) -> None:
    """Wait until nova and placement have all compute nodes."""
    full = running.config
    wanted = {node for host in full.host_names()
              for node in full.nodes_of(host)}
    nova, placement = running.nova(), running.placement()

    def there() -> bool:
        # Check all processes: a host waits for ever if another process has
        # died.
        for daemon in running.state.daemons:
            daemon.check()
        with contextlib.suppress(exceptions.HttpError):
            nodes = {each['hypervisor_hostname'] for each in nova.get(
                '/os-hypervisors').json()['hypervisors']}
            providers = {each['name'] for each in placement.get(
                '/resource_providers').json()['resource_providers']}
            return wanted <= nodes and wanted <= providers
        return False

    for host in full.host_names():
        running.daemon(host).wait(there, 'did not report its nodes')


def _wait_for_network_agents(running: Cloud) -> None:
    """Wait until neutron has live agents on all hosts."""
    wanted = set(running.config.host_names())
    networks = running.rest('network')

    def there() -> bool:
        with contextlib.suppress(exceptions.HttpError):
            return wanted <= {
                each['host'] for each
                in networks.get('/v2.0/agents').json()['agents']
                if each['alive']}
        return False

    running.daemon('network-agents').wait(there, 'did not report its agents')


def _furnish(running: Cloud) -> None:
    """Create what servers need: a flavor, an image and a network."""
    running.nova().post('/flavors', json={'flavor': {
        'name': 'tiny', 'vcpus': 1, 'ram': 64, 'disk': 1}})
    images = running.rest('image')
    image = images.post('/v2/images', json={
        'name': 'empty', 'disk_format': 'raw', 'container_format': 'bare',
        'visibility': 'public'}).json()['id']
    images.put('/v2/images/%s/file' % image, data=b'\0' * 1024, headers={
        'Content-Type': 'application/octet-stream'})
    networks = running.rest('network')
    network = networks.post('/v2.0/networks', json={'network': {
        'name': 'public', 'shared': True,
        'provider:network_type': 'flat',
        'provider:physical_network': config.PUBLIC}}).json()['network']['id']
    networks.post('/v2.0/subnets', json={'subnet': {
        'network_id': network, 'ip_version': 4, 'cidr': '10.1.0.0/16',
        'enable_dhcp': False, 'name': 'public'}})
    tempest_run.make_accounts(running)
    tempest_run.configure(running, running.config.directory / 'tempest')
