# SPDX-License-Identifier: Apache-2.0
"""A cloud of nova and placement, with or without this package."""

from collections import abc
import dataclasses
import functools
import inspect
import logging
import time
from typing import Any

import fixtures
from nova.compute import api as compute_api
from nova.db.api import api as api_db

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.hooks import attach
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import modes
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import sync_history
from nova_aggregate_mirror.source import database
from tests import nova_service
from tests import patience
from tests import placement_service

Host = nova_service.Host

CONF = nova_service.CONF
OURS = 'nova_aggregate_mirror'
NOVA_CONF = """
[DEFAULT]
state_path = %s
[api_database]
connection = %s
[placement]
%s
%s
"""


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate, as it was created."""

    id: int
    uuid: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Every visible effect of an add-host or remove-host."""

    status: int
    """The HTTP status that the user got."""
    member: bool
    """Whether nova now has the host in the aggregate."""
    mirrored: bool
    """Whether placement agrees for every compute node of the host."""
    ended: bool
    """Whether nova sent its end notifications of the operation."""
    zone: str
    """The host's availability zone, according to nova's cache."""
    warnings: int = 0
    """Records of this package's loggers at WARNING or above."""


class NovaAndPlacement(fixtures.Fixture):
    """Nova and placement, both real, in this process.

    ``placement`` is the :class:`placement_service.PlacementService` and has
    the faults; ``nova`` is the :class:`nova_service.NovaService`. This class
    has the operations that need both.
    """

    def __init__(self, urls: abc.Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._urls = urls or {}

    def token(self) -> str:
        """Return the options of [placement] with a token."""
        return 'auth_type = admin_token\nendpoint = %s\ntoken = %s' % (
            self.placement.url, placement_service.TOKEN)

    def nova_conf(self, more: str, placement: str | None = None) -> str:
        """Return the text of a nova.conf for a process."""
        return NOVA_CONF % (
            CONF.state_path, api_db.get_engine().url,
            self.token() if placement is None else placement, more)

    def _setUp(self) -> None:
        self._records: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = self._records.append  # type: ignore[method-assign]
        self.useFixture(fixtures.LogHandler(handler, level=logging.DEBUG))
        self.placement = self.useFixture(placement_service.PlacementService())
        self.nova = self.useFixture(nova_service.NovaService(
            self.placement.url, placement_service.TOKEN, self._urls))
        self._aggregates: list[Aggregate] = []

    def create_host(self, name: str, nodes: int = 1, cell: str = 'cell1',
                    mapped: bool = True, providers: bool = True) -> Host:
        """Create what nova-compute and discover_hosts create for a host.

        :param nodes: number of compute nodes: 1 for most drivers, any for
            ironic, 0 for a service that found no node
        :param mapped: whether discover_hosts has run since
        :param providers: whether nova-compute has reached placement since
        """
        host = self.nova.create_host(name, nodes, cell, mapped)
        if providers:
            self.create_providers(host)
        # Nova's cache of availability zones is warm.
        self.nova.zone(name)
        return host

    def create_providers(self, host: Host) -> None:
        """Create the providers of a host, as nova-compute does at start."""
        for index, node in enumerate(host.nodes):
            self.placement.create_provider(
                node, nova_service.node_name(host.name, index))

    def create_aggregate(self, name: str, zone: str | None = None
                         ) -> Aggregate:
        body = {'name': name} | ({'availability_zone': zone} if zone else {})
        response = self.nova.request('POST', '/os-aggregates',
                                     {'aggregate': body})
        created = response.json['aggregate']
        aggregate = Aggregate(created['id'], created['uuid'])
        self._aggregates.append(aggregate)
        return aggregate

    def delete_aggregate(self, aggregate: Aggregate) -> int:
        """Delete an aggregate; return the HTTP status."""
        return self._status('DELETE', '/os-aggregates/%d' % aggregate.id)

    def delete_service(self, host: Host) -> int:
        """Delete a compute service; return the HTTP status."""
        return self._status('DELETE', '/os-services/%s' % host.service)

    def _status(self, method: str, path: str, body: Any = None) -> int:
        self.nova.forget_notifications()
        del self._records[:]
        return self.nova.request(method, path, body).status_code

    def add_host(self, aggregate: Aggregate, host: Host) -> Outcome:
        return self._act('add_host', 'addhost', aggregate, host)

    def remove_host(self, aggregate: Aggregate, host: Host) -> Outcome:
        return self._act('remove_host', 'removehost', aggregate, host)

    def _act(self, action: str, legacy: str, aggregate: Aggregate,
             host: Host) -> Outcome:
        status = self._status(
            'POST', '/os-aggregates/%d/action' % aggregate.id,
            {action: {'host': host.name}})
        member = aggregate.uuid in self.nova.aggregates_of(host.name)
        expected = {'aggregate.%s.end' % action, 'aggregate.%s.end' % legacy}
        mirrored = {
            aggregate.uuid in self.placement.aggregates(node)
            for node in filter(self.placement.has_provider, host.nodes)}
        return Outcome(
            status=status, member=member, mirrored=mirrored <= {member},
            ended=expected <= set(self.nova.notifications()),
            zone=self.nova.zone(host.name), warnings=len(self.warnings()))

    def sync(self) -> result.Result:
        """Sync everything as a separate process would, without pruning."""
        worker = Agent()
        return full_sync.run(worker.reconciler, worker.journal.rows.all())

    def warnings(self) -> list[str]:
        """Return messages at WARNING or above since the last operation."""
        return [record.getMessage() for record in self._warnings()]

    def levels(self) -> list[str]:
        """Return the levels of these messages."""
        return [record.levelname for record in self._warnings()]

    def _warnings(self) -> list[logging.LogRecord]:
        return [record for record in self._records
                if record.levelno >= logging.WARNING
                and (record.name + '.').startswith(OURS + '.')]

    def aggregate_uuids(self) -> list[str]:
        """Return the UUIDs of the aggregates that were created here."""
        return [aggregate.uuid for aggregate in self._aggregates]

    def drift(self) -> list[str]:
        """Return associations that break the promise, one line each, sorted.

        Each compute node of nova is compared with each aggregate that was
        created here, whether or not nova still has it.
        """
        ours = {aggregate.uuid for aggregate in self._aggregates}
        lines = []
        for node, host in self.nova.nodes().items():
            if not self.placement.has_provider(node):
                lines.append('%s has no provider %s' % (host, node))
                continue
            wanted = self.nova.aggregates_of(host)
            found = self.placement.aggregates(node) & ours
            lines += ['%s is not in %s' % (node, uuid)
                      for uuid in wanted - found]
            lines += ['%s is still in %s' % (node, uuid)
                      for uuid in found - wanted]
        return sorted(lines)


class Agent:
    """The work of a leading agent, one step at a time.

    ``clock`` is its monotonic clock, and how far its wall clock is ahead of
    the real time.
    """

    def __init__(self) -> None:
        conf.register_opts(CONF)
        self.clock = 0.0
        self.figures = metrics.Metrics()
        self.journal = store.Journal(
            CONF, now=lambda: time.time() + self.clock,
            clock=lambda: self.clock)
        source = database.DatabaseSource()
        placement = client.Client(CONF, reads_only=conf.observes(CONF))
        self.reconciler = reconciler.Reconciler(
            self.journal.ledger, source, placement, self.journal.rows,
            for_each=workers.in_threads(CONF.aggregate_mirror.sync_workers))
        self._drain = drain.Drain(CONF, self.journal.rows, self.reconciler,
                                  self.figures, now=lambda: self.clock)
        self._sync = periodic_sync.PeriodicSync(
            CONF, self.reconciler, self.figures, now=lambda: self.clock,
            note=functools.partial(sync_history.note, self.journal.database,
                                   'agent', mode=CONF.aggregate_mirror.mode),
            disagreements=functools.partial(modes.find_for_agent, self.journal,
                                            CONF.aggregate_mirror.mode))

    def drain(self) -> None:
        """Mirror the due rows of the journal."""
        while self._drain.step():
            pass

    def sync(self) -> result.Result | None:
        """Run the next full sync; return None when nothing was compared."""
        self.clock += CONF.aggregate_mirror.sync_interval
        return self._sync.step()


def _is_ours(function: Any) -> bool:
    return function.__globals__['__name__'].startswith(OURS)


def _stock(attribute: Any) -> Any:
    """Return nova's original attribute without this package."""
    if isinstance(attribute, property):
        return property(_stock(attribute.fget))
    return inspect.unwrap(attribute, stop=lambda one: not _is_ours(one))


class StockNova(fixtures.Fixture):
    """Nova without this package, whether or not it is installed."""

    def _setUp(self) -> None:
        for name in ('__init__', *attach.PARAMETERS, 'placement_client'):
            present = vars(compute_api.AggregateAPI)[name]
            self.useFixture(fixtures.MonkeyPatch(
                'nova.compute.api.AggregateAPI.' + name, _stock(present)))


class MirroredNova(fixtures.Fixture):
    """Nova with this package, as after a start of nova-api."""

    def _setUp(self) -> None:
        self.useFixture(StockNova())
        conf.register_opts(CONF)
        # Bounds are tested where they are set: a busy machine is slow.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.placement.isolation.PATIENCE',
            patience.LONGEST_CALL))
        CONF.set_default('inline_timeout', patience.LONGEST_CALL,
                         'aggregate_mirror')
        self.addCleanup(CONF.clear_default, 'inline_timeout',
                        'aggregate_mirror')
        attach.install(CONF)
