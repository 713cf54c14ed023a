# SPDX-License-Identifier: Apache-2.0
"""Nova's databases as the real source reads them, statement by statement."""

import collections
from collections import abc
import contextlib
from typing import Any

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import statements
from tests.simulation import nova as simulated_nova
from tests.simulation import threads
from tests.simulation import world as simulated

# How a cell may be bad, and the seconds until it answers or refuses.
REFUSES, SLOW, SILENT = 'refuses', 'is slow', 'is silent'
SECONDS = {REFUSES: 0.0, SLOW: 6.0, SILENT: float('inf')}

_Host = collections.namedtuple(
    '_Host', 'host id uuid name database_connection member aggregate_id '
    'aggregate aggregate_name', defaults=[None] * 9)
NUMBER = 0
"""ID of each aggregate: only those without a UUID are identified by it."""
_Cell = collections.namedtuple('_Cell', 'id uuid name database_connection')

Values = abc.Mapping[str, Any]
Answer = abc.Callable[[Values], abc.Iterable[Any]]
Answers = abc.Mapping[Any, Answer]


class Rows(list):
    """The result of a statement."""

    def all(self) -> 'Rows':
        return self


class Connection:
    """A connection on which each statement has a function that answers it."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def execute(self, statement: Any, values: Values = {}) -> Rows:
        return Rows(self._answers[statement](values))


class Api:
    """Nova's API database, as ``connections.api_database``."""

    def __init__(self, world: simulated.World, nova: simulated_nova.Nova
                 ) -> None:
        self._world = world
        self._nova = nova
        answers: Answers = {
            statements.HOSTS: self._hosts,
            statements.EXISTING: self._existing,
            statements.AGGREGATES: lambda _values: [
                (NUMBER, uuid, uuid) for uuid in nova.hosts_of],
            database.USED: lambda _values: [
                (uuid,) for uuid, hosts in nova.hosts_of.items() if hosts],
            database.MEMBERS: self._members,
            database.MAPPED: self._mapped,
            database.HOSTS_IF_CASE_IGNORED: lambda _values: [
                (host,) for host in nova.homes],
            statements.CELLS: lambda _values: map(_cell, simulated_nova.CELLS)}
        self._connection = Connection(answers)

    @contextlib.contextmanager
    def reading(self) -> abc.Iterator[Connection]:
        self._world.give_way('read of the API database')
        if self._world.down == 'nova' or self._world.fault(0.02):
            raise exceptions.NovaUnavailable('nova is unavailable')
        yield self._connection

    def _hosts(self, values: Values) -> abc.Iterator[_Host]:
        for host in values['some']:
            if host in self._nova.homes:
                yield _Host(host, *_cell(self._nova.homes[host]))
            for name, hosts in self._nova.hosts_of.items():
                if host in hosts:
                    yield _Host(member=host, aggregate_id=NUMBER,
                                aggregate=name, aggregate_name=name)
        uuid = self._nova.ids.get(values.get('id'))
        if uuid in self._nova.hosts_of:
            yield _Host(aggregate_id=NUMBER, aggregate=uuid)

    def _members(self, _values: Values) -> abc.Iterator[tuple[Any, ...]]:
        for uuid, hosts in self._nova.hosts_of.items():
            for host in hosts:
                yield NUMBER, uuid, uuid, host

    def _mapped(self, _values: Values) -> abc.Iterator[tuple[Any, ...]]:
        for host, cell in self._nova.homes.items():
            yield host, _cell(cell).id

    def _existing(self, values: Values) -> abc.Iterator[tuple[Any, ...]]:
        return ((NUMBER, uuid, uuid) for uuid in values['some']
                if uuid in self._nova.hosts_of)


class Cells(cells.Cells):
    """The real cells, with databases that may be bad."""

    def __init__(self, clock: threads.Clock, nova: simulated_nova.Nova,
                 *arguments: Any) -> None:
        super().__init__(*arguments)
        self._clock = clock
        self._nova = nova

    def rows(self, *arguments: Any, **options: Any) -> Any:
        # A later transaction than that in the API database.
        self._clock.world.give_way('read of cells')
        self._clock.catch_up()
        return super().rows(*arguments, **options)

    def _read(self, cell: cells.Cell, query: abc.Callable[[Any], Any],
              patient: bool) -> Any:
        fault = self._nova.bad_cells.get(cell.connection)
        if fault:
            limits = self._limits if patient else self._limits_some
            seconds = SECONDS[fault]
            # The driver gives up after that.
            self._clock.wait(min(seconds, limits.timeout))
            if fault == REFUSES or seconds > limits.timeout:
                return exceptions.CellUnavailable.of(
                    causes.FAILED.with_detail(fault), cell.party)
        nodes = self._nova.nodes_in(cell.connection)
        names = {node: 'name of ' + node for node in nodes}
        answers: Answers = {
            statements.NODES: lambda _values: nodes.items(),
            statements.NODES_OF: _some(nodes.items(), 1),
            statements.THESE_NODES: _some(nodes.items(), 0),
            database.NAMED_NODES: lambda _values: zip(
                names.values(), nodes.values()),
            database.SERVICES: lambda _values: [
                (None, host) for host in nodes.values()],
            database.NODE_NAMES: _some(names.items(), 0)}
        return query(Connection(answers))


def _some(rows: abc.Collection[tuple[str, ...]], column: int) -> Answer:
    """Return what selects the rows with one of some values in a column."""
    return lambda values: [row for row in rows
                           if row[column] in values['some']]


def source(clock: threads.Clock, nova: simulated_nova.Nova,
           limits: engines.Limits, threaded: bool = False,
           skip_late: bool = False) -> database.DatabaseSource:
    """Build the real source, on the databases of a schedule."""
    made = database.DatabaseSource(limits, threaded, skip_late)
    made._api = Api(clock.world, nova)
    made._cells = Cells(
        clock, nova, limits, made._cells._limits_some,
        made._cells._read_cells)
    return made


def _cell(name: str) -> _Cell:
    number = simulated_nova.CELLS.index(name) + 1
    return _Cell(number, 'cell-%d' % number, name, name)
