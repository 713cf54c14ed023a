# SPDX-License-Identifier: Apache-2.0
"""Segments of routed networks that servers have addresses of."""

from collections import abc
import functools

from oslo_config import cfg

from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.http import networks
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client

BATCH = 50
"""Servers per request: 2 KB of URL."""


class SegmentReader:
    """Reads segments of servers from neutron, their aggregates from placement.

    :param aggregates: UUIDs of nova's host aggregates
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 aggregates: abc.Collection[str]) -> None:
        self._timeout = conf.aggregate_mirror.request_timeout
        self._networks = networks.Networks(conf)
        self._aggregates = functools.cache(
            lambda segment: placement.aggregates(segment).intersection(
                aggregates))

    @functools.cached_property
    def _segments(self) -> abc.Mapping[str, str]:
        """Subnet to its segment."""
        with deadline.within(self._timeout):
            return {subnet.id: subnet.segment
                    for subnet in self._networks.subnets() if subnet.segment}

    def read(self, servers: abc.Collection[str]
             ) -> abc.Mapping[str, rules.Segments]:
        """Return the segments of each server, with their host aggregates.

        :raises MirrorError: neutron or placement could not be read
        """
        by_server: dict[str, dict[str, frozenset[str]]] = {}
        ordered = sorted(servers) if self._segments else []
        for start in range(0, len(ordered), BATCH):
            with deadline.within(self._timeout):
                ports = self._networks.ports(
                    device_id=ordered[start:start + BATCH])
            for port in ports:
                subnets = {subnet for subnet, _address in port.addresses}
                for subnet in subnets & self._segments.keys():
                    segment = self._segments[subnet]
                    aggregates = self._aggregates(segment)
                    # There are none if neutron has created none.
                    if aggregates:
                        segments = by_server.setdefault(port.device, {})
                        segments[segment] = aggregates
        return by_server
