# SPDX-License-Identifier: Apache-2.0
"""State of all of nova, read from nova's databases."""

from collections import abc
import dataclasses
import math
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cell_threads
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import host_database
from nova_aggregate_mirror.source import obstacles
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids

Zones = abc.Mapping[str, str]
ZONE = 'availability_zone'
services = sa.table(
    'services', sa.column('host', sa.String),
    # MariaDB reserves the word.
    sa.column(sa.sql.quoted_name('binary', quote=True), sa.String),
    sa.column('deleted', sa.Integer))
# Statements are built once, because building takes longer than executing.
_METADATA, _SERVICE = statements.aggregate_metadata.c, services.c
_AGGREGATE, _MEMBER = statements.AGGREGATE, statements.MEMBER
_HOST, _NODE = statements.HOST, statements.NODE
# A membership without a host is nobody's.
MEMBERS = sa.select(*statements.NAMED_AGGREGATE, _MEMBER.host).join_from(
    statements.aggregate_hosts, statements.aggregates,
    statements.IN_AGGREGATE,
).where(_MEMBER.host.is_not(None))
USED = sa.select(_AGGREGATE.uuid).distinct().join_from(
    statements.aggregate_hosts, statements.aggregates,
    statements.IN_AGGREGATE)
ZONES = sa.select(_AGGREGATE.uuid, _METADATA.key, _METADATA.value).join_from(
    statements.aggregates, statements.aggregate_metadata,
    _AGGREGATE.id == _METADATA.aggregate_id,
).where(_METADATA.key == ZONE)
MAPPED = sa.select(_HOST.host, _HOST.cell_id)
# Mapped hosts, if the database ignores case: only then are both equal.
SPELLINGS = sa.select(_HOST.host).where(
    sa.func.lower(_HOST.host) == sa.func.upper(_HOST.host))
NAMED_NODES = statements.NODES.with_only_columns(
    _NODE.hypervisor_hostname, _NODE.host)
SERVICES = sa.select(sa.null(), _SERVICE.host).where(
    _SERVICE.binary == 'nova-compute', _SERVICE.deleted == 0,
    _SERVICE.host.is_not(None))
GALERA = sa.text('SHOW GLOBAL STATUS LIKE \'wsrep_cluster_size\'')
SYNC_WAIT = sa.text('SHOW GLOBAL VARIABLES LIKE \'wsrep_sync_wait\'')
NODE_NAMES = sa.select(_NODE.uuid, _NODE.hypervisor_hostname).where(
    _NODE.deleted == 0, _NODE.hypervisor_hostname.is_not(None),
    statements.SPELLED)


class DatabaseSource(host_database.HostSource):
    """Nova's databases; the default source.

    :param limits: of each database; 60 seconds are nova's own limit for a cell
    :param threads: whether to read the cells in parallel
    :param skip_late: whether hosts of other cells wait little for a slow one
    """

    def __init__(self, limits: engines.Limits = engines.Limits(answer=60.0),
                 threads: bool = False, skip_late: bool = False) -> None:
        soon = latest = math.inf
        if skip_late:
            soon, latest = cell_threads.SOON, cell_threads.LATEST
        read = (cell_threads.Threads(limits.answer, latest).read if threads
                else cells.read_in_order)
        super().__init__(limits, dataclasses.replace(
            limits, answer=min(limits.answer, soon)), read)

    def with_hosts(self) -> frozenset[str]:
        with self._api.reading() as api:
            return frozenset(uuid for uuid, in api.execute(USED)
                             if uuids.is_uuid(uuid))

    def galera(self) -> tuple[int, int]:
        """Return the number of Galera nodes, and their ``wsrep_sync_wait``.

        The number is 0 if nova's API database is not in a cluster.
        """
        with self._api.reading() as api:
            if api.dialect.name not in ('mysql', 'mariadb'):
                return 0, 0
            return _number(api, GALERA), _number(api, SYNC_WAIT)

    def zones(self) -> Zones:
        """Read aggregate UUID to availability zone, where one is set."""
        with self._api.reading() as api:
            return {uuid: zone for uuid, key, zone in api.execute(ZONES)
                    if key == ZONE and uuids.is_uuid(uuid)}

    def read_all(self) -> source.Nova:
        with self._api.reading() as api:
            aggregates = source.Nova.of_aggregates([
                *api.execute(statements.AGGREGATES), *api.execute(MEMBERS)])
            by_id = {cell.id: cell for cell in self._cells.all(api)}
            mapped = {host: by_id[cell_id] for host, cell_id
                      in api.execute(MAPPED) if cell_id in by_id}
            members = aggregates.members
            # A member may have another spelling than the host.
            any_case = (api.execute(SPELLINGS)
                        if members.keys() - mapped.keys() else ())
            spellings = {host.casefold(): host for host, in any_case}
        rows, down = self._cells.rows(
            dict.fromkeys(by_id.values(), _every_node), full=True)
        homes = {host: cell.name for host, cell in mapped.items()}
        located = host_database.snapshot(
            aggregates, rows, homes, down, members)
        in_other_cells = {row.host for row in rows} - {
            row.host for row in rows if homes.get(row.host) == row.cell}
        unmapped = frozenset(
            host for host in members if host not in homes
            or (host in in_other_cells and homes[host] not in down))
        # Nova looks up a host mapping in MySQL, which ignores case.
        mapped_names = {host.casefold() for host in homes}
        nodes_unmapped = frozenset(
            node for node, host in located.nodes.items()
            if host.casefold() not in mapped_names)
        nova = dataclasses.replace(
            located, unmapped=unmapped, nodes_unmapped=nodes_unmapped,
            cells=len(by_id))
        if not nova.lost():
            return nova
        # Services, and nodes with their names instead of UUIDs.
        host_rows, silent = self._cells.rows(dict.fromkeys(
            (cell for cell in by_id.values() if cell.name not in down),
            _hosts), full=True)
        return dataclasses.replace(nova, obstacles=obstacles.find(
            nova, host_rows, mapped, spellings,
            is_complete=not (down or silent)))

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        def names_of(cell: Any) -> cells.Nodes:
            return [*engines.select(
                cell, NODE_NAMES, map(statements.spelled, nodes))]

        with self._api.reading() as api:
            existing = self._cells.all(api)
        rows, _down = self._cells.rows(
            dict.fromkeys(existing, names_of), full=True)
        # They have names instead of hosts.
        return {row.node: row.host for row in rows}


def _number(api: Any, statement: Any) -> int:
    """Return the value that SHOW has; 0 if the server does not know it."""
    row = api.execute(statement).one_or_none()
    return int(row[1]) if row else 0


def _every_node(cell: Any) -> cells.Nodes:
    return [*cell.execute(statements.NODES)]


def _hosts(cell: Any) -> cells.Nodes:
    """Return the hosts of compute nodes with their names, and of services."""
    return [*cell.execute(NAMED_NODES), *cell.execute(SERVICES)]
