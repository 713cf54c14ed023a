# SPDX-License-Identifier: Apache-2.0
"""The hosts of a situation: healthy ones, a leaving one, and the bad part's.

Nova's databases, the journal and placement are filled directly.
"""

from collections import abc
import dataclasses
import functools
import itertools
import time
from typing import Any
import uuid

import sqlalchemy as sa

from tests.cloud import config
from tests.cloud.outages import lane as lanes
from tests.cloud.parts import situations
from tests.cloud import seed
from tests.cloud import sql

AGGREGATES = 10
"""Aggregates of the host whose service is deleted."""
CELL = 'cell'
"""The cell of the healthy hosts."""
# Each lane has numbers of its own for its providers.
NUMBERS = 100000
# As nova documents it; the rest is in [database] connection.
TEMPLATE = '{scheme}://{username}:{password}@{hostname}:{port}/%s?{query}'
# How IDs of rows begin: rows of the bad part are above those of healthy hosts,
# with a running row between.
HEALTHY_ROW, RUNNING_ROW, BAD_ROW = '00', '01', '1'


def cells(situation: situations.Situation) -> dict[str, str]:
    """Return the names of the cells, with their databases."""
    return {CELL: 'nova', **{
        'cell-%d' % number: 'nova_%d' % number
        for number in range(2, situation.cells + 1)}}


class Scene:
    """The content of a lane's nova, journal and placement.

    :param number: of the lane
    :param shared: the configuration of placement, which the lanes share
    """

    def __init__(self, lane: lanes.Lane, number: int, shared: config.Config,
                 situation: situations.Situation) -> None:
        self._lane = lane
        self._situation = situation
        self._number = number
        self._prefix = 'lane-%d' % number
        self.bad_cells = [*lane.cells][-situation.bad_cells:]
        self.healthy = [self._name('healthy', index)
                        for index in range(situation.healthy)]
        self.leaving = self._name('leaving')
        self.special = self._name('special') if situation.included else ''
        """The host of the bad part that is measured, or ''."""
        self.bad: abc.Mapping[str, abc.Collection[str]] = {}
        """The other hosts of the bad part, with their providers."""
        self.silent: abc.Set[str] = frozenset()
        """The providers of the measured host that do not answer."""
        self._providers: dict[str, list[str]] = {}
        """Each other host to its providers."""
        self._urls = {
            'api': lane.database('nova_api'),
            'placement': shared.database_url('placement'),
            **{cell: lane.database(database)
               for cell, database in lane.cells.items()}}
        names = ['first', 'second', 'stale', 'odd', *(
            'leaving-%d' % index for index in range(AGGREGATES))]
        self.aggregates = {name: str(uuid.uuid4()) for name in names}
        self._numbers = {name: index for index, name in enumerate(names, 1)}
        self._desired = {host: {self.aggregates['second']}
                         for host in self._measured()}
        if situation.kind == 'aggregate':
            # Nova has another value meanwhile, which may be a damaged UUID.
            self._desired[self.special].add(self.aggregates['odd'])
        self._fill()

    def _name(self, kind: str, number: int = 0) -> str:
        # All lanes share placement, where names are unique.
        return '%s-%s-%d' % (self._prefix, kind, number)

    def _measured(self) -> list[str]:
        return [*self.healthy, *filter(None, [self.special])]

    def _fill(self) -> None:
        nodes = {CELL: [*seed.nodes([*self.healthy, self.leaving], 1)]}
        if self.special:
            nodes.setdefault(
                self.bad_cells[0] if self._situation.is_cell else CELL,
                []).extend(seed.nodes(
                    [self.special], situations.NODES
                    if self._situation.kind == 'nodes' else 1))
        for node in itertools.chain(*nodes.values()):
            self._providers.setdefault(node.host, []).append(node.uuid)
        if self.special:
            self.silent = frozenset(
                self._providers[self.special][:self._situation.silent])
        for cell, bad_nodes in self._bad_nodes().items():
            nodes.setdefault(cell, []).extend(bad_nodes)
            self.bad |= {host: [node.uuid for node in of_host]
                         for host, of_host in itertools.groupby(
                             bad_nodes, lambda node: node.host)}
        self._create_providers([*itertools.chain(*nodes.values())])
        for cell, of_cell in nodes.items():
            self._create_hosts(cell, of_cell)
        leaving = [self.aggregates[name] for name in self.aggregates
                   if name.startswith('leaving')]
        seed.aggregates(self._lane.config, {
            **dict.fromkeys(self.aggregates.values(), ()),
            **dict.fromkeys(leaving, [self.leaving]),
            self.aggregates['second']: self._measured(),
            **self._odd_members()})
        for host in self._measured():
            self._write(host, self._desired[host])
        self._write(self.leaving, set(leaving))

    def _odd_members(self) -> dict[str, list[str]]:
        """Return the hosts of the aggregates that a bad part is about."""
        if self._situation.kind == 'aggregate':
            return {self.aggregates['odd']: [self.special]}
        if self._situation.part == 'duplicate':
            return {self.aggregates['stale']: [self._name('stale')]}
        return {}

    def _bad_nodes(self) -> dict[str, list[seed.Node]]:
        """Return the compute nodes of the bad part, by cell."""
        hosts = [self._name('bad', index)
                 for index in range(self._situation.rows)]
        if self._situation.part == 'many-nodes':
            return {CELL: [*seed.nodes(hosts, situations.MANY)]}
        cells = self.bad_cells if self._situation.is_cell else [CELL]
        return {cell: [*seed.nodes(hosts[index::len(cells)], 1)]
                for index, cell in enumerate(cells)}

    def _create_hosts(self, cell: str, nodes: abc.Sequence[seed.Node]) -> None:
        if self._situation.part == 'upper-case':
            nodes = [dataclasses.replace(node, uuid=node.uuid.upper())
                     if node.host == self.special else node for node in nodes]
        if nodes:
            self._lane.seed(cell, nodes)
        if self._situation.part == 'duplicate':
            # The host was renamed and moved here from another cell.
            stale = self._name('stale')
            self._lane.seed('cell-2', [
                seed.Node(stale, stale, self._providers[self.special][0])])
            self.execute('api', 'DELETE FROM host_mappings '
                         'WHERE host = :host', host=stale)

    def _create_providers(self, nodes: abc.Sequence[seed.Node]) -> None:
        """Insert providers: a thousand requests take too long."""
        sql.insert(self._urls['placement'], 'resource_providers', [
            {'id': number, 'uuid': node.uuid, 'name': node.name,
             'generation': 1, 'root_provider_id': number}
            for number, node in enumerate(nodes, self._number * NUMBERS)])

    def remove(self) -> None:
        """Remove the providers from the placement of all lanes."""
        first = self._number * NUMBERS
        for statement in (
                'DELETE FROM resource_provider_aggregates '
                'WHERE resource_provider_id BETWEEN :first AND :last',
                'UPDATE resource_providers SET root_provider_id = NULL '
                'WHERE id BETWEEN :first AND :last',
                'DELETE FROM resource_providers '
                'WHERE id BETWEEN :first AND :last'):
            self.execute('placement', statement, first=first,
                         last=first + NUMBERS - 1)

    def add_bad_members(self) -> None:
        """Make the hosts of the bad part members, without placement."""
        sql.insert(self._urls['api'], 'aggregate_hosts', [
            {'host': host, 'aggregate_id': self._numbers['second']}
            for host in self.bad])

    def hand_over(self, hosts: abc.Iterable[str], running: bool = False
                  ) -> list[str]:
        """Hand over a row of each host; return their IDs.

        :param running: whether the operations still run instead
        """
        rows = []
        for host in hosts:
            providers = self.bad.get(host) or self._providers[host]
            prefix = RUNNING_ROW if running else (
                BAD_ROW if host in self.bad else HEALTHY_ROW)
            rows.append({
                'id': prefix + str(uuid.uuid4())[len(prefix):],
                'host': host, 'nodes': ','.join(sorted(providers)),
                'request_id': 'req-%s' % uuid.uuid4(), 'running': running,
                'created_at': time.time(), 'attempts': 1,
                'last_error': 'placement was unavailable'})
        sql.insert(self.journal, 'dirty', rows)
        return [row['id'] for row in rows]

    def remaining(self, rows: list[str]) -> int:
        """Return how many of the rows are still in the journal."""
        [(count,)] = sql.execute(
            self.journal, 'SELECT COUNT(*) FROM dirty WHERE id IN :rows',
            rows=rows)
        return count

    def leader(self) -> str:
        """Return the holder of the agents' lease, or ''."""
        [(holder,)] = sql.execute(
            self.journal, "SELECT holder FROM lease WHERE name = 'agent'")
        return holder

    def syncs_since(self, moment: float) -> list[int]:
        """Return the exit statuses of the full syncs that began later."""
        return [status for status, in sql.execute(
            self.journal, 'SELECT status FROM syncs '
            'WHERE ended_at - seconds > :moment ORDER BY id', moment=moment)]

    def set_odd_uuid(self, value: str | None) -> None:
        """Change the UUID of an aggregate in nova."""
        self.execute(
            'api', 'UPDATE aggregates SET uuid = :value WHERE id = :number',
            value=value, number=self._numbers['odd'])

    def use_templates(self) -> None:
        """Replace the database URL of each cell by a template."""
        for number, database in enumerate(self._lane.cells.values(), start=1):
            url = sa.engine.make_url(self._lane.database(database))
            self.execute(
                'api', 'UPDATE cell_mappings SET database_connection = :url '
                'WHERE name = :name', name='cell%d' % number,
                url=TEMPLATE % url.database)

    @functools.cached_property
    def journal(self) -> str:
        """Return the URL of the journal."""
        return self._lane.journal_url()

    def execute(self, database: str, statement: str, **values: Any) -> None:
        """Execute a statement in a database: ``api``, or that of a cell."""
        sql.execute(self._urls[database], statement, **values)

    def service(self) -> str:
        """Return the UUID of the service of the leaving host."""
        [(service,)] = sql.execute(
            self._urls[CELL], 'SELECT uuid FROM services WHERE host = :host',
            host=self.leaving)
        return service

    def add_request(self, host: str) -> tuple[str, Any]:
        """Return path and body of a request that adds a host, to nova-api."""
        self._desired[host].add(self.aggregates['first'])
        return ('/os-aggregates/%d/action' % self._numbers['first'],
                {'add_host': {'host': host}})

    def damage(self, host: str) -> None:
        """Remove an association of a healthy host from placement."""
        self._write(host, self._desired[host] - {self.aggregates['second']})

    def is_mirrored(self, host: str) -> bool:
        """Check whether placement has what nova has for a host."""
        return all(self._read(provider) == self._desired[host]
                   for provider in self._answering(host))

    def blameless(self, unserved: abc.Set[str]) -> set[str]:
        """Return healthy hosts and providers that have not failed.

        :param unserved: providers about which a request has failed
        """
        names = set()
        for host in self.healthy:
            if unserved.isdisjoint(self._providers[host]):
                names |= {host, *self._providers[host]}
        if self.silent:
            names |= {*self._answering(self.special)} - unserved
        return names

    def differences(self) -> list[str]:
        """Describe where placement does not equal nova for healthy hosts."""
        names = {uuid: name for name, uuid in self.aggregates.items()}

        def shown(aggregates: abc.Set[str]) -> str:
            return ', '.join(sorted(
                names.get(uuid, uuid) for uuid in aggregates)) or '-'

        return ['%s is in %s instead of %s' % (
            host, ' or '.join(sorted({
                shown(self._read(provider))
                for provider in self._answering(host)})),
            shown(self._desired[host]))
            for host in self._measured() if not self.is_mirrored(host)]

    def _answering(self, host: str) -> list[str]:
        """Return the providers of a host, except silent ones."""
        return [provider for provider in self._providers[host]
                if provider not in self.silent]

    def _read(self, provider: str) -> frozenset[str]:
        return self._lane.associations(provider) or frozenset()

    def _write(self, host: str, aggregates: set[str]) -> None:
        for provider in self._answering(host):
            self._lane.change_aggregates(provider, lambda _before: aggregates)
