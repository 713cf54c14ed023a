# SPDX-License-Identifier: Apache-2.0
"""For how many servers the segments of a network have addresses: pure."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_aggregate_mirror.http import networks

COMPUTE = 'compute:'
"""Start of the device owner of a server's port; the rest is its zone."""

Used = Callable[[Collection[networks.Subnet]], int]
"""Counts the used addresses in the allocation pools of some subnets."""


def limits(subnets: Iterable[networks.Subnet],
           counts: Mapping[str, networks.Counts], ports: int, servers: int,
           used: Used) -> Mapping[str, int]:
    """Return for how many servers a segment has addresses, if for too few.

    A port gets an address of each IP version that its segment has. A segment
    about which anything is unknown is not limited.

    :param subnets: all subnets of a network
    :param counts: by the UUID of the subnet
    :param ports: ports of each server that need an address of the network
    :param servers: that are requested together
    :param used: called only if the counts include addresses that are in no
        allocation pool
    :returns: by the UUID of the segment; 0 if it is full
    """
    families: dict[tuple[str, int], list[networks.Subnet]] = {}
    for subnet in subnets:
        if subnet.segment and not subnet.derived and not _reserved(subnet):
            families.setdefault(
                (subnet.segment, subnet.version), []).append(subnet)
    servers_left: dict[str, int] = {}
    for (segment, _version), members in families.items():
        free = _free(members, counts, ports * servers, used)
        if free is not None:
            servers_left[segment] = min(
                free // ports, servers_left.get(segment, servers))
    return servers_left


def _reserved(subnet: networks.Subnet) -> bool:
    """Check whether no port of a server gets an address of a subnet."""
    return bool(subnet.services) and not any(
        owner.startswith(COMPUTE) for owner in subnet.services)


def _free(subnets: Collection[networks.Subnet],
          counts: Mapping[str, networks.Counts], needed: int, used: Used
          ) -> int | None:
    """Count the free addresses of subnets; None if there may be enough."""
    if any(subnet.services for subnet in subnets):
        # The port may be of another zone than the subnet is reserved for.
        return None
    counted = [counts[subnet.id] for subnet in subnets if subnet.id in counts]
    total = sum(count.total for count in counted)
    free = total - sum(count.used for count in counted)
    if len(counted) < len(subnets) or free >= needed:
        return None
    if not all(count.exact for count in counted):
        free = total - used(subnets)
    elif any(count.used > count.total for count in counted):
        return None
    return free if free < needed else None
