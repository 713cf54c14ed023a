# SPDX-License-Identifier: Apache-2.0
"""The aggregates of nova and of placement, by name."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

from tests.cloud import cloud
from tests.cloud import seed

NO_HOST = '(none)'


@dataclasses.dataclass(frozen=True)
class Row:
    """A provider: the aggregates that nova requires, and placement's.

    Aggregates that are not nova's are kept apart and not compared.
    """

    node: seed.Node
    nova: frozenset[str]
    placement: frozenset[str]
    foreign: frozenset[str]

    @property
    def equal(self) -> bool:
        return self.nova == self.placement


class Observer:
    """A reader of nova and placement that remembers aggregate names.

    :param foreign: aggregates that are not nova's, by UUID
    """

    def __init__(self, running: cloud.Cloud,
                 foreign: dict[str, str]) -> None:
        self._nova = running.nova()
        self._placement = running.placement()
        self._foreign = foreign
        self._names = dict(foreign)

    def members(self) -> dict[str, frozenset[str]]:
        """Ask nova for the member hosts of each aggregate, by name."""
        answer = self._nova.get('/os-aggregates').json()['aggregates']
        # An aggregate that is deleted later keeps its last name.
        self._names.update((each['uuid'], each['name']) for each in answer)
        return {each['name']: frozenset(each['hosts']) for each in answer}

    def hosts(self, name: str) -> frozenset[str]:
        """Ask nova for the member hosts of an aggregate.

        :raises LookupError: nova has no such aggregate
        """
        members = self.members()
        if name not in members:
            raise LookupError('nova has no aggregate %s' % name)
        return members[name]

    def uuid(self, name: str) -> str:
        """Ask nova for the UUID of an aggregate.

        :raises LookupError: nova has no such aggregate
        """
        self.hosts(name)
        return {known: uuid for uuid, known in self._names.items()}[name]

    def identifier(self, name: str) -> int:
        """Ask nova for the number of an aggregate, which its API requires.

        :raises LookupError: nova has no such aggregate
        """
        answer = self._nova.get('/os-aggregates').json()['aggregates']
        found = [each['id'] for each in answer if each['name'] == name]
        if not found:
            raise LookupError('nova has no aggregate %s' % name)
        return found[0]

    def associations(self, node: seed.Node) -> frozenset[str]:
        """Ask placement for the aggregates of a provider, by name."""
        answer = self._placement.get(
            '/resource_providers/%s/aggregates' % node.uuid).json()
        return frozenset(self._names.get(uuid, uuid)
                         for uuid in answer['aggregates'])

    def compare(self, nodes: Iterable[seed.Node]) -> list[Row]:
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


def table(rows: Sequence[Row]) -> str:
    """Render a comparison for people."""
    cells = [('host', 'node', 'nova', 'placement', 'not nova\'s', '')]
    cells += [(row.node.host, row.node.name, names(row.nova),
               names(row.placement), names(row.foreign),
               'equal' if row.equal else 'DIFFERENT')
              for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ['  '.join(map(str.ljust, line, widths)).rstrip()
             for line in cells]
    lines.insert(1, '  '.join('-' * width for width in widths))
    return '\n'.join(lines)


def names(aggregates: Iterable[str]) -> str:
    """Render a set of names, in order."""
    return ', '.join(sorted(aggregates)) or '-'
