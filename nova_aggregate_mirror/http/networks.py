# SPDX-License-Identifier: Apache-2.0
"""Read ports, subnets and counts of addresses from neutron."""

from collections import abc
import dataclasses
import functools
import ipaddress
import itertools
from typing import Any
import urllib.parse

from keystoneauth1 import adapter
from oslo_config import cfg

from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import repeats
from nova_aggregate_mirror.http import resources


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
        """Read the ports that have one of the values of each attribute."""
        return self._read('ports', _port, {
            **query, 'fields': ('id', 'network_id', 'device_id', 'fixed_ips',
                                'ip_allocation')})

    def subnets(self, **query: abc.Collection[str]) -> list[Subnet]:
        """Read the subnets that have one of the values of each attribute."""
        return self._read('subnets', _subnet, {
            **query, 'fields': ('id', 'network_id', 'segment_id', 'ip_version',
                                'ipv6_address_mode', 'service_types',
                                'allocation_pools')})

    def counts(self, networks: abc.Collection[str]) -> dict[str, Counts]:
        """Read the counts of addresses of each subnet of some networks."""
        availabilities = self._read(
            'network-ip-availabilities', _counts, {'network_id': networks})
        return dict(itertools.chain.from_iterable(availabilities))

    @functools.cached_property
    def _adapter(self) -> adapter.Adapter:
        return resources.adapter(self._conf, resources.NETWORK)

    def _read(self, collection: str, parse: Any,
              query: abc.Mapping[str, abc.Collection[str]]) -> list[Any]:
        """Read all pages of a collection; ``parse`` converts each entry."""
        next_query: str | None = urllib.parse.urlencode(query, doseq=True)
        entries: list[Any] = []
        while next_query is not None:
            more, next_query = self._read_page(collection, parse, next_query)
            entries += more
        return entries

    @repeats.repeating
    def _read_page(self, collection: str, parse: Any, query: str
                   ) -> tuple[list[Any], str | None]:
        """Read a page; return its entries, and the query of the next one."""
        call = errors.Call(resources.party(self._conf, resources.NETWORK),
                           'reading %s' % collection)
        key = collection.replace('-', '_')
        with errors.translated(call):
            response = resources.get(
                self._adapter, call, '/v2.0/%s?%s' % (collection, query))
            with errors.parsing():
                document = response.json()
                links = document.get(key + '_links', ())
                entries = [parse(entry) for entry in document[key]]
                for link in links:
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
        derived=mode in ('slaac', 'dhcpv6-stateless'),
        services=tuple(subnet.get('service_types') or ()),
        pools=tuple(pools))


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
