# SPDX-License-Identifier: Apache-2.0
"""Hook, drain and full sync agree about small clouds with silent cells.

The databases, the source and the reconciler are real; placement and the
ledger are in memory.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import itertools
import pathlib
import sqlite3
from typing import Any

import fixtures
import hypothesis
from hypothesis import strategies as st
from nova.conf import CONF
from oslo_config import fixture as config_fixture
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from tests.unit import doubles

NODE = 'ab54c1f6-0f4c-4a34-b5cc-09e6d5cc4b6c'
STORAGE = 'f2ad6ad0-7f0e-4c0f-9c0f-53b2d6c5b3a1'
SPELLINGS = (NODE, NODE.upper(), NODE.replace('-', ''))
CELLS = ('cell1', 'cell2', 'cell3')
HOSTS = ('h1', 'h2', 'h3')
AGGREGATES = ('a', 'b', 'c')
FOREIGN = 'foreign'
API_TABLES = """
CREATE TABLE aggregates (id INTEGER PRIMARY KEY, uuid TEXT, name TEXT);
CREATE TABLE aggregate_hosts (aggregate_id INTEGER, host TEXT);
CREATE TABLE host_mappings (host TEXT, cell_id INTEGER);
CREATE TABLE cell_mappings (id INTEGER PRIMARY KEY, uuid TEXT, name TEXT,
                            database_connection TEXT);
"""
CELL_TABLES = (
    'CREATE TABLE compute_nodes (uuid TEXT, host TEXT, deleted INTEGER);')


@dataclasses.dataclass(frozen=True)
class World:
    """A cloud with one compute node, as each of its services has it."""

    rows: abc.Mapping[str, tuple[str, str]]
    """Cell to the host of the compute node and the spelling of its UUID."""
    mapped: abc.Mapping[str, str]
    members: abc.Mapping[str, frozenset[str]]
    """Aggregates that exist, to their hosts."""
    marked: frozenset[str]
    """Aggregates that users deleted."""
    vanished: frozenset[str]
    """Aggregates that nova does not have either."""
    placed: frozenset[str]
    """Aggregates of the provider."""
    silent: frozenset[str]

    @property
    def home(self) -> set[str]:
        """Hosts of the node that are mapped to the cell that has it."""
        return {host for cell, (host, _uuid) in self.rows.items()
                if self.mapped.get(host) == cell}

    @property
    def hosts(self) -> set[str]:
        """The hosts of the node, if each cell is heard."""
        return self.home or {host for host, _uuid in self.rows.values()}

    def wants(self, host: str) -> frozenset[str]:
        return frozenset(uuid for uuid, hosts in self.members.items()
                         if host in hosts)

    @property
    def every(self) -> frozenset[str]:
        """What all hosts of the node want."""
        return frozenset(AGGREGATES).intersection(
            *map(self.wants, self.hosts)) if self.hosts else frozenset()

    @property
    def some(self) -> frozenset[str]:
        """What at least one host of the node wants."""
        return frozenset().union(*map(self.wants, self.hosts))


class NovaDatabases(fixtures.Fixture):
    """An API database and cells in SQLite, with the columns that are read."""

    def _setUp(self) -> None:
        self._path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._open('api').executescript(API_TABLES)
        for cell in CELLS:
            self._open(cell).executescript(CELL_TABLES)
        self.useFixture(config_fixture.Config(CONF)).config(
            group='api_database', connection=self._url('api'))

    def fill(self, world: World, silent: abc.Collection[str]) -> None:
        """Replace everything; the databases of silent cells are missing."""
        numbers = {cell: id for id, cell in enumerate(CELLS, 1)}
        members = []
        for id, hosts in enumerate(world.members.values()):
            members += [(id, host) for host in hosts]
        files = {cell: 'missing/directory' for cell in silent}
        self._write(
            'api', cell_mappings=[
                (id, cell, cell, self._url(files.get(cell, cell)))
                for cell, id in numbers.items()],
            host_mappings=[(host, numbers[cell])
                           for host, cell in world.mapped.items()],
            aggregates=[(id, uuid, 'name of ' + uuid)
                        for id, uuid in enumerate(world.members)],
            aggregate_hosts=members)
        for cell in CELLS:
            self._write(cell, compute_nodes=[
                (uuid, host, 0) for where, (host, uuid) in world.rows.items()
                if where == cell])

    def _write(self, name: str, **tables: list[tuple[Any, ...]]) -> None:
        with contextlib.closing(self._open(name)) as connection, connection:
            for table, rows in tables.items():
                connection.execute('DELETE FROM ' + table)
                for row in rows:
                    marks = ', '.join('?' * len(row))
                    connection.execute(
                        'INSERT INTO %s VALUES (%s)' % (table, marks), row)

    def _open(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path / (name + '.sqlite'))
        connection.execute('PRAGMA synchronous = OFF')
        connection.execute('PRAGMA journal_mode = MEMORY')
        return connection

    def _url(self, name: str) -> str:
        return 'sqlite:///%s' % (self._path / (name + '.sqlite'))


def _subsets(values: tuple[str, ...]) -> st.SearchStrategy[frozenset[str]]:
    return st.sampled_from([
        frozenset(some) for size in range(len(values) + 1)
        for some in itertools.combinations(values, size)])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    rows = draw(st.dictionaries(
        st.sampled_from(CELLS),
        st.tuples(st.sampled_from(HOSTS), st.sampled_from(SPELLINGS))))
    mapped = draw(st.dictionaries(
        st.sampled_from(HOSTS), st.sampled_from(CELLS)))
    # Otherwise a node would rarely have several hosts that are mapped.
    at_home = draw(_subsets(CELLS))
    mapped |= {host: cell for cell, (host, _uuid) in rows.items()
               if cell in at_home}
    state = {uuid: draw(st.sampled_from(
        ('current', 'current', 'marked', 'vanished'))) for uuid in AGGREGATES}

    def those(wanted: str) -> frozenset[str]:
        return frozenset(
            uuid for uuid, what in state.items() if what == wanted)

    return World(
        rows, mapped,
        {uuid: draw(_subsets(HOSTS)) for uuid in sorted(those('current'))},
        those('marked'), those('vanished'),
        draw(_subsets((*AGGREGATES, FOREIGN))), draw(_subsets(CELLS)))


class Ledger(journal.Ledger):
    """Everything that is, or was, an aggregate of nova."""

    def __init__(self, world: World) -> None:
        self._entries = {uuid: journal.LedgerEntry(uuid in world.marked)
                         for uuid in AGGREGATES}

    def entries(self):
        return self._entries

    def intersection(self, aggregates):
        return frozenset(aggregates) & self._entries.keys()


def _in_worlds(test, examples=100):
    """Run a test in many worlds, the same in every run."""
    return hypothesis.settings(
        max_examples=examples, deadline=None, database=None,
        derandomize=True, suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.filter_too_much,
            hypothesis.HealthCheck.differing_executors],
    )(hypothesis.given(world=worlds())(test))


_in_fewer_worlds = functools.partial(_in_worlds, examples=50)


class TestOneTruth(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(doubles.ShortUUIDs())
        self.databases = self.useFixture(NovaDatabases())
        self.source = database.DatabaseSource()

    def play(self, world, silent=()):
        """Set up a world; all cells answer unless some are ``silent``."""
        self.databases.fill(world, silent)
        self.placement = doubles.Placement([])
        self.placement.create(NODE, *world.placed)
        # A shared storage, which is no compute node.
        self.placement.create(STORAGE, *world.placed)
        self.reconciler = reconciler.Reconciler(
            Ledger(world), self.source, self.placement)

    def sync(self):
        """Run a full sync as the agent does."""
        before = self.placement.aggregates[STORAGE] & {FOREIGN}
        sync = full_sync.run(self.reconciler, request=full_sync.Request(
            full_sync.UNLIMITED))
        self.assertEqual(
            before, self.placement.aggregates[STORAGE] & {FOREIGN})
        return sync, frozenset(self.placement.aggregates[NODE])

    def close(self, host, nodes=()):
        """Converge and close a row, as a drain does."""
        dirty = journal.Dirty(host, frozenset(nodes))
        outcome = reconciler.drain(
            self.reconciler, [journal.Row('id', dirty, False, 0)])
        return (outcome.unfinished.get(dirty),
                frozenset(self.placement.aggregates[NODE]))

    @_in_worlds
    def test_a_full_sync_has_one_result(self, world):
        """With all cells, it is exactly what the hosts of the node want.

        An association that only some of several hosts want is unchanged, like
        a foreign one.
        """
        hypothesis.assume(world.rows)
        self.play(world)
        sync, placed = self.sync()
        disputed = world.some - world.every
        self.assertEqual(
            world.every | world.placed & (disputed | {FOREIGN}), placed)
        failed = sync.outcome.failed
        self.assertEqual(bool(disputed), bool(failed))
        for error in failed.values():
            self.assertIsInstance(error, exceptions.Contradiction)
            for cell, (host, _uuid) in world.rows.items():
                # Without a mapped host, all of them are its hosts.
                if not world.home:
                    self.assertIn(
                        'host %s in cell %s' % (host, cell), str(error))

    @_in_fewer_worlds
    def test_nothing_changes_what_a_full_sync_left(self, world):
        """Neither a second sync nor a hook or the drain, of any host.

        Of several mapped hosts, the last one that is converged decides, and
        the next sync leaves that alone.
        """
        hypothesis.assume(world.rows)
        self.play(world)
        fixed = self.sync()[1]
        self.assertEqual(fixed, self.sync()[1])
        for host, nodes in itertools.product(HOSTS, ((), (NODE,))):
            error, placed = self.close(host, nodes)
            self.assertIsNone(error)
            if len(world.home) < 2:
                self.assertEqual(fixed, placed)
            else:
                self.assertLessEqual(placed ^ fixed, world.some - world.every)
            self.assertEqual(placed, self.sync()[1])

    @_in_fewer_worlds
    def test_silence_changes_nothing_wrongly(self, world):
        """What all hosts want stays, and what no host wants is not added."""
        gone = world.marked | world.vanished
        actors = [self.sync, *(
            functools.partial(self.close, host, nodes)
            for host, nodes in itertools.product(HOSTS, ((), (NODE,))))]
        for act in actors:
            self.play(world, world.silent)
            placed = act()[1]
            removed, added = world.placed - placed, placed - world.placed
            self.assertEqual(set(), removed & (world.every | {FOREIGN}))
            self.assertEqual(set(), added - world.some)
            if len(world.home) < 2:
                self.assertEqual(set(), (removed - gone | added) & (
                    world.some - world.every))

    @_in_worlds
    def test_row_of_an_unknown_node_stays(self, world):
        """It names the cells for which it waits."""
        hypothesis.assume(not world.home)
        hypothesis.assume(world.silent)
        self.play(world, world.silent)
        error, placed = self.close('h1', [NODE])
        self.assertEqual(world.placed, placed)
        self.assertIsInstance(error, exceptions.CellUnavailable)
        self.assertLessEqual(
            error.cells, {'%s (%s)' % (cell, cell) for cell in world.silent})
        self.assertNotEqual(set(), error.cells)

    @_in_worlds
    def test_healthy_host_waits_for_no_other_cell(self, world):
        """Hook, drain and sync make it right, and its row is closed."""
        hypothesis.assume(len(world.home) == 1)
        host, = world.home
        silent = set(CELLS) - {world.mapped[host]}
        for nodes in (), (NODE,):
            self.play(world, silent)
            error, placed = self.close(host, nodes)
            self.assertIsNone(error)
            self.assertEqual(
                world.wants(host) | world.placed & {FOREIGN}, placed)
        self.play(world, silent)
        self.assertEqual(placed, self.sync()[1])

    @_in_worlds
    def test_deleted_aggregate_goes(self, world):
        """Whichever cells are silent, and whoever has the node."""
        self.play(world, world.silent)
        self.assertEqual(set(), self.sync()[1] & world.marked)
