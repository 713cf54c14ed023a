# SPDX-License-Identifier: Apache-2.0
"""Request filter that leaves out segments without free addresses.

Nova requires the aggregates of all segments of a network. Only neutron knows
which of them have addresses: nova allocates none in placement.
"""

import collections
from collections import abc

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec

LOG = logging.getLogger(__name__)
RequestSpec = request_spec.RequestSpec


class SegmentAddresses(request_filters.QueryFilter):
    """Narrows the aggregates of a network to segments with addresses."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._networks = resources.Networks(conf)
        self._placement = client.Client(conf)
        self._aggregates: dict[str, frozenset[str]] = {}
        """Segment to its aggregates, which rarely change."""

    def change(self, spec: RequestSpec) -> bool:
        routed = (self._conf.scheduler
                  .query_placement_for_routed_network_aggregates)
        # Nova has required no aggregate of a network without segments.
        if not routed or not request_spec.member_of(spec).required:
            return False
        with deadline.within(self._conf.aggregate_mirror.inline_timeout):
            ports = self._count_ports(spec)
            return bool(ports) and self._narrow(spec, ports)

    def _count_ports(self, spec: RequestSpec) -> abc.Mapping[str, int]:
        """Count the ports of one server that need an address, by network."""
        unaddressed, existing = request_spec.ports(spec)
        counts = collections.Counter(unaddressed)
        if existing:
            counts.update(
                port.network for port in self._networks.ports(id=existing)
                if not port.addresses and not port.unaddressed)
        return counts

    def _narrow(self, spec: RequestSpec, ports: abc.Mapping[str, int]) -> bool:
        """Leave out full segments, after everything was read."""
        by_network = collections.defaultdict[str, list[resources.Subnet]](list)
        for subnet in self._networks.subnets(network_id=sorted(ports)):
            if subnet.segment:
                by_network[subnet.network].append(subnet)
        if not by_network:
            return False
        counts = self._networks.counts(sorted(by_network))
        replacements, limited = [], []
        for network, subnets in by_network.items():
            limits = self._limits(subnets, counts, ports[network],
                                  request_spec.count_servers(spec))
            segments = {subnet.segment for subnet in subnets}
            full = {segment for segment, free in limits.items() if not free}
            if full == segments:
                raise constraints.Unsatisfiable(
                    'no segment of network %s has enough free addresses (%s)'
                    % (network, ', '.join(sorted(segments))))
            aggregates = (self._required_aggregates(spec, network, segments)
                          if limits else None)
            if not aggregates:
                continue
            left = {segment: aggregates[segment]
                    for segment in sorted(segments - full)}
            if full:
                replacements.append((_union(aggregates), _union(left)))
            if any(limits.values()):
                limited.append([request_spec.Segment(uuids, limits.get(name))
                                for name, uuids in left.items()])
        for replacement in replacements:
            request_spec.replace(spec, *replacement)
        if limited:
            request_spec.set_addresses(spec, limited)
        return bool(replacements)

    def _limits(self, subnets: abc.Iterable[resources.Subnet],
                counts: abc.Mapping[str, resources.Counts], ports: int,
                servers: int) -> abc.Mapping[str, int]:
        """Return how many servers each segment short of addresses can take.

        A port gets an address of each IP version that its segment has. A
        segment about which anything is unknown is not limited.

        :param ports: those of each server that need an address of the network
        """
        families = collections.defaultdict[
            tuple[str, int], list[resources.Subnet]](list)
        for subnet in subnets:
            # The owner of a server's port is "compute:" and its zone.
            takes_servers = not subnet.services or any(
                owner.startswith('compute:') for owner in subnet.services)
            if takes_servers and not subnet.derived:
                families[subnet.segment, subnet.version].append(subnet)
        servers_left: dict[str, int] = {}
        for (segment, _version), family in families.items():
            free = self._free(family, counts, ports * servers)
            if free is not None:
                left = servers_left.get(segment, servers)
                servers_left[segment] = min(free // ports, left)
        return servers_left

    def _free(self, subnets: abc.Collection[resources.Subnet],
              counts: abc.Mapping[str, resources.Counts], needed: int
              ) -> int | None:
        """Count the free addresses of subnets; None if there may be enough."""
        if any(subnet.services for subnet in subnets):
            # The port may be of another zone than the subnet is reserved for.
            return None
        counted = [counts[subnet.id] for subnet in subnets
                   if subnet.id in counts]
        total = sum(count.total for count in counted)
        free = total - sum(count.used for count in counted)
        if len(counted) < len(subnets) or free >= needed:
            return None
        if not all(count.exact for count in counted):
            # The used ones include addresses outside of allocation pools.
            free = total - self._used(subnets)
        elif any(count.used > count.total for count in counted):
            return None
        return free if free < needed else None

    def _used(self, subnets: abc.Collection[resources.Subnet]) -> int:
        """Count the used addresses in the allocation pools of subnets."""
        by_id = {subnet.id: subnet for subnet in subnets}
        fixed_ips = ['subnet_id=' + uuid for uuid in sorted(by_id)]
        used = 0
        for port in self._networks.ports(fixed_ips=fixed_ips):
            for subnet, address in port.addresses:
                used += subnet in by_id and by_id[subnet].pooled(address)
        return used

    def _required_aggregates(self, spec: RequestSpec, network: str,
                             segments: abc.Iterable[str]
                             ) -> abc.Mapping[str, frozenset[str]]:
        """Return the aggregates by segment; none if nova requires others."""
        # Cached aggregates may be outdated: without a match all are read.
        for cached in (self._aggregates, {}):
            aggregates = {
                # The provider of a segment has the UUID of the segment.
                segment: cached[segment] if segment in cached
                else self._placement.aggregates(segment)
                for segment in sorted(segments)}
            # Updated in place: other threads use the cache, too.
            self._aggregates.update(aggregates)
            if _union(aggregates) in request_spec.member_of(spec).required:
                return aggregates
        LOG.info('Free addresses of network %s are not considered: the '
                 'aggregates of its segments have changed', network)
        return {}


def _union(aggregates: abc.Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*aggregates.values())
