# SPDX-License-Identifier: Apache-2.0
"""The configuration files of a cloud's services."""

import configparser
import sys

from tests.cloud import config

# The drivers that fakes.py adds to nova's.
ONE_NODE = 'OneNode'
SEVERAL_NODES = 'SeveralNodes'


def write(cloud: config.Config) -> None:
    """Write every configuration file of the cloud."""
    for folder in ('log', 'lock', 'state', 'fernet', 'credential'):
        (cloud.directory / folder).mkdir(mode=0o700, exist_ok=True)
    write_file(cloud, 'keystone.conf', _keystone(cloud))
    write_file(cloud, 'placement.conf', _placement(cloud))
    write_file(cloud, 'cell0.conf', {
        'database': _database(cloud, 'nova_cell0')})
    write_nova(cloud, 'nova.conf', {}, 'controller-1')
    if cloud.is_full:
        _write_full(cloud)


def write_nova(cloud: config.Config, name: str, options: config.Options,
               host: str = 'controller-1') -> None:
    """Write a nova.conf with further options; None removes an option."""
    shared = _full_nova(cloud, host) if cloud.is_full else {}
    merged = _merged(_nova(cloud, host), shared, cloud.nova_options, options)
    write_file(cloud, name, {
        section: {option: value for option, value in values.items()
                  if value is not None}
        for section, values in merged.items()})


def write_file(cloud: config.Config, name: str, options: config.Options
               ) -> None:
    """Write a configuration file."""
    # A password may contain a percent sign: no interpolation.
    parser = configparser.RawConfigParser()
    parser.read_dict(options)
    with open(cloud.path(name), 'w') as output:
        parser.write(output)


def _write_full(cloud: config.Config) -> None:
    """Write the files that only the full profile has."""
    for folder in ('images', 'glance', 'neutron'):
        (cloud.directory / folder).mkdir()
    write_file(cloud, 'glance-api.conf', _glance(cloud))
    write_file(cloud, 'neutron.conf', _neutron(cloud))
    for number in cloud.controllers:
        host = 'controller-%d' % number
        port = str(cloud.ports['agent-%d' % number])
        write_nova(cloud, '%s.conf' % host, {
            'aggregate_mirror': {'metrics_port': port}}, host)
    for host in cloud.host_names():
        driver = (ONE_NODE if cloud.nodes_of(host) == [host]
                  else SEVERAL_NODES)
        write_nova(cloud, '%s.conf' % host, {
            'DEFAULT': {'compute_driver': 'fake.%s' % driver},
            # Compute hosts have no database access.
            'api_database': {'connection': None},
            'database': {'connection': None}}, host)


def _merged(*options: config.Options) -> config.Options:
    found: dict[str, config.Section] = {}
    for each in options:
        for section, values in each.items():
            found.setdefault(section, {}).update(values)
    return found


def _database(cloud: config.Config, name: str) -> dict[str, str]:
    """Return the options of a section that names a service's database."""
    options = {'connection': cloud.database_url(name),
               # The cloud is temporary: nothing has to survive a power
               # failure.
               'sqlite_synchronous': 'False'}
    # The server may have other users.
    return options | ({'max_pool_size': '5'} if cloud.is_full else {})


def _account(cloud: config.Config, username: str) -> dict[str, str]:
    """Return the options of a section with a service's credentials."""
    return {'auth_type': 'password', 'auth_url': cloud.auth_url,
            'username': username, 'password': cloud.password,
            'user_domain_id': 'default', 'project_domain_id': 'default',
            'project_name': 'service', 'region_name': config.REGION}


def _keystone(cloud: config.Config) -> config.Options:
    return {
        'database': _database(cloud, 'keystone'),
        'token': {'expiration': str(cloud.token_seconds)},
        'fernet_tokens': {'key_repository': cloud.path('fernet')},
        # They are not used, but their default path is below /etc.
        'fernet_receipts': {'key_repository': cloud.path('fernet')},
        'credential': {'key_repository': cloud.path('credential')},
        # The lowest cost of bcrypt: a login takes 0.2 s otherwise.
        'identity': {'password_hash_rounds': '4'},
        # Only changes by the same process are seen in it, see Services.
        'cache': {'backend': 'dogpile.cache.memory'}}


def _placement(cloud: config.Config) -> config.Options:
    return {'placement_database': _database(cloud, 'placement'),
            'keystone_authtoken': _account(cloud, 'placement')}


def _nova(cloud: config.Config, host: str) -> config.Options:
    account = _account(cloud, 'nova')
    # In the full profile each host has a directory, as separate machines have.
    state = cloud.directory / 'state' / (host if cloud.is_full else '')
    state.mkdir(parents=True, exist_ok=True)
    return {
        'DEFAULT': {'transport_url': cloud.transport_url,
                    'state_path': str(state), 'my_ip': '127.0.0.1',
                    'host': host},
        'api_database': _database(cloud, 'nova_api'),
        'database': _database(cloud, 'nova'),
        'keystone_authtoken': account,
        'placement': account,
        'service_user': {**account, 'send_service_user_token': 'True'},
        'oslo_concurrency': {'lock_path': cloud.path('lock')},
        'aggregate_mirror': {'metrics_port': str(cloud.ports['agent-1'])},
        # nova's wheel installs it there.
        'wsgi': {'api_paste_config': '%s/etc/nova/api-paste.ini' % sys.prefix}}


def _full_nova(cloud: config.Config, host: str) -> config.Options:
    return {
        'DEFAULT': {
            'service_down_time': '30',
            # The fake driver plugs nothing, so no event would arrive.
            'vif_plugging_is_fatal': 'False', 'vif_plugging_timeout': '0'},
        'compute': {'live_migration_wait_for_vif_plug': 'False'},
        # Tests wait for the repair of changes by other tools: sync often.
        'aggregate_mirror': {'sync_interval': '5', 'leader_lease': '5'},
        'aggregate_mirror_database': {
            'connection': cloud.database_url('journal')},
        'conductor': {'workers': '1'},
        'scheduler': {'workers': '1', 'discover_hosts_in_cells_interval': '2',
                      'query_placement_for_routed_network_aggregates': 'True'},
        # A failed build in a test must not lower a host's weight.
        'filter_scheduler': {'build_failure_weight_multiplier': '0'},
        'quota': {'cores': '-1', 'instances': '-1', 'ram': '-1'},
        'neutron': _account(cloud, 'nova'),
        'glance': {'region_name': config.REGION}}


def _glance(cloud: config.Config) -> config.Options:
    folder = cloud.directory / 'images'
    stores = {name: {'filesystem_store_datadir': str(folder / name)}
              for name in ('store', 'os_glance_staging_store',
                           'os_glance_tasks_store')}
    return {
        'DEFAULT': {'enabled_backends': 'store:file',
                    'worker_self_reference_url': cloud.url('glance'),
                    'image_cache_dir': str(cloud.directory / 'glance')},
        'database': _database(cloud, 'glance'),
        'glance_store': {'default_backend': 'store'},
        'keystone_authtoken': _account(cloud, 'glance'),
        'paste_deploy': {
            'flavor': 'keystone',
            # glance's wheel installs it there.
            'config_file': '%s/etc/glance/glance-api-paste.ini' % sys.prefix},
        **stores}


def _neutron(cloud: config.Config) -> config.Options:
    networks = (config.PUBLIC, *config.RACKS)
    ranges = ['%s:100:199' % network for network in networks]
    return {
        'DEFAULT': {
            'core_plugin': 'ml2', 'service_plugins': 'segments,qos,placement',
            'state_path': str(cloud.directory / 'neutron'),
            'transport_url': cloud.transport_url,
            'api_paste_config': '%s/etc/neutron/api-paste.ini' % sys.prefix,
            'dhcp_agent_notification': 'False',
            'rpc_workers': '1', 'rpc_state_report_workers': '0'},
        'database': _database(cloud, 'neutron'),
        'keystone_authtoken': _account(cloud, 'neutron'),
        # With these, the segments service creates nova aggregates and resource
        # providers.
        'nova': _account(cloud, 'neutron'),
        'placement': _account(cloud, 'neutron'),
        'oslo_concurrency': {'lock_path': cloud.path('lock')},
        'ml2': {'mechanism_drivers': 'openvswitch',
                'extension_drivers': 'qos',
                'type_drivers': 'flat,vlan', 'tenant_network_types': 'vlan'},
        'ml2_type_flat': {'flat_networks': config.PUBLIC},
        'ml2_type_vlan': {'network_vlan_ranges': ','.join(ranges)}}
