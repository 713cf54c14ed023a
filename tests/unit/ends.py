# SPDX-License-Identifier: Apache-2.0
"""Nova and placement in memory, to put a converge between the two."""

from collections.abc import Callable
from collections.abc import Iterable
import pathlib

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import reconciler
from nova_aggregate_mirror import report
from nova_aggregate_mirror import source
from nova_aggregate_mirror import workers


class Placement:
    """Providers, their aggregates and generations, and what was asked."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self.log = log
        self.aggregates: dict[str, set[str]] = {}
        self.generations: dict[str, int] = {}
        self.before_put: Callable[[str], None] = lambda provider: None
        self.broken: dict[tuple[str, str], exceptions.MirrorError] = {}

    def create(self, provider: str, *aggregates: str) -> None:
        self.aggregates[provider] = set(aggregates)
        self.generations[provider] = 0

    def write(self, provider: str, aggregates: Iterable[str]) -> None:
        """What another client of placement does."""
        self.aggregates[provider] = set(aggregates)
        self.generations[provider] += 1

    def get(self, provider: str) -> report.Provider:
        self._ask('GET', provider)
        if provider not in self.aggregates:
            raise exceptions.ProviderNotFound('no provider %s' % provider)
        return report.Provider(uuid=provider,
                               aggregates=frozenset(self.aggregates[provider]),
                               generation=self.generations[provider])

    def put(self, provider: report.Provider,
            aggregates: frozenset[str]) -> report.Provider:
        self.before_put(provider.uuid)
        self._ask('PUT', provider.uuid)
        if provider.uuid not in self.aggregates:
            raise exceptions.ProviderNotFound('no provider %s' % provider.uuid)
        if provider.generation != self.generations[provider.uuid]:
            raise exceptions.GenerationConflict('%s changed' % provider.uuid)
        self.write(provider.uuid, aggregates)
        return report.Provider(uuid=provider.uuid, aggregates=aggregates,
                               generation=self.generations[provider.uuid])

    def members(self, *aggregates: str) -> frozenset[str]:
        self._ask('MEMBERS', ','.join(aggregates))
        return frozenset(
            provider for provider, found in self.aggregates.items()
            if found & set(aggregates))

    def providers(self) -> frozenset[str]:
        self._ask('ALL', '')
        return frozenset(self.aggregates)

    def probe(self) -> None:
        self._ask('PROBE', '')

    def memberships(self, aggregates: Iterable[str],
                    unlikely: Iterable[str] = (),
                    each: workers.Each | None = None) -> source.Memberships:
        self._ask('LIST', '')
        wanted = {*aggregates, *unlikely}
        return {provider: frozenset(found & wanted)
                for provider, found in self.aggregates.items()}

    def endpoint(self) -> str:
        return 'region RegionOne'

    def _ask(self, method: str, what: str) -> None:
        self.log.append((method, what))
        if (method, what) in self.broken:
            raise self.broken[method, what]


class Nova:
    """Aggregates with their hosts, and compute nodes."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self.log = log
        self.hosts_of: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
        self.unmapped: set[str] = set()
        self.silent: set[str] = set()
        """Hosts in the cell that does not answer."""
        self.broken: exceptions.MirrorError | None = None

    def members(self) -> source.Memberships:
        hosts = {host for hosts in self.hosts_of.values() for host in hosts}
        return {host: frozenset(uuid for uuid, hosts in self.hosts_of.items()
                                if host in hosts) for host in hosts}

    def aggregates(self) -> dict[str, str]:
        if self.broken:
            raise self.broken
        return {uuid: 'name of ' + uuid for uuid in self.hosts_of}

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        if self.broken:
            raise self.broken
        return source.Place('')

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        self.log.append(('TRUTH', ''))
        if self.broken:
            raise self.broken
        wanted, asked = set(hosts), set(nodes)
        return source.Nova(
            aggregates={uuid: name for uuid, name in self.aggregates().items()
                        if uuid in set(aggregates)},
            members=self.members(),
            nodes={node: host for node, host in self.nodes.items()
                   if (host in wanted or node in asked)
                   and host not in self.silent},
            unmapped=frozenset(self.unmapped),
            cells_down={'cell9': 'silent'} if self.silent else {},
            hosts_down=frozenset(self.silent & wanted))

    def read_all(self) -> source.Nova:
        return self.read(self.nodes.values(), (), self.hosts_of)


class TestCase(testtools.TestCase):
    """A real journal between nova and placement in memory."""

    def setUp(self) -> None:
        super().setUp()
        # Told with a test that fails, and not between those that pass.
        self.useFixture(fixtures.FakeLogger())
        self.conf = make_conf(self)
        self.log: list[tuple[str, str]] = []
        self.placement = Placement(self.log)
        self.nova = Nova(self.log)
        self.now = 1000.0
        self.journal = journal.Journal(self.conf, now=lambda: self.now)
        self.reconciler = reconciler.Reconciler(
            self.journal, self.nova, self.placement)

    def record(self, host: str = '', nodes: Iterable[str] = (),
               aggregate: str = '') -> journal.Row:
        uuids = self.nova.hosts_of.keys() | ({aggregate} - {''})
        return self.journal.record(journal.Dirty(
            host=host, nodes=frozenset(nodes), aggregate_uuid=aggregate),
            uuids)


def make_conf(test: testtools.TestCase) -> cfg.ConfigOpts:
    """Nova's configuration, as far as this package reads it."""
    options = cfg.ConfigOpts()
    options.register_opt(cfg.StrOpt('state_path'))
    conf.register_opts(options)
    options([], default_config_files=[], default_config_dirs=[])
    options.set_override('state_path', str(pathlib.Path(
        test.useFixture(fixtures.TempDir()).path)))
    return options
