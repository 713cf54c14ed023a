# SPDX-License-Identifier: Apache-2.0
"""Our processes: the real hook, journal and agent, between simulated ends."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import functools
from typing import Any
from typing import TypeVar

from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror import agent
from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import mirror
from nova_aggregate_mirror import pauses
from nova_aggregate_mirror import reconciler
from tests.simulation import nova as simulated_nova
from tests.simulation import placement as simulated_placement
from tests.simulation import world as simulated

T = TypeVar('T')

METHODS = {'add': 'add_host_to_aggregate',
           'remove': 'remove_host_from_aggregate',
           'delete': 'delete_aggregate'}


class Memory:
    """A database for the journal, on one connection that stays open.

    Most of the time of a schedule is SQLAlchemy's; this halves it.
    """

    def __init__(self) -> None:
        self._connection = sa.create_engine('sqlite://').connect()
        models.metadata.create_all(self._connection)
        self._connection.commit()
        self._driver = self._connection.connection.driver_connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.engine.Connection]:
        with self._connection.begin():
            yield self._connection

    def clear(self) -> None:
        """Begin anew, with the same row ids too."""
        for table in (*models.metadata.tables, 'sqlite_sequence'):
            self._driver.execute('DELETE FROM ' + table)
        self._driver.commit()

    def has_rows(self) -> bool:
        """Whether anything is in the journal."""
        return bool(self._driver.execute('SELECT id FROM dirty').fetchone())


class Cloud:
    """Nova, placement and the journal's database, and who is in them.

    :param conf: with the options of this package
    :param database: the journal's, empty
    """

    def __init__(self, world: simulated.World, conf: cfg.ConfigOpts,
                 database: Memory) -> None:
        self.world = world
        self.conf = conf
        self.database = database
        self.nova = simulated_nova.Nova(world)
        self.placement = simulated_placement.Placement(world, self.nova)
        self.judged: set[int] = set()
        """Rows that somebody was told that he may close."""
        self.journal_failed = False
        self.hooks: dict[str, Mirror] = {}


class Owner:
    """Who a process is; the dead are known to whoever is on their host."""

    def __init__(self, world: simulated.World, name: str, host: str) -> None:
        self._world = world
        self._host = host
        self._name = name

    def token(self) -> str:
        return '%s:%s' % (self._host, self._name)

    def is_mine(self, token: str) -> bool:
        return token == self.token()

    def can_tell(self, token: str) -> bool:
        return token.partition(':')[0] == self._host

    def is_dead(self, token: str) -> bool:
        return self.can_tell(token) and (
            token.partition(':')[2] in self._world.dead)

    def end(self, key: str) -> None:
        self._world.words.setdefault(self.token(), set()).add(key)

    def ended(self, token: str) -> frozenset[str]:
        return frozenset(self._world.words.get(token, ())
                         if self.can_tell(token) else ())

    def take_back(self) -> None:
        self._world.words.pop(self.token(), None)


class Journal(journal.Journal):
    """The real one; each of its transactions is a step of the schedule."""

    def __init__(self, cloud: Cloud, name: str, host: str) -> None:
        world = cloud.world
        super().__init__(
            cloud.conf, now=lambda: world.now, jitter=lambda: 1.0,
            owner=Owner(world, name, host), database=cloud.database)
        self.cloud = cloud
        self.name = name

    def closable(self, rows: Iterable[journal.Row]) -> list[journal.Row]:
        found = super().closable(rows)
        self.cloud.judged |= {row.id for row in found}
        return found

    def _run(self, work: Callable[[Any], T]) -> T:
        # Of a function in queries, or of one within a method.
        name = work.__qualname__.removeprefix('Journal.').partition('.')[0]
        cloud, world = self.cloud, self.cloud.world
        commit = functools.partial(super()._run, work)
        world.send(commit, 'journal: %s', name)
        if world.down != 'journal' and not world.fault(0.02):
            return commit()
        cloud.journal_failed = True
        if world.choices.likely():
            world.say('committed, and the answer is lost')
            commit()
        raise exceptions.JournalUnavailable('away')


class Parts:
    """What a process is made of, in the way of ``mirror._Process``."""

    def __init__(self, cloud: Cloud, name: str, host: str = 'one') -> None:
        self.cloud = cloud
        self.journal = Journal(cloud, name, host)
        self.source = simulated_nova.Source(cloud.world, cloud.nova)
        self.report = simulated_placement.Report(cloud.world, cloud.placement)
        self.reconciler = reconciler.Reconciler(
            self.journal, self.source, self.report)
        self.pauses = pauses.Pauses(lambda: cloud.world.now)


class Mirror(mirror.Mirror):
    """The real hook, in a process of the simulation."""

    def __init__(self, parts: Parts) -> None:
        self._conf = parts.cloud.conf
        self._parts = parts
        self.row: journal.Row | None = None
        self.failed = False
        """Whether nova's method did."""

    def before(self, operation: hooks.Operation) -> Any:
        kept = super().before(operation)
        self.row = kept.row
        if self.row is None:
            # As an ERROR says, where that is not nothing.
            self._parts.cloud.nova.unexpected(operation.aggregate_id,
                                              operation.host)
        return kept

    def is_judged(self) -> bool:
        """Whether anyone but this process may close what it recorded."""
        return self.row is not None and (
            self.row.id in self._parts.cloud.judged)

    def _process(self) -> Parts:
        return self._parts


class Figures:
    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


def handle(hook: Mirror, cloud: Cloud, operation: tuple[str, int, str],
           request_id: str) -> None:
    """One request in nova-api, as ``hooks`` wraps nova's method."""
    method, number, host = operation
    about = hooks.Operation(METHODS[method], number, host, request_id)
    hook.row, hook.failed = None, False
    kept = hook.before(about)
    try:
        cloud.nova.call(method, number, host, hook.is_judged)
    except simulated.NovaError as exc:
        hook.failed = True
        cloud.world.say('nova: %s', exc)
    finally:
        hook.after(about, kept)


def serve(hook: Mirror, cloud: Cloud, process: str,
          operations: Iterable[tuple[str, int, str]]) -> None:
    """What one worker of nova-api does."""
    for number, operation in enumerate(operations):
        handle(hook, cloud, operation, 'req-%s-%d' % (process, number))


def drain(parts: Parts, steps: int) -> None:
    """What the draining thread of an agent does."""
    world = parts.cloud.world
    step = drainer(parts)
    for _ in range(steps):
        # It asks every second; here only when there is an answer.
        world.wait(parts.cloud.database.has_rows)
        try:
            step()
        except exceptions.JournalUnavailable as exc:
            world.say('agent: %s', exc)


def drainer(parts: Parts) -> Callable[[], bool]:
    """The real step of an agent, with its memory of what is away."""
    world = parts.cloud.world
    drain = agent.Drain(parts.journal, parts.source, parts.report, Figures(),
                        now=lambda: world.now)
    # A mutant has changed this one.
    drain._reconciler = parts.reconciler
    return drain.step


def sync(parts: Parts) -> None:
    """What the syncing thread of an agent does."""
    world = parts.cloud.world
    if world.current() and world.choices.likely():
        world.wait(parts.cloud.database.has_rows)
    agent.Sync(parts.cloud.conf, parts.reconciler, Figures(),
               now=lambda: world.now).step()


def command(parts: Parts) -> None:
    """What an operator's sync_aggregates does."""
    try:
        parts.reconciler.sync(parts.journal.rows())
    except exceptions.MirrorError as exc:
        parts.cloud.world.say('command: %s', exc)
