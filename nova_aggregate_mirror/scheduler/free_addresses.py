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
    for one in subnets:
        if one.segment and not one.derived and not _reserved(one):
            families.setdefault((one.segment, one.version), []).append(one)
    found: dict[str, int] = {}
    for (segment, _version), members in families.items():
        free = _free(members, counts, ports * servers, used)
        if free is not None:
            found[segment] = min(free // ports, found.get(segment, servers))
    return found


def _reserved(subnet: networks.Subnet) -> bool:
    """Check whether no port of a server gets an address of a subnet."""
    return bool(subnet.services) and not any(
        one.startswith(COMPUTE) for one in subnet.services)


def _free(subnets: Collection[networks.Subnet],
          counts: Mapping[str, networks.Counts], wanted: int, used: Used
          ) -> int | None:
    """Count the free addresses of subnets; None if there may be enough."""
    if any(one.services for one in subnets):
        # The port may be of another zone than the subnet is reserved for.
        return None
    known = [counts[one.id] for one in subnets if one.id in counts]
    total = sum(one.total for one in known)
    free = total - sum(one.used for one in known)
    if len(known) < len(subnets) or free >= wanted:
        return None
    if not all(one.exact for one in known):
        free = total - used(subnets)
    elif any(one.used > one.total for one in known):
        return None
    return free if free < wanted else None
