# SPDX-License-Identifier: Apache-2.0
"""Comparison of an aggregate in nova and in placement: pure, no I/O."""

from collections.abc import Iterable
import dataclasses

from nova_aggregate_mirror import source

MIRRORED = 'mirrored'
MISSING = 'missing'
STALE = 'stale'
PENDING = 'pending'
NO_NODE = 'no compute node'
CELL_DOWN = 'cell down'
DISPUTED = 'disputed'
OTHER = 'other provider'

STATES = (MIRRORED, MISSING, STALE, PENDING, NO_NODE, CELL_DOWN, DISPUTED,
          OTHER)
"""States of an association."""

DIFFERS = 'differs'
"""State of an aggregate with a missing or a stale association."""


@dataclasses.dataclass(frozen=True, order=True)
class Association:
    """A provider in an aggregate, or a member host without a provider."""

    host: str
    """Empty for a provider that nova-api does not list as a compute node."""
    provider: str
    """Empty for a host for which nova-api lists no compute node."""
    in_nova: bool
    in_placement: bool
    state: str


def associations(uuid: str, nova: source.Nova, current: source.Memberships
                 ) -> list[Association]:
    """List everything that is in an aggregate in nova or in placement.

    :param current: every provider of placement, to its aggregates
    """
    shown = nova.hosts()
    found = [
        Association(host, '', True, False,
                    CELL_DOWN if host in nova.hosts_down else NO_NODE)
        for host, aggregates in nova.members.items()
        if uuid in aggregates and host not in shown]
    for provider in nova.nodes.keys() | current.keys():
        ours = uuid in nova.wanted(provider)
        theirs = uuid in current.get(provider, ())
        if uuid in nova.disputed(provider):
            found += [Association(host, provider, uuid in nova.members.get(
                host, ()), theirs, DISPUTED)
                for host in nova.hosts_of(provider)]
        elif ours or theirs:
            status = _state(ours, theirs, provider in nova.nodes,
                            provider in current)
            found += [Association(host, provider, ours, theirs, status)
                      for host in nova.hosts_of(provider) or {''}]
    return sorted(found)


def _state(ours: bool, theirs: bool, node: bool, exists: bool) -> str:
    if ours and theirs:
        return MIRRORED
    if ours:
        return MISSING if exists else PENDING
    return STALE if node else OTHER


def state(found: Iterable[Association]) -> str:
    """Return the state of the aggregate; what a sync repairs comes first."""
    states = {one.state for one in found}
    if states & {MISSING, STALE}:
        return DIFFERS
    return next((one for one in (DISPUTED, CELL_DOWN, NO_NODE, PENDING)
                 if one in states), MIRRORED)
