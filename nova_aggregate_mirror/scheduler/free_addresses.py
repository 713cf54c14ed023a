# SPDX-License-Identifier: Apache-2.0
"""Free addresses of segments for the servers of one request: no I/O.

Nova queries placement once for all servers of a request, and then chooses a
host for each. What earlier servers of the request take is counted here.
"""

from collections import abc
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Segment:
    """The aggregates of a segment, and the servers it has addresses for.

    :param servers: None if there are enough for all servers
    """

    aggregates: frozenset[str]
    servers: int | None

    def has(self, host: Any) -> bool:
        """Check whether a host state of nova is in the segment."""
        return any(aggregate.uuid in self.aggregates
                   for aggregate in host.aggregates)

    def is_free(self, added: abc.Iterable[tuple[Any, int]]) -> bool:
        """Check whether one is left after servers were added to hosts."""
        servers = sum(count for host, count in added if self.has(host))
        return self.servers is None or servers < self.servers


class FreeAddresses:
    """Free addresses of a request: for each network its segments with any."""

    def __init__(self, networks: abc.Iterable[abc.Sequence[Segment]]) -> None:
        self._networks = list(networks)
        self._before: list[tuple[Any, int]] | None = None
        """Each host state with the servers it had before the request."""

    def passing(self, hosts: list[Any]) -> list[Any]:
        """Return the hosts that still have an address for a server.

        Between two calls nova adds a server of the request to a host state.
        """
        if self._before is None:
            self._before = [(host, host.num_instances) for host in hosts]
        added = [(host, host.num_instances - before)
                 for host, before in self._before
                 if host.num_instances > before]
        for segments in self._networks:
            free = [segment for segment in segments if segment.is_free(added)]
            if len(free) < len(segments):
                hosts = [host for host in hosts
                         if any(segment.has(host) for segment in free)]
        return hosts
