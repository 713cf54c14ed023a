# SPDX-License-Identifier: Apache-2.0
"""The aggregates of nova and of placement, by name."""

from collections import abc
import dataclasses

from tests.cloud import cloud
from tests.cloud import output
from tests.cloud import seed
from tests import patience

POLL = 0.5


@dataclasses.dataclass(frozen=True)
class Row:
    """A provider's aggregates in nova and in placement, others apart."""

    node: seed.Node
    nova: frozenset[str]
    placement: frozenset[str]
    foreign: frozenset[str]

    @property
    def equal(self) -> bool:
        return self.nova == self.placement


class Observer:
    """A reader of nova and placement that remembers aggregate names."""

    def __init__(self, running: cloud.Cloud, foreign: dict[str, str]) -> None:
        self._cloud = running
        self._foreign = foreign
        self._names = dict(foreign)

    def members(self) -> dict[str, frozenset[str]]:
        """Ask nova for the member hosts of each aggregate, by name."""
        aggregates = self._cloud.aggregates()
        # An aggregate that is deleted later keeps its last name.
        self._names.update((aggregate['uuid'], name)
                           for name, aggregate in aggregates.items())
        return {name: frozenset(aggregate['hosts'])
                for name, aggregate in aggregates.items()}

    def associations(self, node: seed.Node) -> frozenset[str]:
        """Ask placement for the aggregates of a provider, by name."""
        return frozenset(
            self._names.get(uuid, uuid)
            for uuid in self._cloud.associations(node.uuid) or ())

    def compare(self, nodes: abc.Iterable[seed.Node]) -> list[Row]:
        """Compare nova's aggregates with placement's, per provider."""
        members = self.members()
        foreign = frozenset(self._foreign.values())
        rows = []
        for node in nodes:
            found = self.associations(node)
            wanted = frozenset(name for name, hosts in members.items()
                               if node.host in hosts)
            rows.append(Row(node, wanted, found - foreign, found & foreign))
        return rows


def compared(running: cloud.Cloud, foreign: dict[str, str],
             within: float = 0.0) -> list[Row]:
    """Compare all nodes, again for some seconds until none differs."""
    rows: list[Row] = []

    def equal() -> bool:
        rows[:] = Observer(running, foreign).compare(running.nodes())
        return all(row.equal for row in rows)

    patience.wait(equal, within, POLL)
    return rows


def table(rows: abc.Sequence[Row]) -> str:
    """Render a comparison for people."""
    header = ('host', 'node', 'nova', 'placement', 'not nova\'s', '')
    cells = [(row.node.host, row.node.name, names(row.nova),
              names(row.placement), names(row.foreign),
              'equal' if row.equal else 'DIFFERENT') for row in rows]
    return output.columns([header, *cells])


def names(aggregates: abc.Iterable[str]) -> str:
    """Render a set of names, in order."""
    return ', '.join(sorted(aggregates)) or '-'
