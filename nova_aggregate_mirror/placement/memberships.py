# SPDX-License-Identifier: Apache-2.0
"""Which aggregates the providers are in, with as few requests as possible."""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
from typing import Protocol

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.placement import responses

MANY = 50
"""UUIDs per query: 2 KB of URL; the lowest limits of web servers are 4 KB."""


class Placement(Protocol):
    """The requests of the client that are used."""

    def providers(self) -> frozenset[str]:
        """Read the UUIDs of all resource providers."""

    def members(self, *aggregates: str) -> frozenset[str]:
        """Read the UUIDs of the providers in any of the aggregates."""

    def get(self, provider: str) -> responses.Provider:
        """Read the aggregates and the generation of a provider."""


def read(placement: Placement, aggregates: Iterable[str],
         unlikely: Iterable[str], each: parallel.Each, hosts: float
         ) -> Mapping[str, frozenset[str]]:
    """Read the members of aggregates; see ``client.Client.memberships``."""
    likely, rare = sorted(set(aggregates)), sorted(set(unlikely))
    chunks = [rare[start:start + MANY] for start in range(0, len(rare), MANY)]
    count = len(likely) + len(chunks)
    memberships: dict[str, set[str]] = {}
    if count > hosts + 1:
        providers = sorted(placement.providers())
        if count > len(providers):
            # A provider that cannot be read is in the lists of members.
            with contextlib.suppress(exceptions.MirrorError):
                return _of_each(
                    placement, providers, frozenset(likely + rare), each)
        memberships = {provider: set() for provider in providers}
    lists = each(lambda chunk: placement.members(*chunk), [
        *([aggregate] for aggregate in likely), *chunks])
    rare = [aggregate for chunk, members in zip(chunks, lists[len(likely):])
            if members for aggregate in chunk]
    members_of = {**dict(zip(likely, lists)),
                  **dict(zip(rare, each(placement.members, rare)))}
    for aggregate, members in members_of.items():
        for provider in members:
            memberships.setdefault(provider, set()).add(aggregate)
    return {provider: frozenset(memberships[provider])
            for provider in sorted(memberships)}


def _of_each(placement: Placement, providers: Iterable[str],
             which: frozenset[str], each: parallel.Each
             ) -> Mapping[str, frozenset[str]]:
    """Read which of these aggregates each of these providers is in."""
    def get(provider: str) -> responses.Provider | None:
        try:
            return placement.get(provider)
        except exceptions.ProviderNotFound:
            # It was deleted after the list was read.
            return None

    return {state.uuid: state.aggregates & which
            for state in each(get, providers) if state}
