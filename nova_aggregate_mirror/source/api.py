# SPDX-License-Identifier: Apache-2.0
"""State of nova, read from the compute API.

The API shows less than nova's databases. A compute node that is not listed may
be deleted, on an unmapped host, or in a cell that is down, so it is never
treated as a node without aggregates.
"""

from collections import abc
import contextlib
import dataclasses

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api_connection
from nova_aggregate_mirror.source import node_locations
from nova_aggregate_mirror import uuids

UNLISTED = ('no compute node that nova-api lists', 'start nova-compute on '
            'that host; if "openstack compute service list" has it as up, run '
            '"nova-aggregate-mirror-status upgrade check" on a controller')
"""About a host: only the databases show how it is mapped."""
UNKNOWN = 'UNKNOWN'
"""Status of the services of a cell that is down."""


class ApiSource:
    """Nova's REST API, for administrators without access to the databases."""

    def __init__(self, api: api_connection.Api) -> None:
        self._api = api

    def aggregates(self) -> abc.Mapping[str, str]:
        return _collected(self.all_aggregates()).aggregates

    def with_hosts(self) -> frozenset[str]:
        members = _collected(self.all_aggregates()).members
        return frozenset[str]().union(*members.values())

    def all_aggregates(self) -> list[api_connection.ListedAggregate]:
        """Read every aggregate; the API does not paginate them."""
        return self._api.entries(
            '/os-aggregates', 'aggregates', api_connection.aggregate)

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: source.Down | None = None) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        requested = frozenset(aggregates)
        rows = self._nodes()
        # Of a node, the rows of other hosts count as well.
        named = nodes | {row.node for row in rows if row.host in hosts}
        rows = [row for row in rows if row.node in named]
        listed_hosts = frozenset(row.host for row in rows)
        gone = nodes - {row.node for row in rows}
        hidden: frozenset[str] = frozenset()
        if gone or not hosts <= listed_hosts:
            hidden = self.hosts_down()
        # A node that is not listed may be of any hidden host.
        down_hosts = hidden if gone else hidden & hosts
        related = hosts | listed_hosts
        listed = [aggregate for aggregate in self.all_aggregates()
                  if aggregate.hosts & related or aggregate.uuid in requested]
        nova = _nova(listed, rows, down_hosts, gone)
        members = {host: memberships for host, memberships
                   in nova.members.items() if host in related}
        hosts_down = {host: cells for host, cells in nova.hosts_down.items()
                      if host in hosts}
        return dataclasses.replace(
            nova, members=members, hosts_down=hosts_down)

    def read_all(self) -> source.Nova:
        rows = self._nodes()
        # Read after the nodes, to detect a cell that goes down meanwhile.
        services = self.services()
        down = _down(services)
        nova = _nova(self.all_aggregates(), rows, down)
        hosts = frozenset(service.host for service in services)
        return dataclasses.replace(nova, unlisted=hosts - down - nova.hosts())

    def _nodes(self) -> list[source.NodeRow]:
        """Read every compute node that nova-api lists, with its host."""
        # Nova-api shows no cells, and lists no node of an unmapped host.
        return [source.NodeRow('', uuids.canonical(node), host)
                for node, host, _name in self._hypervisors()]

    def _hypervisors(self) -> set[tuple[str, str, str]]:
        """Read UUID, host and name of each hypervisor, page by page."""
        nodes: set[tuple[str, str, str]] = set()
        marker = ''
        while True:
            try:
                page = self._api.entries(
                    '/os-hypervisors/detail' + marker, 'hypervisors',
                    api_connection.node)
            except exceptions.NovaUnavailable as exc:
                down: frozenset[str] = frozenset()
                with contextlib.suppress(exceptions.MirrorError):
                    down = self.hosts_down()
                if not down:
                    raise
                raise exceptions.NovaUnavailable.again(dataclasses.replace(
                    exc.failure, consequence='it lists no compute nodes while '
                    'a cell is down, and reports status UNKNOWN for %s'
                    % plurals.some(down))) from exc
            # Nova-api omits nodes without a service, so a page may be short
            # or lack a link to the next. The last one has no further node.
            if nodes.issuperset(page):
                return nodes
            nodes.update(page)
            markers = [node for node, *_names in page if uuids.is_uuid(node)]
            if not markers:
                raise exceptions.NovaUnavailable(
                    'lists a page of compute nodes without a UUID, after '
                    'which it finds no other page', 'nova-api')
            marker = '?marker=' + markers[-1]

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        return {uuids.canonical(node): name
                for node, _host, name in self._hypervisors()
                if name and uuids.canonical(node) in nodes}

    def hosts_down(self) -> frozenset[str]:
        """Read the hosts of cells that do not answer nova-api."""
        return _down(self.services())

    def hosts(self) -> frozenset[str]:
        """Read the hosts with nova-compute, also of cells that are down."""
        return frozenset(service.host for service in self.services())

    def services(self) -> list[api_connection.ListedService]:
        return self._api.entries(
            '/os-services?binary=nova-compute', 'services',
            api_connection.service)

    def enable(self, service: api_connection.ListedService) -> None:
        self._api.update('/os-services/' + service.id, {'status': 'enabled'})


def _down(services: abc.Iterable[api_connection.ListedService]
          ) -> frozenset[str]:
    return frozenset(service.host for service in services
                     if service.status == UNKNOWN)


def cells_of(hosts: frozenset[str]) -> source.Down:
    """Return the cells of hosts with unknown status, as if they were one."""
    if not hosts:
        return {}
    noun, names = 'hosts' if len(hosts) > 1 else 'host', plurals.some(hosts)
    return {'of %s %s' % (noun, names): _silence(causes.STATUS_UNKNOWN, names)}


def _silence(cause: causes.Cause, names: str) -> exceptions.Failure:
    return exceptions.CellUnavailable.of(
        cause.with_detail(names), api_connection.PARTY).failure


def _nova(aggregates: abc.Iterable[api_connection.ListedAggregate],
          rows: abc.Iterable[source.NodeRow], down: frozenset[str],
          gone: frozenset[str] = frozenset()) -> source.Nova:
    """Build nova's state; ``down`` are hosts, ``gone`` unlisted nodes."""
    collected = _collected(aggregates)
    members = collected.members
    cells_down = {**cells_of(down)}
    hosts_down = dict.fromkeys(members.keys() & down, frozenset(cells_down))
    if gone:
        # They are deleted, or in a cell that the API does not name.
        cells_down['unknown'] = _silence(
            causes.UNLISTED, plurals.some(gone))
    # Each node that is listed counts: mappings and cells are not shown.
    located = node_locations.locate(rows, {}, complete=True)
    return dataclasses.replace(
        located, aggregates=collected.aggregates, members=members,
        # These are looked up for hosts without a node only.
        obstacles=dict.fromkeys(members, UNLISTED),
        unknown=dict.fromkeys(gone, frozenset()), cells_down=cells_down,
        hosts_down=hosts_down,
        invalid_aggregates=collected.invalid_aggregates)


def _collected(aggregates: abc.Iterable[api_connection.ListedAggregate]
               ) -> source.Nova:
    return source.Nova.of_aggregates(
        (aggregate.id, aggregate.uuid, aggregate.name, *aggregate.hosts)
        for aggregate in aggregates)
