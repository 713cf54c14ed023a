# SPDX-License-Identifier: Apache-2.0
"""The hosts and aggregates of a lane, seen and prepared without its nova-apis.

Nova's databases and placement are used directly, so that a nova-api which has
not been used yet stays like that.
"""

from collections import abc
import dataclasses
import itertools
from typing import Any
import uuid

from tests.cloud.outages import lane as lanes
from tests.cloud import seed
from tests.cloud import sql

CELL, OTHER_CELL = 'cell', 'other-cell'
# An aggregate for each role: in the calls, always with members, and for the
# calls that warm a nova-api up.
FIRST, SECOND, WARM = 'first', 'second', 'warm'
# The provider that is no host of nova.
STORAGE = 'storage'


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to nova-api.

    :param host: the host that it is about, if any
    """

    method: str
    path: str
    body: Any = None
    host: str = ''


class World:
    """The content of a lane's nova and placement.

    Each provider is also in a foreign aggregate, which has to survive.
    """

    def __init__(self, lane: lanes.Lane) -> None:
        self._lane = lane
        self._api = lane.database('nova_api')
        self._cell = lane.database(lane.cells[CELL])
        self._numbers = itertools.count(1)
        # All lanes share placement, where names are unique.
        self._prefix = lane.config.directory.name
        self.host = '%s-compute-1' % self._prefix
        self._other = '%s-compute-2' % self._prefix
        self.foreign = str(uuid.uuid4())
        self.aggregates: dict[str, int] = {}
        """Name to the number that nova's API requires."""
        self._nodes: dict[str, str] = {}
        """Host to its provider."""
        for name in (FIRST, SECOND, WARM):
            self._create_aggregate(name)
        self.create_host(self.host)
        self.create_host(self._other, OTHER_CELL)
        # No host of nova: a user's deletion of an aggregate includes it.
        self._storage = self._create_provider(
            '%s-%s' % (self._prefix, STORAGE))
        for host in (self.host, self._other):
            self.place(host, {SECOND})

    def prepare(self, call: str) -> Request:
        """Prepare nova and placement for a call, and return its request."""
        self.place(self.host, {SECOND, *([FIRST] if call == 'remove' else [])})
        action = '/os-aggregates/%d/action' % self.aggregates[FIRST]
        if call in ('add', 'remove'):
            return Request('POST', action, {'%s_host' % call: {
                'host': self.host}}, self.host)
        name = '%s-%s-%d' % (self._prefix, call, next(self._numbers))
        if call == 'delete':
            number, aggregate = self._create_aggregate(name)
            self._write(self._storage, {self.foreign, aggregate})
            return Request('DELETE', '/os-aggregates/%d' % number)
        service = self.create_host(name)
        self.place(name, {FIRST, SECOND})
        return Request('DELETE', '/os-services/%s' % service, host=name)

    def warming(self) -> list[Request]:
        """Return calls that make a nova-api use every party."""
        action = '/os-aggregates/%d/action' % self.aggregates[WARM]
        return [Request('POST', action, {name: {'host': self.host}}, self.host)
                for name in ('add_host', 'remove_host')]

    def place(self, host: str, names: abc.Iterable[str]) -> None:
        """Make a host a member of exactly these aggregates, everywhere."""
        sql.execute(self._api, 'DELETE FROM aggregate_hosts '
                    'WHERE host = :host', host=host)
        sql.insert(self._api, 'aggregate_hosts', [
            {'host': host, 'aggregate_id': self.aggregates[name]}
            for name in names])
        self._write(self._nodes[host],
                    {self.foreign, *self._members().get(host, ())})

    def differences(self) -> list[str]:
        """Describe where placement does not equal nova."""
        members, found = self._members(), []
        existing = self._existing()
        for host, provider in self._nodes.items():
            has = self._lane.associations(provider)
            # Nova deletes the provider before the service.
            if has is None and host not in (self.host, self._other):
                continue
            wanted = {self.foreign}
            if host in existing:
                wanted |= members.get(host, set())
            found += self._compare(host, wanted, has)
        known = self._uuids()
        has = self._lane.associations(self._storage)
        found += self._compare(STORAGE, {self.foreign, *(
            uuid for uuid in has or () if uuid in known.values())}, has)
        return found

    def tidy(self) -> None:
        """Remove the hosts and aggregates of previous calls."""
        self._write(self._storage, {self.foreign})
        for host in set(self._nodes) - {self.host, self._other}:
            provider = self._nodes.pop(host)
            self._lane.placement().delete(
                '/resource_providers/%s' % provider, raise_exc=False)
            for database, table in ((self._api, 'aggregate_hosts'),
                                    (self._api, 'host_mappings'),
                                    (self._cell, 'services'),
                                    (self._cell, 'compute_nodes')):
                sql.execute(
                    database, 'DELETE FROM %s WHERE host = :host' % table,
                    host=host)
        for name in set(self.aggregates) - {FIRST, SECOND, WARM}:
            sql.execute(
                self._api, 'DELETE FROM aggregates WHERE id = :number',
                number=self.aggregates.pop(name))

    def _compare(self, name: str, wanted: abc.Set[str],
                 has: abc.Set[str] | None) -> list[str]:
        if has == wanted:
            return []
        names = {uuid: name for name, uuid in self._uuids().items()}
        names[self.foreign] = 'foreign'

        def shown(some: abc.Set[str]) -> str:
            return ', '.join(sorted(
                names.get(uuid, uuid) for uuid in some)) or '-'

        return ['%s is in %s instead of %s' % (
            name, 'no provider' if has is None else shown(has),
            shown(wanted))]

    def _create_aggregate(self, name: str) -> tuple[int, str]:
        made = str(uuid.uuid4())
        [(number,)] = sql.execute(
            self._api, 'INSERT INTO aggregates (uuid, name, created_at) '
            'VALUES (:uuid, :name, NOW())',
            'SELECT id FROM aggregates WHERE uuid = :uuid AND name = :name',
            uuid=made, name=name)
        self.aggregates[name] = number
        return number, made

    def create_host(self, host: str, cell: str = CELL) -> str:
        """Create a host; return the UUID of its compute service."""
        node, = seed.nodes([host], 1)
        self._lane.seed(cell, [node])
        self._nodes[host] = self._create_provider(host, node.uuid)
        if cell != CELL:
            return ''
        [(service,)] = sql.execute(
            self._cell, 'SELECT uuid FROM services WHERE host = :host',
            host=host)
        return service

    def _create_provider(self, name: str, provider: str = '') -> str:
        provider = provider or str(uuid.uuid4())
        self._lane.placement().post('/resource_providers', json={
            'name': name, 'uuid': provider})
        self._write(provider, {self.foreign})
        return provider

    def _write(self, provider: str, aggregates: set[str]) -> None:
        self._lane.change_aggregates(provider, lambda _before: aggregates)

    def _members(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for host, aggregate in sql.execute(
                self._api, 'SELECT host, uuid FROM aggregate_hosts '
                'JOIN aggregates ON aggregates.id = aggregate_id'):
            found.setdefault(host, set()).add(aggregate)
        return found

    def _uuids(self) -> dict[str, str]:
        return dict(map(tuple, sql.execute(
            self._api, 'SELECT name, uuid FROM aggregates')))

    def _existing(self) -> set[str]:
        """Return the hosts that have a compute node in nova."""
        return {host for database in self._lane.cells.values()
                for host, in sql.execute(
                    self._lane.database(database),
                    'SELECT host FROM compute_nodes WHERE deleted = 0')}
