# SPDX-License-Identifier: Apache-2.0
"""The full profile: every common service, two controllers, compute hosts."""

from collections import abc
import contextlib
import pathlib
import secrets

from keystoneauth1 import exceptions

from tests.cloud import access
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import seed
from tests.cloud import servers
from tests.cloud import services
from tests.cloud import statefile
from tests import patience

# A check takes processor time from the processes that start.
POLL = 0.5
# Stopped last: the other processes use them.
SERVERS = {'mariadb', 'epmd', 'rabbitmq'}


def up(directory: pathlib.Path, hosts: int, tell: abc.Callable[[str], None]
       ) -> cloud.Cloud:
    """Start a cloud; remove it again if that fails."""
    state = statefile.State.create(directory)
    try:
        _start(state, hosts, tell)
    except BaseException:
        down(state, keep_logs=True)
        raise
    return cloud.Cloud(state)


def down(state: statefile.State, keep_logs: bool = False) -> None:
    """Stop everything and remove it."""
    # The lock of runs is a file that is removed too: an incomplete state keeps
    # a new run from starting.
    state.complete = False
    state.write()
    processes.stop(each for each in state.processes
                   if each.name not in SERVERS)
    processes.stop(reversed([each for each in state.processes
                             if each.name in SERVERS]))
    for resource in reversed(state.resources):
        servers.remove(resource)
    state.forget(keep_logs)


def _start(state: statefile.State, hosts: int, tell: abc.Callable[[str], None]
           ) -> None:
    tell('Starting MariaDB and RabbitMQ')
    state.config = config.Config(
        state.directory, servers.database(state), secrets.token_hex(16),
        loopback.named_ports(config.FULL),
        transport_url=servers.broker(state), hosts=hosts)
    config_files.write(state.config)
    state.write()
    parts = services.Services(state)
    with contextlib.ExitStack() as stack:
        tell('Creating the tables of all services')
        tasks = parts.set_up()
        for task in tasks.values():
            stack.callback(task.kill)
        tasks['keystone'].finish()
        state.start(parts.keystone()).wait_ready()
        running = cloud.Cloud(state)
        url = running.config.url
        seed.accounts(running.identity(), running.config, others=(
            ('glance', 'image', url('glance')),
            ('neutron', 'network', url('neutron'))),
            # Neutron creates nova aggregates, and nova binds ports.
            roles=('service', 'admin'))
        for name in ('placement', 'glance', 'journal', 'nova', 'neutron'):
            tasks[name].finish()
    tell('Starting placement, glance, neutron and nova')
    started = [state.start(each) for each in (
        *parts.workers(), parts.placement(), parts.glance(), parts.neutron(),
        *map(parts.nova_api, state.config.controllers), *parts.computes())]
    for each in started:
        each.wait_ready()
    started += [state.start(parts.agent(number))
                for number in state.config.controllers]
    # Nothing of this needs a compute host; they start meanwhile.
    _furnish(running)
    tell('Waiting for the compute hosts')
    _wait_for_hosts(running)
    for each in started:
        each.wait_ready()
        each.check()
    state.complete = True
    state.write()


def _wait_for_hosts(running: cloud.Cloud) -> None:
    """Wait until nova, placement and neutron have all compute hosts."""
    names = running.config.host_names()
    lost: list[str] = []

    def complete() -> bool:
        # Check all processes: a host waits for ever if another process has
        # died.
        for process in running.state.processes:
            process.check()
        lost[:] = missing(running, names)
        return not lost

    if not patience.wait(complete, processes.START_TIMEOUT, POLL):
        logs = [running.process(name).log
                for name in (lost[0], 'network-agents')]
        raise processes.CloudError(
            '%s did not report within %s s; %s\nThe whole logs: %s' % (
                ', '.join(lost), processes.START_TIMEOUT,
                '\n'.join(map(processes.tail, logs)), ', '.join(logs)))


def missing(running: cloud.Cloud, hosts: abc.Sequence[str]) -> list[str]:
    """Return the hosts that nova, placement or neutron does not have yet."""
    with contextlib.suppress(exceptions.HttpError):
        answer = running.nova().get('/os-hypervisors').json()
        hypervisors = {each['hypervisor_hostname']
                       for each in answer['hypervisors']}
        answer = running.placement().get('/resource_providers').json()
        providers = {each['name'] for each in answer['resource_providers']}
        answer = running.rest('network').get('/v2.0/agents').json()
        alive = {each['host'] for each in answer['agents'] if each['alive']}
        nodes = hypervisors & providers
        return [host for host in hosts if host not in alive
                or not nodes.issuperset(running.config.nodes_of(host))]
    return [*hosts]


def _furnish(running: cloud.Cloud) -> None:
    """Create what servers need: a flavor, an image and a network."""
    running.nova().post('/flavors', json={'flavor': {
        'id': 'tiny', 'name': 'tiny', 'vcpus': 1, 'ram': 64, 'disk': 1}})
    running.fill_image(running.create_image(name='empty', visibility='public'))
    networks = running.rest('network')
    network = access.create(networks, '/v2.0/networks', network={
        'name': 'public', 'shared': True, 'provider:network_type': 'flat',
        'provider:physical_network': config.PUBLIC})['id']
    networks.post('/v2.0/subnets', json={'subnet': {
        'network_id': network, 'ip_version': 4, 'cidr': '10.1.0.0/16',
        'enable_dhcp': False, 'name': 'public'}})
