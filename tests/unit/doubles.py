# SPDX-License-Identifier: Apache-2.0
"""In-memory nova and placement for tests of the code between them."""

from collections import abc
import contextvars
import dataclasses
import math
from typing import Any

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror import source

SILENT = exceptions.CellUnavailable.of(
    causes.silent(5.0), causes.cell('cell9')).failure
NO_ANSWER = exceptions.DeadlineExceeded('no answer')
CELL = '4ab0e6b1-3c2f-4f4c-8d8f-5f0e1c7f5a01'


class ShortUUIDs(fixtures.MonkeyPatch):
    """Let each text be a UUID, so that tests may use short ones.

    Tests of texts that are none do without it.
    """

    def __init__(self) -> None:
        super().__init__('nova_aggregate_mirror.uuids.is_uuid', bool)


class Once(dict[tuple[str, str], exceptions.MirrorError]):
    """Errors of requests, which occur once each."""

    def __getitem__(self, key: tuple[str, str]) -> exceptions.MirrorError:
        return self.pop(key)


class Placement:
    """Providers with their aggregates and generations; requests are logged."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self.log = log
        self.aggregates: dict[str, set[str]] = {}
        self.generations: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.before_put: abc.Callable[[str], None] = lambda provider: None
        self.broken: dict[tuple[str, str], exceptions.MirrorError] = {}
        self.idle = 0
        """Connections that are open, as many as requests."""

    def create(self, provider: str, *aggregates: str) -> None:
        self.aggregates[provider] = set(aggregates)
        self.generations[provider] = 0

    def write(self, provider: str, aggregates: abc.Iterable[str]) -> None:
        """Write as another placement client does."""
        self.aggregates[provider] = set(aggregates)
        self.generations[provider] += 1

    def fail(self, method: str, *names: str,
             error: exceptions.MirrorError = NO_ANSWER) -> None:
        """Let requests fail from now on, by default without an answer."""
        self.broken |= {(method, name): error for name in names}

    def get(self, provider: str) -> client.Provider:
        self._ask('GET', provider)
        if provider not in self.aggregates:
            raise exceptions.ProviderNotFound('no provider %s' % provider)
        return client.Provider(uuid=provider,
                               aggregates=frozenset(self.aggregates[provider]),
                               generation=self.generations[provider])

    def put(self, provider: client.Provider,
            aggregates: frozenset[str]) -> None:
        # Another process, which has no deadline of this one.
        contextvars.Context().run(self.before_put, provider.uuid)
        self._ask('PUT', provider.uuid)
        if provider.uuid not in self.aggregates:
            raise exceptions.ProviderNotFound('no provider %s' % provider.uuid)
        if provider.generation != self.generations[provider.uuid]:
            raise exceptions.GenerationConflict('%s changed' % provider.uuid)
        self.write(provider.uuid, aggregates)

    def members(self, *aggregates: str) -> frozenset[str]:
        self._ask('MEMBERS', ','.join(aggregates))
        return frozenset(
            provider for provider, found in self.aggregates.items()
            if found & set(aggregates))

    def providers(self, name: str = '', required: str = '') -> frozenset[str]:
        if required:
            self._ask('SHARING', '')
            return frozenset()
        self._ask('NAMED' if name else 'ALL', name)
        return frozenset(provider for provider in self.aggregates
                         if name in ('', self.names.get(provider)))

    def probe(self) -> None:
        self._ask('PROBE', '')

    def ask(self, request: Any, providers: abc.Iterable[str],
            for_each: isolation.ForEach, patience: float = 0.0) -> Any:
        return isolation.ask(
            request, providers, for_each, self.probe, patience)

    def release(self) -> None:
        self.idle = 0

    is_connected = True
    provider_count: float = math.inf
    options = 'region_name of [placement] in nova.conf'

    def endpoint(self) -> str:
        return 'region RegionOne'

    def _ask(self, method: str, what: str) -> None:
        self.log.append((method, what))
        self.idle += 1
        if (method, what) in self.broken:
            raise self.broken[method, what]


class Nova:
    """Aggregates with their hosts, and compute nodes."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self.log = log
        self.hosts_of: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
        self.twins: dict[str, str] = {}
        """Second hosts of compute nodes."""
        self.unmapped: set[str] = set()
        self.silent: set[str] = set()
        """Hosts in the cell that does not respond."""
        self.invalid: set[source.HostAggregate] = set()
        self.mapped = {CELL: 'cell1 (%s)' % CELL}
        """Cell mappings except cell0's, UUID to name."""
        self.broken: exceptions.MirrorError | None = None

    def members(self) -> source.Memberships:
        hosts = set().union(*self.hosts_of.values())
        return {host: frozenset(uuid for uuid, hosts in self.hosts_of.items()
                                if host in hosts) for host in hosts}

    def aggregates(self) -> dict[str, str]:
        if self.broken:
            raise self.broken
        return {uuid: 'name of ' + uuid for uuid in self.hosts_of}

    def with_hosts(self) -> frozenset[str]:
        return frozenset(filter(self.hosts_of.get, self.hosts_of))

    def cell_mappings(self) -> dict[str, str]:
        if self.broken:
            raise self.broken
        return dict(self.mapped)

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: abc.Mapping[str, str] | None = None) -> source.Nova:
        self.log.append(('TRUTH', ''))
        names = self.aggregates()
        wanted, asked = set(hosts), set(nodes)
        members = self.members()
        chosen = wanted.union(map(self.nodes.get, asked))
        named = set(aggregates).union(*(
            uuids for host, uuids in members.items() if host in chosen))
        places = [*self.nodes.items(), *self.twins.items()]
        rows = [source.NodeRow('cell1', node, host) for node, host in places
                if (host in wanted or node in asked)
                and host not in self.silent]
        mapped = {host for _node, host in places} - self.unmapped
        located = source.Nova.of_aggregates(()).with_nodes(
            rows, dict.fromkeys(mapped, 'cell1'), not self.silent, asked)
        return dataclasses.replace(
            located,
            aggregates={uuid: names[uuid] for uuid in names if uuid in named},
            members=members, unmapped=frozenset(self.unmapped),
            cells_down={'cell9': SILENT} if self.silent else {},
            hosts_down=dict.fromkeys(
                self.silent & wanted, frozenset({'cell9'})),
            invalid_aggregates=frozenset(self.invalid))

    def node_names(self, nodes: abc.Iterable[str]) -> dict[str, str]:
        return {node: 'name of ' + self.nodes[node] for node in nodes
                if node in self.nodes}

    def read_all(self) -> source.Nova:
        nova = self.read([*self.nodes.values(), *self.twins.values()], (),
                         self.hosts_of)
        return dataclasses.replace(nova, obstacles={host: (
            ('no host mapping', 'map it') if host in nova.unmapped
            else ('no compute node', source.RESTART))
            for host in nova.unmapped_or_nodeless()})


class TestCase(testtools.TestCase):
    """A real journal, with nova and placement in memory."""

    def setUp(self) -> None:
        super().setUp()
        # Shown only for a failed test.
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(ShortUUIDs())
        self.conf = make_conf(self)
        self.log: list[tuple[str, str]] = []
        self.placement = Placement(self.log)
        self.nova = Nova(self.log)
        self.now = 1000.0
        """Seconds since the epoch."""
        self.clock = 0.0
        """Seconds of the monotonic clock."""
        self.journal = self.open_journal()
        self.reconciler = self.new_reconciler()

    def new_reconciler(self, **options: Any) -> reconciler.Reconciler:
        """Build a reconciler of this journal, nova and placement."""
        return reconciler.Reconciler(
            self.journal.ledger, self.nova, self.placement, self.journal.rows,
            **options)

    def open_journal(self) -> store.Journal:
        """Open the journal as another process does."""
        return store.Journal(self.conf, now=lambda: self.now,
                             clock=lambda: self.clock)

    def record(self, host: str, nodes: abc.Iterable[str] = ()) -> journal.Row:
        """Record the row of a running operation."""
        row = self.journal.rows.make(journal.Dirty(host, frozenset(nodes)))
        self.journal.rows.record(row, self.nova.hosts_of)
        return row

    def hand_over(self, host: str, nodes: abc.Iterable[str] = (),
                  error: str = 'refused') -> journal.Row:
        """Record an operation that did not reach placement."""
        row = self.record(host, nodes)
        self.journal.rows.hand_over(row, error)
        return row

    def sent(self, method: str) -> list[str]:
        """Return what the requests of a method, or reads, were about."""
        return [what for each, what in self.log if each == method]

    def drain(self) -> outcome.Outcome:
        """Converge all rows of the journal, and close the handed-over rows."""
        return reconciler.drain(self.reconciler, self.journal.rows.all())


def make_conf(test: testtools.TestCase) -> cfg.ConfigOpts:
    """Return nova's configuration as far as this package reads it."""
    options = cfg.ConfigOpts()
    options.register_opt(cfg.StrOpt('state_path'))
    conf.register_opts(options)
    options([], default_config_files=[], default_config_dirs=[])
    options.set_override(
        'state_path', test.useFixture(fixtures.TempDir()).path)
    return options


def hide_journal(options: cfg.ConfigOpts) -> None:
    """Give the journal a path whose status cannot be read, even by root."""
    options.set_override('connection', 'sqlite:////%s/journal.sqlite'
                         % ('x' * 300), 'aggregate_mirror_database')
