# SPDX-License-Identifier: Apache-2.0
"""Mappings and memberships of hosts, read from nova's API database."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import statements

# Values per IN list; every database that nova supports accepts this many.
CHUNK = 500


class HostData:
    """What nova's API database has about hosts; grows with each read."""

    def __init__(self) -> None:
        self.members: dict[str, frozenset[str]] = {}
        """Host to the UUIDs of its aggregates; only hosts that have any."""
        self.aggregates: dict[str, str] = {}
        """Their aggregates, UUID to name."""
        self.mapped: dict[str, cells.Cell] = {}
        """Host to the cell of its host mapping."""
        self._names: set[str] = set()

    @property
    def home(self) -> Mapping[str, str]:
        """Host to the name of the cell of its host mapping."""
        return {host: cell.name for host, cell in self.mapped.items()}

    def missing(self, rows: Iterable[source.NodeRow]) -> frozenset[str]:
        """Return the hosts of these nodes that were not read."""
        return frozenset(row.host for row in rows) - self._names

    def read(self, api: Any, hosts: frozenset[str]) -> None:
        """Read further hosts; names are compared exactly, unlike in MySQL."""
        members: dict[str, set[str]] = {}
        for chunk in chunks(hosts):
            for row in api.execute(statements.HOSTS, {'some': chunk}):
                if row.host in hosts:
                    self.mapped[row.host] = cells.cell_of(row)
                elif row.member in hosts:
                    members.setdefault(row.member, set()).add(row.aggregate)
                    self.aggregates[row.aggregate] = row.aggregate_name
        self._names |= hosts
        self.members.update(
            (host, frozenset(uuids)) for host, uuids in members.items())


def chunks(values: Iterable[str]) -> Iterator[list[str]]:
    """Split values into sorted lists of at most ``CHUNK``."""
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]
