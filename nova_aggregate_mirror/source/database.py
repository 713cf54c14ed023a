# SPDX-License-Identifier: Apache-2.0
"""What nova wants, read from nova's databases through narrow queries."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
from typing import Any

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells as nova_cells

# Every database that nova supports takes so many values in one IN list.
CHUNK = 500

Aggregate = api_models.Aggregate
AggregateHost = api_models.AggregateHost
HostMapping = api_models.HostMapping
ComputeNode = main_models.ComputeNode


class DatabaseSource:
    """Nova's own databases; the default source.

    Each read is a new transaction on the writer, so that it sees whatever was
    committed before it. Names are compared in Python: MySQL's collation
    ignores case and trailing spaces, the scheduler does not.

    :param run: how several cells are read: ``cells.in_turn`` inside nova-api,
        ``cells.bounded(timeout)`` in a process of our own
    """

    def __init__(self, run: Callable[[nova_cells.Reads], nova_cells.Answers]
                 = nova_cells.in_turn) -> None:
        self._cells = nova_cells.Cells(run)

    def aggregate_uuid(self, aggregate_id: int) -> str | None:
        with _api_session() as session:
            return session.scalar(
                sa.select(Aggregate.uuid).where(Aggregate.id == aggregate_id))

    def aggregates(self) -> Mapping[str, str]:
        with _api_session() as session:
            return _aggregates(session)

    def nodes_of(self, host: str) -> frozenset[str]:
        """UUIDs of the compute nodes of one host, in whichever cell.

        :raises CellUnavailable: when a cell that may have some is away
        """
        nova = self.read([host])
        if nova.cells_down:
            raise exceptions.CellUnavailable('; '.join(
                'cell %s: %s' % cell for cell in nova.cells_down.items()))
        return frozenset(nova.nodes)

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        with _api_session() as session:
            existing = _existing(session, frozenset(aggregates))
            members = _members(session, hosts)
            mapped = _mapped(session, hosts)
            cells = self._cells.all(session)
        found, down = self._find(hosts, nodes, mapped, cells)
        moved = frozenset(found.values()) - hosts
        if moved:
            with _api_session() as session:
                members.update(_members(session, moved))
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=hosts & frozenset(members) - frozenset(mapped),
            cells_down=down, hosts_down=_hidden(hosts, mapped, cells, down))

    def read_all(self) -> source.Nova:
        with _api_session() as session:
            existing = _aggregates(session)
            members = _members(session)
            mapped = _mapped(session, frozenset(members))
            cells = self._cells.all(session)
        found, down = self._cells.nodes(
            cells, lambda session: dict(session.execute(_nodes()).all()))
        return source.Nova(
            aggregates=existing, members=members, nodes=found,
            unmapped=frozenset(members) - frozenset(mapped), cells_down=down,
            hosts_down=_hidden(frozenset(members), mapped, cells, down))

    def _find(self, hosts: frozenset[str], nodes: frozenset[str],
              mapped: Mapping[str, int], cells: list[nova_cells.Cell]
              ) -> tuple[nova_cells.Nodes, Mapping[str, str]]:
        """Nodes of these hosts, and these nodes: mapped cells, then others.

        A node that its host's cell does not have may have come up in another
        one: it is gone only when every cell has said so.
        """
        likely = set(mapped.values())
        if not hosts <= mapped.keys():
            likely = {cell.id for cell in cells}
        found, down = self._cells.nodes(
            [cell for cell in cells if cell.id in likely],
            lambda session: _find_nodes(session, hosts, nodes))
        missing = nodes - found.keys()
        if missing:
            elsewhere, also_down = self._cells.nodes(
                [cell for cell in cells if cell.id not in likely],
                lambda session: _find_nodes(session, frozenset(), missing))
            found, down = {**elsewhere, **found}, {**also_down, **down}
        return found, down


@contextlib.contextmanager
def _api_session() -> Iterator[Any]:
    """A new read transaction on the writer of nova's API database.

    :raises NovaUnavailable: when it cannot be read
    """
    try:
        with api_db.context_manager.reader.using(
                nova_context.get_admin_context()) as session:
            yield session
    except nova_cells.DATABASE_ERRORS as exc:
        raise exceptions.NovaUnavailable(
            'nova\'s API database could not be read: %s'
            % nova_cells.reason(exc)) from exc


def _chunks(values: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]


def _aggregates(session: Any) -> dict[str, str]:
    return dict(session.execute(
        sa.select(Aggregate.uuid, Aggregate.name)).all())


def _existing(session: Any, uuids: frozenset[str]) -> dict[str, str]:
    query = sa.select(Aggregate.uuid, Aggregate.name)
    found: dict[str, str] = {}
    for chunk in _chunks(uuids):
        found.update(session.execute(
            query.where(Aggregate.uuid.in_(chunk))).all())
    return found


def _members(session: Any, hosts: frozenset[str] | None = None
             ) -> dict[str, frozenset[str]]:
    """Host to aggregate UUIDs; None means every host."""
    query = sa.select(AggregateHost.host, Aggregate.uuid).join(
        Aggregate, Aggregate.id == AggregateHost.aggregate_id)
    if hosts is None:
        rows = session.execute(query).all()
    else:
        rows = [row for chunk in _chunks(hosts) for row in session.execute(
            query.where(AggregateHost.host.in_(chunk))) if row.host in hosts]
    members: dict[str, set[str]] = {}
    for host, uuid in rows:
        members.setdefault(host, set()).add(uuid)
    return {host: frozenset(uuids) for host, uuids in members.items()}


def _mapped(session: Any, hosts: frozenset[str]) -> dict[str, int]:
    """Host to the id of its cell, for the hosts that have a mapping."""
    query = sa.select(HostMapping.host, HostMapping.cell_id)
    return {host: cell_id for chunk in _chunks(hosts)
            for host, cell_id in session.execute(
                query.where(HostMapping.host.in_(chunk))) if host in hosts}


def _nodes() -> sa.sql.Select:
    # A node without a host was never finished by its nova-compute.
    return sa.select(ComputeNode.uuid, ComputeNode.host).where(
        ComputeNode.deleted == 0, ComputeNode.uuid.is_not(None),
        ComputeNode.host.is_not(None))


def _find_nodes(session: Any, hosts: frozenset[str],
                nodes: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in _chunks(hosts):
        found.update((uuid, host) for uuid, host in session.execute(
            _nodes().where(ComputeNode.host.in_(chunk))) if host in hosts)
    for chunk in _chunks(nodes - found.keys()):
        found.update(session.execute(
            _nodes().where(ComputeNode.uuid.in_(chunk))).all())
    return found


def _hidden(hosts: frozenset[str], mapped: Mapping[str, int],
            cells: list[nova_cells.Cell],
            down: Mapping[str, str]) -> frozenset[str]:
    """Hosts of which a compute node may be in a cell that did not answer."""
    ids_down = {cell.id for cell in cells if cell.name in down}
    return frozenset(host for host in hosts
                     if mapped.get(host) in ids_down
                     or (ids_down and host not in mapped))
