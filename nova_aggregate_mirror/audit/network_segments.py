# SPDX-License-Identifier: Apache-2.0
"""Segments of routed networks that servers have addresses of."""

from collections.abc import Collection
from collections.abc import Mapping
import contextlib

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import networks
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import constraints

MANY = 50
"""Servers per request: 2 KB of URL."""


class Segments:
    """Neutron's subnets with a segment, and placement's aggregates of these.

    :param conf: nova's configuration
    :param known: UUIDs of nova's host aggregates
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 known: Collection[str]) -> None:
        self._timeout = conf.aggregate_mirror.request_timeout
        self._networks = networks.Networks(conf)
        self._placement = placement
        self._known = frozenset(known)
        self._segments: Mapping[str, str] | None = None
        """Subnet to its segment."""
        self._rules: dict[str, list[constraints.Rule]] = {}

    def rules(self, servers: Collection[str]
              ) -> Mapping[str, list[constraints.Rule]]:
        """Return a rule for each segment of each server.

        :param servers: UUIDs
        :raises MirrorError: neutron or placement could not be read
        """
        if self._segments is None:
            with deadline.within(self._timeout):
                subnets = self._networks.subnets()
            self._segments = {subnet.id: subnet.segment for subnet in subnets
                              if subnet.segment}
        found: dict[str, list[constraints.Rule]] = {}
        ordered = sorted(servers) if self._segments else []
        for start in range(0, len(ordered), MANY):
            with deadline.within(self._timeout):
                ports = self._networks.ports(
                    device_id=ordered[start:start + MANY])
            for port in ports:
                for segment in sorted(
                        {self._segments[subnet] for subnet, _address
                         in port.addresses if subnet in self._segments}):
                    found.setdefault(port.device, []).extend(
                        self._of(segment))
        return found

    def _of(self, segment: str) -> list[constraints.Rule]:
        """Return the rule of a segment, as nova's request filter has it.

        There is none if neutron has created no host aggregate for it.
        """
        if segment not in self._rules:
            matching: frozenset[str] = frozenset()
            with contextlib.suppress(exceptions.ProviderNotFound):
                # The provider of a segment has the UUID of the segment.
                matching = self._placement.get(segment).aggregates
            matching &= self._known
            self._rules[segment] = [constraints.Rule(
                'segment %s' % segment, matching, required=True)
            ] if matching else []
        return self._rules[segment]
