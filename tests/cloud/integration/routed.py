# SPDX-License-Identifier: Apache-2.0
"""A routed network: a segment and a subnet for each rack."""

from collections import abc
import dataclasses
import ipaddress
import itertools
from typing import Any

import fixtures

from tests.cloud import access
from tests.cloud import config
from tests.cloud.situations import scene

NAME = 'Neutron segment id %s'
# The network is kept: when the first network is deleted, neutron 29 creates a
# second segments plugin, and then handles every segment event twice.
NETWORK = 'routed'


@dataclasses.dataclass(frozen=True)
class Segment:
    """A segment of the network.

    :param id: also the UUID of its resource provider
    :param subnet: the UUID of its only subnet
    :param hosts: the hosts that reach it
    """

    id: str
    subnet: str
    cidr: ipaddress.IPv4Network
    hosts: frozenset[str]

    def has(self, server: dict[str, Any]) -> bool:
        """Check whether a server has a host and an address of the segment."""
        ports = itertools.chain.from_iterable(server['addresses'].values())
        found = [ipaddress.ip_address(each['addr']) for each in ports]
        return (server['OS-EXT-SRV-ATTR:host'] in self.hosts and bool(found)
                and all(each in self.cidr for each in found))


class RoutedNetwork(fixtures.Fixture):
    """A network with a segment per rack; 29 bits leave six addresses."""

    def __init__(self, at: scene.Scene, bits: abc.Sequence[int] = (29, 29)
                 ) -> None:
        self._cloud = at.cloud
        self._wait_until = at.wait_until
        self._bits = bits
        self._neutron = at.cloud.rest('network')
        self._placement = at.placement
        self.segments: list[Segment] = []

    def _setUp(self) -> None:
        found = self._neutron.get('/v2.0/networks?name=%s' % NETWORK).json()
        self.id = (found['networks'][0]['id'] if found['networks'] else
                   self._create('network', {'name': NETWORK}))
        # A new network has a segment of its own.
        self.delete()
        self.addCleanup(self._wait_until, self.is_gone,
                        'neutron has removed what it had made')
        self.addCleanup(self.delete)
        for number, (rack, bits) in enumerate(
                zip(config.RACKS, self._bits), start=1):
            self._bind(rack, '10.2.%s.0/%s' % (number, bits))
        for each in self.segments:
            self._wait_until(lambda: self._is_ready(each),
                             'neutron has made the aggregate of %s' % each)

    def _bind(self, rack: str, cidr: str) -> None:
        segment = self._create('segment', {
            'network_id': self.id, 'network_type': 'vlan',
            'physical_network': rack})
        subnet = self._create('subnet', {
            'network_id': self.id, 'segment_id': segment, 'ip_version': 4,
            'cidr': cidr, 'gateway_ip': None, 'enable_dhcp': False})
        full = self._cloud.config
        hosts = frozenset(host for host in full.host_names()
                          if full.rack_of(host) == rack)
        self.segments.append(Segment(
            segment, subnet, ipaddress.IPv4Network(cidr), hosts))

    def _is_ready(self, segment: Segment) -> bool:
        # Neutron creates the inventory last.
        members = self.aggregate(segment).get('hosts', ())
        return (segment.hosts == frozenset(members)
                and bool(self.read(segment, 'inventories').get('inventories')))

    def delete(self) -> None:
        """Delete the network's resources in the order neutron requires."""
        for kind in ('ports', 'subnets', 'segments'):
            found = self._neutron.get(
                '/v2.0/%s?network_id=%s' % (kind, self.id)).json()
            for each in found[kind]:
                self._neutron.delete('/v2.0/%s/%s' % (kind, each['id']))

    def delete_port(self, port: str) -> None:
        """Delete a port, and release its address."""
        self._neutron.delete('/v2.0/ports/%s' % port)

    def is_gone(self) -> bool:
        """Check that nova and placement have nothing of the segments."""
        left = [each for each in self.segments
                if self.read(each, 'aggregates') or self.aggregate(each)]
        return not left

    def aggregate(self, segment: Segment) -> dict[str, Any]:
        """Return the nova aggregate that neutron created; empty if none."""
        return self._cloud.aggregates().get(NAME % segment.id, {})

    def read(self, segment: Segment, what: str) -> dict[str, Any]:
        """Read an attribute of a segment's provider; empty if none exists."""
        answer = self._placement.get(
            '/resource_providers/%s/%s' % (segment.id, what), raise_exc=False)
        return answer.json() if answer.ok else {}

    def members(self, aggregate: str) -> frozenset[str]:
        """Return the UUIDs of all providers in a placement aggregate."""
        found = self._placement.get(
            '/resource_providers?member_of=%s' % aggregate).json()
        return frozenset(each['uuid'] for each in found['resource_providers'])

    def port(self, segment: Segment | None = None) -> str:
        """Create a port, with an address of a segment or with none yet."""
        values: dict[str, Any] = {'network_id': self.id}
        if segment:
            values['fixed_ips'] = [{'subnet_id': segment.subnet}]
        return self._create('port', values)

    def fill(self, segment: Segment) -> list[str]:
        """Use up the addresses of a segment with ports; return the ports."""
        values = {
            'network_id': self.id,
            'fixed_ips': [{'subnet_id': segment.subnet}],
            # Neutron reserves addresses for ports without a server, and
            # placement refuses to reserve the whole inventory at neutron's
            # microversion.
            'device_owner': 'compute:test'}
        return [self._create('port', values)
                for _address in segment.cidr.hosts()]

    def addresses(self, port: str) -> list[str]:
        """Return the addresses of a port."""
        found = self._neutron.get('/v2.0/ports/%s' % port).json()['port']
        return [each['ip_address'] for each in found['fixed_ips']]

    def _create(self, kind: str, values: dict[str, Any]) -> str:
        created = access.create(
            self._neutron, '/v2.0/%ss' % kind, **{kind: values})
        return created['id']
