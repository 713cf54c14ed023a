# SPDX-License-Identifier: Apache-2.0
"""State of all of nova, read from nova's databases."""

import collections
from collections import abc
import dataclasses
import math
import shlex
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cell_threads
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import host_database
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids

Zones = abc.Mapping[str, str]
ZONE = 'availability_zone'
services = sa.table(
    'services', sa.column('host', sa.String),
    # MariaDB reserves the word.
    sa.column(sa.sql.quoted_name('binary', quote=True), sa.String),
    sa.column('deleted', sa.Integer))
_SERVICE, _HOST, _NODE = services.c, statements.HOST, statements.NODE
# A membership without a host is nobody's.
MEMBERS = statements.MEMBERSHIPS.where(statements.MEMBER.host.is_not(None))
USED = statements.MEMBERSHIPS.with_only_columns(
    statements.AGGREGATE.uuid).distinct()
ZONES = statements.VALUES.where(statements.METADATA.key == ZONE)
MAPPED = sa.select(_HOST.host, _HOST.cell_id)
# Mapped hosts, if the database ignores case: only then are both equal.
HOSTS_IF_CASE_IGNORED = sa.select(_HOST.host).where(
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
# Without the option it finds no node that was mapped before.
DISCOVER = 'nova-manage cell_v2 discover_hosts --by-service'
MAP = 'run "%s"' % DISCOVER
MAP_AGAIN = ('run "nova-manage cell_v2 delete_host --cell_uuid %s --host %s", '
             'then "' + DISCOVER + '"')
MOVED = ('if it belongs in cell %s, %s, and send SIGHUP to nova-scheduler; if '
         'not, correct transport_url in nova.conf of its nova-compute')
_BACKUP = 'back up nova\'s API database, '
RENAME = ('if {new} is to stay and "openstack server list --all-projects '
          '--host {old}" lists none, ' + _BACKUP + 'replace {old} by {new} in '
          'the rows of its table aggregate_hosts, {map}, and restart '
          'nova-scheduler; otherwise stop its nova-compute, back up the '
          'database of its cell, replace {new} by {old} as host in its tables '
          'compute_nodes, instances and, unless {old} has a row there, '
          'services, set "host = {old}" in nova.conf of that nova-compute, '
          'and start it')
REMOVE = ('if it does not return, ' + _BACKUP + 'and delete the rows of the '
          'host in its table aggregate_hosts')


class DatabaseSource(host_database.HostSource):
    """Nova's databases; the default source.

    :param limits: of each database; 60 seconds are nova's own limit for a cell
    :param threads: whether to read the cells in parallel
    :param skip_late: whether to give up a slow cell soon, for some hosts, so
        that hosts of other cells need not wait for it
    """

    def __init__(self, limits: engines.Limits = engines.Limits(timeout=60.0),
                 threads: bool = False, skip_late: bool = False) -> None:
        soon = latest = math.inf
        if skip_late:
            soon, latest = cell_threads.SOON, cell_threads.LATEST
        read = (cell_threads.Threads(limits.timeout, latest).read if threads
                else cells.read_in_order)
        super().__init__(limits, dataclasses.replace(
            limits, timeout=min(limits.timeout, soon)), read)

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
            return {uuid: zone for _id, uuid, key, zone in api.execute(ZONES)
                    if key == ZONE and uuids.is_uuid(uuid)}

    def read_all(self) -> source.Nova:
        with self._api.reading() as api:
            aggregates = source.Nova.of_aggregates([
                *api.execute(statements.AGGREGATES), *api.execute(MEMBERS)])
            by_id = {cell.id: cell for cell in self._cells.all(api)}
            mapped = {host: by_id[cell_id] for host, cell_id
                      in api.execute(MAPPED) if cell_id in by_id}
            members = aggregates.members
            # Where the database ignores case, the mapping of member ``Host1``
            # may be that of ``host1``.
            spellings: dict[str, str] = {}
            if members.keys() - mapped.keys():
                spellings = {host.casefold(): host for (host,)
                             in api.execute(HOSTS_IF_CASE_IGNORED)}
        queries = dict.fromkeys(
            by_id.values(), lambda cell: cell.execute(statements.NODES).all())
        rows, down = self._cells.rows(queries, patient=True)
        homes = {host: cell.name for host, cell in mapped.items()}
        located = host_database.snapshot(
            aggregates, rows, homes, down, members)
        # Hosts with compute nodes, but none in the cell of their mapping.
        not_at_home = {row.host for row in rows} - {
            row.host for row in rows if homes.get(row.host) == row.cell}
        unmapped = frozenset(
            host for host in members if host not in homes
            or (host in not_at_home and homes[host] not in down))
        # Nova looks up a host mapping in MySQL, which ignores case.
        mapped_names = {host.casefold() for host in homes}
        nodes_unmapped = frozenset(
            node for node, host in located.nodes.items()
            if host.casefold() not in mapped_names)
        nova = dataclasses.replace(
            located, unmapped=unmapped, nodes_unmapped=nodes_unmapped,
            cells=len(by_id))
        if not nova.unmapped_or_nodeless():
            return nova
        # The obstacles show in the services and the names of compute nodes.
        answering = [cell for cell in by_id.values() if cell.name not in down]
        host_rows, silent = self._cells.rows(
            dict.fromkeys(answering, _named_hosts), patient=True)
        return dataclasses.replace(nova, obstacles=_obstacles(
            nova, host_rows, mapped, spellings,
            is_complete=not (down or silent)))

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        def names_of(cell: Any) -> cells.Nodes:
            return [*engines.select(
                cell, NODE_NAMES, map(statements.comparable, nodes))]

        with self._api.reading() as api:
            existing = self._cells.all(api)
        rows, _down = self._cells.rows(
            dict.fromkeys(existing, names_of), patient=True)
        # These rows have names instead of hosts.
        return {row.node: row.host for row in rows}


def _number(api: Any, statement: Any) -> int:
    """Return the value that SHOW has; 0 if the server does not know it."""
    row = api.execute(statement).one_or_none()
    return int(row[1]) if row else 0


def _named_hosts(cell: Any) -> cells.Nodes:
    """Return the hosts of compute nodes with their names, and of services."""
    return [*cell.execute(NAMED_NODES), *cell.execute(SERVICES)]


def _obstacles(nova: source.Nova, rows: abc.Iterable[source.NodeRow],
               mapped: abc.Mapping[str, cells.Cell],
               spellings: abc.Mapping[str, str], is_complete: bool
               ) -> abc.Mapping[str, tuple[str, str]]:
    """Describe what is wrong with each host, as far as that is known.

    :param rows: of services, without ``node``; and of compute nodes, with
        their names as ``node``
    :param spellings: mapped hosts that are found in each case, by lower case
    :param is_complete: whether the rows are those of all cells
    """
    cells_by_host = collections.defaultdict[str, set[str]](set)
    hosts_by_label = collections.defaultdict[str, set[str]](set)
    for row in rows:
        cells_by_host[row.host].add(row.cell)
        if row.node:
            hosts_by_label[_label(row.node)].add(row.host)
            hosts_by_label[_label(row.host)].add(row.host)
    obstacles: dict[str, tuple[str, str]] = {}
    for host in nova.unmapped_or_nodeless():
        cell = mapped.get(host)
        in_cells = cells_by_host[host]
        step = MAP_AGAIN % (cell.uuid, shlex.quote(host)) if cell else MAP
        spelling = spellings.get(host.casefold(), host)
        alike = hosts_by_label[_label(host)] if is_complete else set()
        if spelling != host:
            obstacles[host] = _misspelt(nova, host, spelling)
        elif alike and host not in alike:
            new = plurals.some(alike)
            obstacles[host] = (
                'no compute node, and nova has host ' + new,
                RENAME.format(old=host, new=new, map=step))
        elif in_cells and cell and cell.name not in in_cells:
            place = plurals.some(in_cells)
            obstacles[host] = (
                'mapped to cell %s, and its nova-compute is in cell %s'
                % (cell.name, place), MOVED % (place, step))
        elif in_cells and cell:
            obstacles[host] = 'no compute node', source.RESTART
        elif in_cells:
            obstacles[host] = 'no host mapping', step
        elif is_complete:
            obstacles[host] = (
                'neither nova-compute nor compute node, so that nova-api '
                'answers 404 to its removal', REMOVE)
    return obstacles


def _label(name: str) -> str:
    """Return a name without its domain."""
    return name.partition('.')[0]


def _misspelt(nova: source.Nova, host: str, spelling: str) -> tuple[str, str]:
    """Describe a member that nova spells in another case elsewhere."""
    commands = []
    for name in sorted(nova.aggregates[uuid] for uuid in nova.members[host]):
        for action, member in (('remove', host), ('add', spelling)):
            commands.append('"openstack aggregate %s host %s %s"' % (
                action, shlex.quote(name), shlex.quote(member)))
    return ('nova has this member as host ' + spelling,
            'run ' + ', then '.join(commands))
