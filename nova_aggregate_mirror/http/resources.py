# SPDX-License-Identifier: Apache-2.0
"""Reads of glance and neutron, and adapters of services with named resources.

It is long because it has the form of what each read returns.
"""

from collections import abc
import dataclasses
import functools
import ipaddress
import itertools
from typing import Any
import urllib.parse

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import loading
from oslo_config import cfg
import requests

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.http import transport

# Attributes of an image that nova reads, as keywords of its objects.
_READ = frozenset({
    'checksum', 'container_format', 'created_at', 'disk_format', 'id',
    'min_disk', 'min_ram', 'name', 'owner', 'size', 'status', 'updated_at',
    'visibility'})
# Others, which nova omits (nova/image/glance.py); all else are properties.
_OMITTED = frozenset({
    'direct_url', 'file', 'locations', 'os_hash_algo', 'os_hash_value',
    'os_hidden', 'protected', 'schema', 'self', 'stores', 'tags',
    'virtual_size'})


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of resource that has a name."""

    noun: str
    service: str
    """Service, and the section of nova.conf that selects its endpoint."""
    credentials: str
    """Section of nova.conf that has the account."""
    path: str
    versions: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, hash=False)
    """The versions to discover; by default ``path`` has the version."""


PROJECT = Kind('project', 'keystone', 'placement', '/projects',
               {'min_version': (3, 0), 'max_version': (3, 'latest')})
IMAGE = Kind('image', 'glance', 'placement', '/v2/images')
NETWORK = Kind('network', 'neutron', 'neutron', '/v2.0/networks')


def adapter(conf: cfg.ConfigOpts, kind: Kind) -> ks_adapter.Adapter:
    """Build an adapter for the service with the options of nova.conf."""
    return loading.load_adapter_from_conf_options(
        conf, kind.service, session=auth.session(conf, kind.credentials),
        **kind.versions)


def get(adapter: ks_adapter.Adapter, call: errors.Call, path: str,
        *statuses: int) -> requests.Response:
    """Send a GET; raise a MirrorError unless the status is 200 or given."""
    # The request begins with parsing the token and the catalog.
    with errors.parsing(), library_errors.naming_missing_endpoint(
            adapter.session, adapter.service_type, adapter.region_name,
            adapter.interface):
        response: requests.Response = adapter.get(path, raise_exc=False)
    if response.status_code not in (200, *statuses):
        raise errors.unexpected(call, response)
    return response


def party(conf: cfg.ConfigOpts, kind: Kind) -> errors.Parties:
    """Return a function that describes the service with its options."""
    return lambda: auth.party(conf, kind.credentials, kind.service)


@transport.repeating
def read_image(conf: cfg.ConfigOpts, image: str) -> dict[str, Any]:
    """Read an image, in the form that nova makes of glance's document.

    :raises MirrorError: glance could not be read, or does not have it
    :raises RuntimeError: the caller has set no deadline
    """
    call = errors.Call(
        party(conf, IMAGE), 'reading image %s' % image,
        step='give its properties with --image-property instead')
    with errors.translated(call):
        response = get(adapter(conf, IMAGE), call,
                       '%s/%s' % (IMAGE.path, image), 404)
        if response.status_code == 404:
            raise exceptions.UnknownName(
                'glance has no image %s that this user can see; give its ID, '
                'or its properties with --image-property' % image)
        with errors.parsing():
            items = response.json().items()
            attributes = {key: value for key, value in items if key in _READ}
            properties = {key: value for key, value in items
                          if key not in _READ | _OMITTED}
            return {**attributes, 'properties': properties}


@dataclasses.dataclass(frozen=True)
class Port:
    """A port, as far as its addresses are concerned.

    :param device: UUID of the server; empty if it has none
    :param addresses: pairs of subnet UUID and address
    :param unaddressed: whether it was created to have no address
    """

    network: str
    device: str
    addresses: tuple[tuple[str, str], ...]
    unaddressed: bool


@dataclasses.dataclass(frozen=True)
class Subnet:
    """A subnet; its addresses are counted by ``Counts``.

    :param segment: UUID of its segment; empty if it has none
    :param derived: whether addresses are derived from the MAC address
    :param services: device owners that it is reserved for; all if empty
    :param pools: pairs of first and last address
    """

    id: str
    network: str
    segment: str
    version: int
    derived: bool = False
    services: tuple[str, ...] = ()
    pools: tuple[tuple[str, str], ...] = ()

    def pooled(self, address: str) -> bool:
        """Check whether an address is in an allocation pool."""
        # As numbers: addresses of two versions cannot be compared.
        number = _number(address)
        return any(_number(first) <= number <= _number(last)
                   for first, last in self.pools)


@dataclasses.dataclass(frozen=True)
class Counts:
    """Neutron's counts of the addresses of a subnet.

    :param total: addresses in the allocation pools
    :param exact: whether ``used`` are only those of the allocation pools
    """

    total: int
    used: int
    exact: bool


class Networks:
    """Reads from neutron with the credentials of ``[neutron]``.

    The deadline of the caller bounds each method; without one they raise
    ``RuntimeError``, and ``MirrorError`` when neutron could not be read.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def ports(self, **query: abc.Collection[str]) -> list[Port]:
        """Read the ports whose attributes each have one of these values."""
        return self._read('ports', _port, {
            **query, 'fields': ('id', 'network_id', 'device_id', 'fixed_ips',
                                'ip_allocation')})

    def subnets(self, **query: abc.Collection[str]) -> list[Subnet]:
        """Read the subnets whose attributes each have one of these values."""
        return self._read('subnets', _subnet, {
            **query, 'fields': ('id', 'network_id', 'segment_id', 'ip_version',
                                'ipv6_address_mode', 'service_types',
                                'allocation_pools')})

    def counts(self, networks: abc.Collection[str]) -> dict[str, Counts]:
        """Read the counts of addresses of networks, by UUID of the subnet."""
        availabilities = self._read(
            'network-ip-availabilities', _counts, {'network_id': networks})
        return dict(itertools.chain.from_iterable(availabilities))

    @functools.cached_property
    def _adapter(self) -> ks_adapter.Adapter:
        return adapter(self._conf, NETWORK)

    def _read(self, collection: str, parse: Any,
              query: abc.Mapping[str, abc.Collection[str]]) -> list[Any]:
        """Read all pages of a collection; ``parse`` converts each entry."""
        next_query: str | None = urllib.parse.urlencode(query, doseq=True)
        entries: list[Any] = []
        while next_query is not None:
            more, next_query = self._read_page(collection, parse, next_query)
            entries += more
        return entries

    @transport.repeating
    def _read_page(self, collection: str, parse: Any, query: str
                   ) -> tuple[list[Any], str | None]:
        """Read a page; return its entries, and the query of the next one."""
        call = errors.Call(party(self._conf, NETWORK),
                           'reading %s' % collection)
        key = collection.replace('-', '_')
        with errors.translated(call):
            response = get(
                self._adapter, call, '/v2.0/%s?%s' % (collection, query))
            with errors.parsing():
                document = response.json()
                entries = [parse(entry) for entry in document[key]]
                for link in document.get(key + '_links', ()):
                    if link['rel'] == 'next':
                        url = urllib.parse.urlsplit(link['href'])
                        return entries, url.query
                return entries, None


def _number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def _port(port: abc.Mapping[str, Any]) -> Port:
    addresses = [(fixed['subnet_id'], fixed['ip_address'])
                 for fixed in port['fixed_ips']]
    return Port(network=port['network_id'], device=port['device_id'] or '',
                addresses=tuple(addresses),
                unaddressed=port.get('ip_allocation') == 'none')


def _subnet(subnet: abc.Mapping[str, Any]) -> Subnet:
    mode = subnet.get('ipv6_address_mode')
    pools = [(pool['start'], pool['end'])
             for pool in subnet['allocation_pools']]
    return Subnet(
        id=subnet['id'], network=subnet['network_id'],
        segment=subnet.get('segment_id') or '',
        version=int(subnet['ip_version']),
        derived=mode in ('slaac', 'dhcpv6-stateless'), pools=tuple(pools),
        services=tuple(subnet.get('service_types') or ()))


def _counts(network: abc.Mapping[str, Any]) -> list[tuple[str, Counts]]:
    return [(subnet['subnet_id'], _subnet_counts(subnet))
            for subnet in network['subnet_ip_availability']]


def _subnet_counts(subnet: abc.Mapping[str, Any]) -> Counts:
    # Extension network-ip-availability-details.
    details = subnet.get('ip_availability_details')
    if details:
        return Counts(int(details['total_ips_in_allocation_pool']),
                      int(details['used_ips_in_allocation_pool']), exact=True)
    return Counts(int(subnet['total_ips']), int(subnet['used_ips']),
                  exact=False)
