# SPDX-License-Identifier: Apache-2.0
"""Aggregates from rows of nova: with a UUID, or apart if they have none."""

from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids


class AggregateRows:
    """Aggregates and their member hosts; grows with each row.

    Every reader of nova uses it, so that a text that is no UUID is in no
    request to placement and in no ledger.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """UUID to name."""
        self._members: dict[str, set[str]] = {}
        self._invalid: dict[int, source.InvalidAggregate] = {}
        """ID to aggregate."""

    def add(self, number: int, uuid: str | None, name: str | None,
            host: str = '') -> None:
        """Add a row: an aggregate, or one more member of it.

        :param number: its ID
        :param host: a member; empty if the row has none
        """
        if uuid not in self.names:
            if uuid is None or not uuids.is_uuid(uuid):
                hosts = frozenset([host] if host else [])
                if number in self._invalid:
                    hosts |= self._invalid[number].hosts
                self._invalid[number] = source.InvalidAggregate(
                    source.aggregate_name(name), number, uuid, hosts)
                return
            self.names[uuid] = source.aggregate_name(name)
        if host:
            self._members.setdefault(host, set()).add(uuid)

    @property
    def members(self) -> source.Memberships:
        """Host to the UUIDs of its aggregates; only hosts that have any."""
        return {host: frozenset(aggregates)
                for host, aggregates in self._members.items()}

    @property
    def invalid(self) -> frozenset[source.InvalidAggregate]:
        return frozenset(self._invalid.values())
