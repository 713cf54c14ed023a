# SPDX-License-Identifier: Apache-2.0
"""The hosts and aggregates of a lane, seen and prepared without its nova-apis.

Nova's databases, the journal and placement are used directly, so that a
nova-api which has not been used yet stays like that.
"""

from collections import abc
import dataclasses
import itertools
import time
from typing import Any
import uuid

from tests.cloud.faults import lane as lanes
from tests.cloud import observer
from tests.cloud import seed
from tests.cloud import sql

# An aggregate for each role: in the calls, always with members, and for the
# calls that warm a nova-api up.
FIRST, SECOND, WARM = 'first', 'second', 'warm'
# The provider that is no host of nova.
STORAGE = 'storage'
POLL, LOOKS = 0.2, 2
# Each lane has numbers of its own for its providers.
NUMBERS = 100000


class Scene:
    """The content of a lane's nova, journal and placement.

    Each placed provider is also in a foreign aggregate, which has to survive.
    """

    def __init__(self, lane: lanes.Lane) -> None:
        self.foreign = str(uuid.uuid4())
        self.aggregates: dict[str, str] = {}
        """Name to UUID."""
        self.providers: dict[str, list[str]] = {}
        """Host to its providers."""
        self.silent: abc.Set[str] = frozenset()
        """Providers that do not answer."""
        self._lane = lane
        self._urls = {
            'api': lane.config.database_url('nova_api'),
            'placement': lane.placement_database,
            **{cell: lane.config.database_url(name)
               for cell, name in lane.cells.items()}}
        self._ids = itertools.count(lane.number * NUMBERS)
        self._numbers: dict[str, int] = {}
        self._placed: list[str] = []
        self._leaving: set[str] = set()
        for name in (FIRST, SECOND, WARM):
            self.create_aggregate(name)
        # No host of nova: a user's deletion of an aggregate includes it.
        self.storage = str(uuid.uuid4())
        self._create_providers([
            seed.Node('', self.name(STORAGE), self.storage)])
        self.write(self.storage, {self.foreign})

    def name(self, kind: str, number: int = 0) -> str:
        """Name a host or aggregate of this lane."""
        # All lanes share placement, where names are unique.
        return '%s-%s-%d' % (self._lane.config.directory.name, kind, number)

    def execute(self, database: str, *statements: str, **values: Any
                ) -> list[Any]:
        """Run statements in ``api``, ``placement`` or a cell; see ``sql``."""
        return sql.execute(self._urls[database], *statements, **values)

    def create_aggregate(self, name: str) -> str:
        """Create an aggregate without hosts; return its UUID."""
        self.aggregates[name] = aggregate = str(uuid.uuid4())
        [(self._numbers[name],)] = self.execute(
            'api', 'INSERT INTO aggregates (uuid, name, created_at) '
            'VALUES (:uuid, :name, NOW())',
            'SELECT id FROM aggregates WHERE uuid = :uuid AND name = :name',
            uuid=aggregate, name=name)
        return aggregate

    def create_hosts(self, cell: str, hosts: abc.Sequence[str],
                     nodes_per_host: int = 1,
                     spelled: abc.Callable[[str], str] = str) -> None:
        """Create hosts of a cell; ``spelled`` is how nova writes UUIDs."""
        nodes = [*seed.nodes(hosts, nodes_per_host)]
        for node in nodes:
            self.providers.setdefault(node.host, []).append(node.uuid)
        self._create_providers(nodes)
        self._lane.seed(cell, [
            dataclasses.replace(node, uuid=spelled(node.uuid))
            for node in nodes])

    def _create_providers(self, nodes: abc.Sequence[seed.Node]) -> None:
        """Insert providers: a thousand requests take too long."""
        numbered = [*zip(self._ids, nodes)]
        sql.insert(self._urls['placement'], 'resource_providers', [
            {'id': number, 'uuid': node.uuid, 'name': node.name,
             'generation': 1, 'root_provider_id': number}
            for number, node in numbered])

    def remove_providers(self) -> None:
        """Remove all providers from the placement of all lanes."""
        first = self._lane.number * NUMBERS
        for statement in (
                'DELETE FROM resource_provider_aggregates '
                'WHERE resource_provider_id BETWEEN :first AND :last',
                'UPDATE resource_providers SET root_provider_id = NULL '
                'WHERE id BETWEEN :first AND :last',
                'DELETE FROM resource_providers '
                'WHERE id BETWEEN :first AND :last'):
            self.execute('placement', statement, first=first,
                         last=first + NUMBERS - 1)

    def join(self, hosts: abc.Iterable[str], name: str) -> None:
        """Make hosts members of an aggregate, without placement."""
        sql.insert(self._urls['api'], 'aggregate_hosts', [
            {'host': host, 'aggregate_id': self._numbers[name]}
            for host in hosts])

    def place(self, host: str, names: abc.Iterable[str],
              leaving: bool = False) -> None:
        """Make a host a member of these alone; it may be deleted later."""
        self.execute('api', 'DELETE FROM aggregate_hosts WHERE host = :host',
                     host=host)
        for name in names:
            self.join([host], name)
        self._write_host(host, self._desired()[host])
        if host not in self._placed:
            self._placed.append(host)
        if leaving:
            self._leaving.add(host)

    def damage(self, host: str) -> None:
        """Remove an association of a host from placement."""
        self._write_host(
            host, self._desired()[host] - {self.aggregates[SECOND]})

    def remove_call(self) -> None:
        """Remove the hosts and aggregates of previous calls."""
        self.write(self.storage, {self.foreign})
        for host in self._leaving:
            self._placed.remove(host)
            provider, = self.providers.pop(host)
            self._lane.placement().delete(
                '/resource_providers/%s' % provider, raise_exc=False)
            for database, table in (
                    ('api', 'aggregate_hosts'), ('api', 'host_mappings'),
                    (lanes.CELL, 'services'), (lanes.CELL, 'compute_nodes')):
                self.execute(
                    database, 'DELETE FROM %s WHERE host = :host' % table,
                    host=host)
        self._leaving.clear()
        for name in self.aggregates.keys() - {FIRST, SECOND, WARM}:
            del self.aggregates[name]
            self.execute('api', 'DELETE FROM aggregates WHERE id = :number',
                         number=self._numbers.pop(name))

    def action(self, name: str, host: str, aggregate: str) -> lanes.Request:
        """Return a request, such as ``add_host``."""
        return lanes.Request(
            'POST', '/os-aggregates/%d/action' % self._numbers[aggregate],
            {name: {'host': host}})

    def deletion(self, aggregate: str) -> lanes.Request:
        """Return the request that deletes an aggregate."""
        return lanes.Request('DELETE', '/os-aggregates/%d' % (
            self._numbers[aggregate]))

    def departure(self, host: str) -> lanes.Request:
        """Return the request that deletes a host's service."""
        [(service,)] = self.execute(
            lanes.CELL, 'SELECT uuid FROM services WHERE host = :host',
            host=host)
        return lanes.Request('DELETE', '/os-services/%s' % service)

    def heal(self, limit: float, and_storage: bool = True
             ) -> tuple[float, list[str]]:
        """Wait until placement equals nova, and stays so.

        :param and_storage: whether the provider that is no host counts
        :returns: the seconds, and how placement differs then
        """
        began, equal = time.monotonic(), 0
        while True:
            seconds = time.monotonic() - began
            differences = self.differences(self._placed)
            if and_storage:
                differences += self._difference_of_storage()
            equal = 0 if differences else equal + 1
            # What was held by a wire may be written late.
            if equal == LOOKS or seconds > limit:
                return seconds, differences
            time.sleep(POLL)

    def differences(self, hosts: abc.Iterable[str]) -> list[str]:
        """Describe where placement does not equal nova for these hosts."""
        desired, differences = self._desired(), []
        for host in hosts:
            for provider in self.answering(host):
                has = self._lane.associations(provider)
                # Nova deletes the provider before the service.
                if has is not None or host not in self._leaving:
                    differences += self._compare(host, desired[host], has)
        return differences

    def _difference_of_storage(self) -> list[str]:
        existing = {uuid for uuid, in self.execute(
            'api', 'SELECT uuid FROM aggregates')}
        has = self._lane.associations(self.storage) or frozenset()
        return self._compare(STORAGE, {self.foreign} | has & existing, has)

    def _compare(self, name: str, desired: abc.Set[str],
                 has: abc.Set[str] | None) -> list[str]:
        if has == desired:
            return []
        names = {uuid: name for name, uuid in self.aggregates.items()}
        names[self.foreign] = 'foreign'

        def shown(aggregates: abc.Set[str]) -> str:
            return observer.names(names.get(uuid, uuid) for uuid in aggregates)

        there = 'no provider' if has is None else shown(has)
        return ['%s is in %s instead of %s' % (name, there, shown(desired))]

    def answering(self, host: str) -> list[str]:
        """Return the providers of a host, except silent ones."""
        return [provider for provider in self.providers[host]
                if provider not in self.silent]

    def _desired(self) -> dict[str, set[str]]:
        """Return the aggregates of each host, whatever UUIDs nova has now."""
        names = {number: name for name, number in self._numbers.items()}
        desired = {host: {self.foreign} for host in self.providers}
        deleted = {host for host, in self.execute(
            lanes.CELL, 'SELECT host FROM services WHERE deleted != 0')}
        for host, number in self.execute(
                'api', 'SELECT host, aggregate_id FROM aggregate_hosts'):
            if host in desired and host not in deleted:
                desired[host].add(self.aggregates[names[number]])
        return desired

    def write(self, provider: str, aggregates: abc.Collection[str]) -> None:
        """Write the aggregates of a provider to placement."""
        self._lane.change_aggregates(provider, lambda _before: aggregates)

    def _write_host(self, host: str, aggregates: abc.Collection[str]) -> None:
        for provider in self.answering(host):
            self.write(provider, aggregates)

    def set_uuid(self, name: str, uuid: str | None) -> None:
        """Change the UUID of an aggregate in nova, and nowhere else."""
        self.execute('api', 'UPDATE aggregates SET uuid = :uuid '
                     'WHERE id = :number', uuid=uuid,
                     number=self._numbers[name])

    def journal(self, statement: str, **values: Any) -> list[Any]:
        """Read from the journal."""
        return sql.execute(self._lane.journal_url(), statement, **values)
