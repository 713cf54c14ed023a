# SPDX-License-Identifier: Apache-2.0
"""The configuration files of the full cloud's services."""

import dataclasses
import json
import pathlib
import sys

from tests.cloud import config

# All hosts reach the first network; only the hosts of a rack reach its
# network.
PUBLIC = 'public'
RACKS = ('rack-1', 'rack-2')
NODES = 3
# The drivers that child.py adds to nova's.
ONE_NODE = 'OneNode'
SEVERAL_NODES = 'SeveralNodes'


@dataclasses.dataclass(frozen=True, kw_only=True)
class FullConfig(config.Config):
    """The small cloud's configuration, and the rest of the full cloud's.

    :param hosts: the number of compute hosts; the last has three nodes
    :param transport_url: of the cloud's own RabbitMQ virtual host
    """

    second_nova_port: int
    second_metrics_port: int
    glance_port: int
    neutron_port: int
    transport_url: str
    hosts: int

    @property
    def glance_url(self) -> str:
        return 'http://127.0.0.1:%s' % self.glance_port

    @property
    def neutron_url(self) -> str:
        return 'http://127.0.0.1:%s' % self.neutron_port

    @property
    def second_nova_url(self) -> str:
        return 'http://127.0.0.1:%s/v2.1' % self.second_nova_port

    @property
    def refusal(self) -> pathlib.Path:
        """Return a file that makes the next build of a server fail."""
        return self.directory / 'state' / 'refusal'

    def host_names(self) -> list[str]:
        """Return the compute hosts; the last has several nodes."""
        return [*('compute-%s' % number for number in range(1, self.hosts)),
                'ironic-1']

    def nodes_of(self, host: str) -> list[str]:
        """Return the names of a host's compute nodes."""
        if not host.startswith('ironic'):
            return [host]
        return ['%s-node-%s' % (host, number + 1) for number in range(NODES)]

    def rack_of(self, host: str) -> str:
        """Return a host's physical network other than the public network."""
        return RACKS[self.host_names().index(host) % len(RACKS)]


def to_json(full: FullConfig) -> str:
    """Serialize the configuration for later commands."""
    return json.dumps(dataclasses.asdict(full) | {
        'directory': str(full.directory)}, indent=1)


def from_json(text: str) -> FullConfig:
    """Read the output of ``to_json``."""
    values = json.loads(text)
    return FullConfig(
        **values | {'directory': pathlib.Path(values['directory'])})


def write(full: FullConfig) -> None:
    """Write every configuration file of the cloud."""
    config.write(full)
    for folder in ('images', 'glance', 'neutron'):
        (full.directory / folder).mkdir()
    config.write_file(full, 'glance-api.conf', _glance(full))
    config.write_file(full, 'neutron.conf', _neutron(full))
    _write_nova(full, 'nova.conf', 'controller-1', {})
    for number, port in enumerate(
            (full.metrics_port, full.second_metrics_port), start=1):
        host = 'controller-%d' % number
        _write_nova(full, host + '.conf', host, {
            'aggregate_mirror': {'metrics_port': str(port)}})
    for host in full.host_names():
        driver = (ONE_NODE if full.nodes_of(host) == [host]
                  else SEVERAL_NODES)
        _write_nova(full, '%s.conf' % host, host, {
            'DEFAULT': {'compute_driver': 'fake.%s' % driver},
            # Compute hosts have no database access.
            'api_database': {'connection': None},
            'database': {'connection': None}})


def _write_nova(full: FullConfig, name: str, host: str,
                options: config.Options) -> None:
    # Each host has a state directory, as separate machines have.
    state = full.directory / 'state' / host
    state.mkdir(exist_ok=True)
    shared = {
        'DEFAULT': {
            'host': host, 'state_path': str(state),
            'transport_url': full.transport_url,
            'report_interval': '5', 'service_down_time': '30',
            # The fake driver plugs nothing, so no event would arrive.
            'vif_plugging_is_fatal': 'False', 'vif_plugging_timeout': '0'},
        'compute': {'live_migration_wait_for_vif_plug': 'False'},
        # Tests wait for the repair of changes by other tools: sync often.
        'aggregate_mirror': {'sync_interval': '5', 'leader_lease': '5'},
        'aggregate_mirror_database': {
            'connection': full.database_url('journal')},
        'api_database': _few_connections(), 'database': _few_connections(),
        'conductor': {'workers': '1'},
        'scheduler': {'workers': '1', 'discover_hosts_in_cells_interval': '2',
                      'query_placement_for_routed_network_aggregates': 'True'},
        # A failed build in a test must not lower a host's weight.
        'filter_scheduler': {'build_failure_weight_multiplier': '0'},
        'neutron': config.account(full, 'nova'),
        'glance': {'region_name': config.REGION},
    }
    merged = {section: {**shared.get(section, {}), **options.get(section, {})}
              for section in {**shared, **options}}
    config.write_nova(full, name, merged)


def _few_connections() -> dict[str, str]:
    # The server may have other users.
    return {'max_pool_size': '5'}


def _glance(full: FullConfig) -> config.Options:
    folder = full.directory / 'images'
    stores = {name: {'filesystem_store_datadir': str(folder / name)}
              for name in ('store', 'os_glance_staging_store',
                           'os_glance_tasks_store')}
    return {
        'DEFAULT': {'enabled_backends': 'store:file',
                    'worker_self_reference_url': full.glance_url,
                    'image_cache_dir': str(full.directory / 'glance')},
        'database': config.database(full, 'glance') | _few_connections(),
        'glance_store': {'default_backend': 'store'},
        'keystone_authtoken': config.account(full, 'glance'),
        'paste_deploy': {
            'flavor': 'keystone',
            # glance's wheel installs it there.
            'config_file': '%s/etc/glance/glance-api-paste.ini' % sys.prefix},
        **stores,
    }


def _neutron(full: FullConfig) -> config.Options:
    return {
        'DEFAULT': {
            'core_plugin': 'ml2', 'service_plugins': 'segments',
            'state_path': str(full.directory / 'neutron'),
            'transport_url': full.transport_url,
            'api_paste_config': '%s/etc/neutron/api-paste.ini' % sys.prefix,
            'dhcp_agent_notification': 'False',
            'rpc_workers': '1', 'rpc_state_report_workers': '0'},
        'database': config.database(full, 'neutron') | _few_connections(),
        'keystone_authtoken': config.account(full, 'neutron'),
        # With these, the segments service creates nova aggregates and resource
        # providers.
        'nova': config.account(full, 'neutron'),
        'placement': config.account(full, 'neutron'),
        'oslo_concurrency': {'lock_path': full.path('lock')},
        'ml2': {'mechanism_drivers': 'openvswitch',
                'type_drivers': 'flat,vlan', 'tenant_network_types': 'vlan'},
        'ml2_type_flat': {'flat_networks': PUBLIC},
        'ml2_type_vlan': {'network_vlan_ranges': ','.join(
            '%s:100:199' % name for name in (PUBLIC, *RACKS))},
    }
