# SPDX-License-Identifier: Apache-2.0
"""Aggregates from rows of nova: with a UUID, or apart if they have none."""

from collections import abc
from typing import Any

from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids


class AggregateRows:
    """Aggregates and their member hosts; grows with each row.

    Every reader of nova uses it, so that a text that is no UUID is in no
    request to placement and in no ledger.

    :param rows: each with the arguments of ``add``
    """

    def __init__(self, rows: abc.Iterable[abc.Sequence[Any]] = ()) -> None:
        self.names: dict[str, str] = {}
        """UUID to name."""
        self.members: dict[str, frozenset[str]] = {}
        """Host to the UUIDs of its aggregates; only hosts that have any."""
        self._invalid: dict[tuple[str, int, str | None], set[str]] = {}
        for row in rows:
            self.add(*row)

    def add(self, number: int, uuid: str | None, name: str | None,
            host: str = '') -> None:
        """Add a row: an aggregate, or one more member of it.

        :param number: its ID
        :param host: a member; empty if the row has none
        """
        if uuid not in self.names:
            name = source.aggregate_name(name)
            if uuid is None or not uuids.is_uuid(uuid):
                hosts = self._invalid.setdefault((name, number, uuid), set())
                hosts.update([host] if host else [])
                return
            self.names[uuid] = name
        if host:
            earlier = self.members.get(host, frozenset())
            self.members[host] = earlier | {uuid}

    @property
    def invalid(self) -> frozenset[source.HostAggregate]:
        return frozenset(
            source.HostAggregate(*aggregate, frozenset(hosts))
            for aggregate, hosts in self._invalid.items())
