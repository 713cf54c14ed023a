# SPDX-License-Identifier: Apache-2.0
"""Documents of keystone, glance, neutron and placement, as they answer them.

Each has every key of the real one: a test of the full cloud compares them.
"""

from collections import abc
from typing import Any

PROJECT = '2d97e5f6c3174729b6a7ec125bc1f801'
CREATED = '2026-01-01T00:00:00Z'
DOMAIN = {'id': 'default', 'name': 'Default'}
_OWNED = {'project_id': PROJECT, 'tenant_id': PROJECT}
_NEUTRON = {**_OWNED, 'description': '', 'tags': [], 'created_at': CREATED,
            'updated_at': CREATED, 'revision_number': 1}


def image(uuid: str, name: str = 'demo', **values: Any) -> dict[str, Any]:
    """Return an image of glance, with properties or other attributes."""
    path = '/v2/images/%s' % uuid
    return {
        'id': uuid, 'name': name, 'status': 'active', 'visibility': 'public',
        'container_format': 'bare', 'disk_format': 'raw', 'min_disk': 0,
        'min_ram': 0, 'size': 1024, 'virtual_size': 1024, 'protected': False,
        'owner': PROJECT, 'checksum': '0f343b0931126a20f133d67c2b018a3b',
        'os_hash_algo': 'sha512', 'os_hash_value': '8efb4f73', 'tags': [],
        'os_hidden': False, 'created_at': CREATED, 'updated_at': CREATED,
        'stores': 'store', 'self': path, 'file': path + '/file',
        'schema': '/v2/schemas/image', **values}


def project(uuid: str, name: str = 'demo') -> dict[str, Any]:
    """Return a project of keystone."""
    return {'id': uuid, 'name': name, 'domain_id': 'default',
            'parent_id': 'default', 'description': '', 'enabled': True,
            'is_domain': False, 'tags': [], 'options': {},
            'links': {'self': 'http://keystone/v3/projects/%s' % uuid}}


def identity(url: str) -> dict[str, Any]:
    """Return the version of keystone at a URL."""
    return {'id': 'v3.14', 'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': url}],
            'media-types': [{
                'base': 'application/json',
                'type': 'application/vnd.openstack.identity-v3+json'}]}


def token(catalog: abc.Sequence[dict[str, Any]], expires: str
          ) -> dict[str, Any]:
    """Return a token of keystone."""
    return {
        'methods': ['password'], 'expires_at': expires,
        'issued_at': '2020-01-01T00:00:00.000000Z',
        'audit_ids': ['3voWv42qTH2wtlg0xPWtpg'], 'is_domain': False,
        'user': {'id': 'u', 'name': 'nova', 'domain': DOMAIN,
                 'password_expires_at': None},
        'project': {'id': PROJECT, 'name': 'service', 'domain': DOMAIN},
        'roles': [{'id': 'r', 'name': 'admin'}], 'catalog': [*catalog]}


def service(kind: str, *urls: str) -> dict[str, Any]:
    """Return the entry of a service in the catalog of a token."""
    return {'type': kind, 'name': kind, 'id': kind, 'endpoints': [
        {'id': kind, 'interface': 'internal', 'region': 'R', 'region_id': 'R',
         'url': url} for url in urls]}


def placement_version() -> dict[str, Any]:
    """Return the version of placement."""
    return {'id': 'v1.0', 'status': 'CURRENT', 'min_version': '1.0',
            'max_version': '1.39', 'links': [{'rel': 'self', 'href': ''}]}


def provider(uuid: str, name: str = 'demo') -> dict[str, Any]:
    """Return a resource provider in a list of placement, at 1.36."""
    path = '/resource_providers/%s' % uuid
    return {'uuid': uuid, 'name': name, 'generation': 0,
            'parent_provider_uuid': None, 'root_provider_uuid': uuid,
            'links': [{'rel': 'self', 'href': path}]}


def network(uuid: str, name: str = 'demo') -> dict[str, Any]:
    """Return a network of neutron."""
    return {'id': uuid, 'name': name, 'admin_state_up': True, 'mtu': 1500,
            'status': 'ACTIVE', 'subnets': [], 'shared': True,
            'availability_zone_hints': [], 'availability_zones': [],
            'ipv4_address_scope': None, 'ipv6_address_scope': None,
            'router:external': False, 'qos_policy_id': None,
            'l2_adjacency': True, 'provider:network_type': 'flat',
            'provider:physical_network': 'public',
            'provider:segmentation_id': None, **_NEUTRON}


def subnet(uuid: str, **values: Any) -> dict[str, Any]:
    """Return a subnet of neutron."""
    return {
        'id': uuid, 'name': '', 'network_id': '', 'segment_id': None,
        'cidr': '10.0.0.0/24', 'ip_version': 4, 'gateway_ip': None,
        'allocation_pools': [], 'subnetpool_id': None, 'enable_dhcp': False,
        'ipv6_ra_mode': None, 'ipv6_address_mode': None, 'host_routes': [],
        'dns_nameservers': [], 'router:external': False, 'service_types': [],
        **_NEUTRON, **values}


def port(uuid: str, **values: Any) -> dict[str, Any]:
    """Return a port of neutron."""
    return {'id': uuid, 'name': '', 'network_id': '', 'fixed_ips': [],
            'mac_address': 'fa:16:3e:00:00:01', 'admin_state_up': True,
            'status': 'DOWN', 'device_id': '', 'device_owner': '',
            'allowed_address_pairs': [], 'extra_dhcp_opts': [],
            'security_groups': [], 'binding:vnic_type': 'normal',
            'binding:profile': {}, 'binding:host_id': '',
            'binding:vif_type': 'unbound', 'binding:vif_details': {},
            'qos_policy_id': None, 'qos_network_policy_id': None,
            'ip_allocation': 'immediate', 'resource_request': None, **_NEUTRON,
            **values}


def network_counts(uuid: str, subnets: abc.Sequence[dict[str, Any]],
                   **counts: Any) -> dict[str, Any]:
    """Return neutron's counts of the addresses of a network."""
    return {'network_id': uuid, 'network_name': 'demo', **_OWNED,
            'subnet_ip_availability': [*subnets], **counts}


def subnet_counts(uuid: str, **counts: Any) -> dict[str, Any]:
    """Return neutron's counts of the addresses of a subnet."""
    return {'subnet_id': uuid, 'subnet_name': '', 'cidr': '10.0.0.0/24',
            'ip_version': 4, **counts}
