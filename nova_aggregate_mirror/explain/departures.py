# SPDX-License-Identifier: Apache-2.0
"""Servers that are to leave a host, and where each would go: pure."""

import collections
from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

FOUND, NO_HOST, NOT_MOVABLE = 'found', 'no_host', 'not_movable'
"""Kinds of departures."""
SIZE = 'size'
ORDERS: abc.Mapping[str, abc.Callable[[Any], Any]] = {
    SIZE: lambda server: (-server.flavor.memory_mb, -server.flavor.vcpus,
                          server.display_name),
    'name': lambda server: server.display_name}
"""Orders of the moves; the largest server is the hardest to place."""
TABLE = ('Server', 'State', 'Operation', 'Flavor', 'Host, or why none')
COLUMNS = ('Server', 'ID', 'State', 'Operation', 'Flavor', 'Destination',
           'Reason')
PAGE = 'departures'  # The template.
ORDER = ('Make the moves in this order: end each, and confirm a cold '
         'migration, before the next.')


@dataclasses.dataclass(frozen=True)
class Departure:
    """A server, and the host that nova-scheduler finds for it in its turn."""

    server: str
    """Its UUID."""
    name: str
    state: str
    """Nova's ``vm_state``."""
    operation: str
    """How it is moved; empty if it cannot be now."""
    flavor: str
    destination: str = ''
    same_weight: abc.Sequence[str] = ()
    """The hosts of the largest weight; nova takes one of them."""
    reason: str = ''
    """Why there is no destination."""
    first: str = ''
    """The host that it would find if it went first."""

    @property
    def kind(self) -> str:
        if not self.operation:
            return NOT_MOVABLE
        return FOUND if self.destination else NO_HOST


@dataclasses.dataclass(frozen=True)
class Answer:
    """Where the servers of a host go, in the order of their moves."""

    host: str
    departures: abc.Sequence[Departure]
    remarks: abc.Sequence[str] = ()
    cells_down: bool = False
    interrupted = False
    """Ctrl-C ends the command, without an answer."""
    not_looked_at = ('volumes, addresses, and what nova-conductor and '
                     'nova-compute check of both hosts before a live '
                     'migration')

    @property
    def possible(self) -> bool:
        """Check whether every server finds a host."""
        return all(server.destination for server in self.departures)

    def of_kind(self, kind: str) -> list[Departure]:
        return [server for server in self.departures if server.kind == kind]


def sentence(answer: Answer) -> str:
    """Return how many servers find a host, and why the others do not."""
    total = len(answer.departures)
    if not total:
        return 'No server is on %s' % answer.host
    find = plurals.count(total, 'server finds', 'servers find')
    text = '%d of %s a host' % (len(answer.of_kind(FOUND)), find)
    missing, staying = answer.of_kind(NO_HOST), answer.of_kind(NOT_MOVABLE)
    if missing:
        names = ['%s (%s)' % (server.name, server.reason)
                 for server in missing]
        do_not = plurals.count(len(missing), 'does not', 'do not')
        text += '; %s: %s' % (
            do_not, plurals.first(names, explanation.SENTENCE_NAMES))
    if staying:
        counts = collections.Counter(server.reason for server in staying)
        reasons = ['%d %s' % (count, reason)
                   for reason, count in counts.most_common()]
        text += '; %d cannot be moved now (%s)' % (
            len(staying), ', '.join(reasons))
    return text


def text(answer: Answer, tables: bool = True) -> str:
    """Render the answer, perhaps with a row for each server."""
    omission = 'Not looked at: %s.' % answer.not_looked_at
    parts = [*map(explanation.paragraph, answer.remarks),
             printable.line(sentence(answer)),
             *map(explanation.paragraph, (omission, ORDER))]
    if tables and answer.departures:
        cells = [(server.name, server.state, server.operation or '-',
                  server.flavor, server.destination or server.reason)
                 for server in answer.departures]
        parts.append(terminal_tables.render(TABLE, cells))
    return '\n\n'.join(parts)


def rows(answer: Answer) -> list[abc.Sequence[str]]:
    """Return rows for ``COLUMNS``."""
    return [(server.name, server.server, server.state, server.operation,
             server.flavor, server.destination, server.reason)
            for server in answer.departures]


def document(answer: Answer) -> dict[str, Any]:
    """Return a JSON object; its keys are documented with the command."""
    return {
        'remarks': list(answer.remarks), 'summary': sentence(answer),
        'not_looked_at': answer.not_looked_at, 'host': answer.host,
        'servers': [{**dataclasses.asdict(server), 'kind': server.kind}
                    for server in answer.departures]}
