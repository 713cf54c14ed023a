# SPDX-License-Identifier: Apache-2.0
"""The real hook, journal and agent as processes of a simulated cloud."""

from collections import abc
import contextlib
import functools
import threading
from typing import Any
from typing import TypeVar

from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror.hooks import mirror
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.journal import synced_ledger
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from tests.simulation import databases
from tests.simulation import nova as simulated_nova
from tests.simulation import placement as simulated_placement
from tests.simulation import threads
from tests.simulation import world as simulated

T = TypeVar('T')

CELL_TIMEOUT = 20.0
"""Seconds; all waits and ticks of a schedule together are less than
``max_call_age``."""
LOCKED = 'another session locks the row'
METHODS = {'add': 'add_host_to_aggregate',
           'remove': 'remove_host_from_aggregate',
           'delete': 'delete_aggregate'}


class Memory:
    """An in-memory journal database on a single open connection.

    SQLAlchemy takes most of a schedule's time; this halves it.
    """

    def __init__(self) -> None:
        self._connection = sa.create_engine('sqlite://').connect()
        models.metadata.create_all(self._connection)
        self._connection.exec_driver_sql('CREATE TABLE locked (id)')
        for change in 'UPDATE', 'DELETE':
            self._connection.exec_driver_sql(
                'CREATE TRIGGER locked_%s BEFORE %s ON dirty WHEN OLD.id IN '
                "(SELECT id FROM locked) BEGIN SELECT RAISE(ABORT, '%s'); END"
                % (change, change, LOCKED))
        self._connection.commit()
        self._driver = self._connection.connection.driver_connection

    @contextlib.contextmanager
    def begin(self) -> abc.Iterator[sa.engine.Connection]:
        """Begin a transaction, as an engine does."""
        with self._connection.begin():
            yield self._connection

    def clear(self) -> None:
        """Delete all rows of all tables, and end all locks."""
        self.unlock()
        for table in models.metadata.tables:
            self._driver.execute('DELETE FROM ' + table)
        self._driver.commit()

    def lock(self, rows: abc.Iterable[str]) -> None:
        """Lock rows of the journal as another session, until ``unlock``."""
        self._driver.executemany('INSERT INTO locked VALUES (?)',
                                 [(row,) for row in rows])
        self._driver.commit()

    def has_locks(self) -> bool:
        """Check whether another session locks any row."""
        return bool(self._driver.execute('SELECT id FROM locked').fetchone())

    def unlock(self) -> None:
        self._driver.execute('DELETE FROM locked')
        self._driver.commit()

    def dump(self) -> abc.Iterator[tuple]:
        """Return all rows of all tables."""
        for table in models.metadata.tables:
            yield from self._driver.execute('SELECT * FROM ' + table)

    def has_rows(self) -> bool:
        """Check whether the journal has any row."""
        return bool(self._driver.execute('SELECT id FROM dirty').fetchone())

    def ledger(self) -> set[str]:
        """Return every UUID in the ledger."""
        return {uuid for uuid, in self._driver.execute(
            'SELECT aggregate_uuid FROM ledger')}

    def is_running(self, row: str) -> bool:
        """Check whether a row exists and was not handed over."""
        return bool(self._driver.execute(
            'SELECT id FROM dirty WHERE id = ? AND running', (row,)
        ).fetchone())

    def has_row(self, row: str) -> bool:
        """Check whether a row is in the journal."""
        return bool(self._driver.execute(
            'SELECT id FROM dirty WHERE id = ?', (row,)).fetchone())


class Cloud:
    """Nova, placement and the journal database of one schedule.

    :param conf: with the options of this package
    :param database: the journal's, empty
    :param clock: lets threads wait in the time of this schedule
    """

    def __init__(self, world: simulated.World, conf: cfg.ConfigOpts,
                 database: Memory, clock: threads.Clock) -> None:
        self.world = world
        self.conf = conf
        self.clock = clock
        self.database = database
        self.limits = engines.Limits.of_call(
            conf.aggregate_mirror.inline_timeout,
            conf.aggregate_mirror.inline_backoff)
        self.nova = simulated_nova.Nova(world)
        self.placement = simulated_placement.Placement(world, self.nova)
        self.judged: set[str] = set()
        """Rows that a process other than their own may have closed."""
        self.began: dict[str, float] = {}
        """When the operation of each row began, by the simulation's clock."""
        self.unrecorded: dict[str, tuple[int, str]] = {}
        """Rows that may be missing from the journal, to their operation."""
        self.journal_failures = 0
        self.fed: set[str] = set()
        """Aggregates that a full sync has seen in nova."""
        self.syncs = 0


class Database(engine.Database):
    """The journal database; each transaction is a step of the schedule."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud.conf, limits=cloud.limits)
        self.cloud = cloud

    def open(self) -> Memory:
        return self.cloud.database

    def prepare(self) -> None:
        """Its tables are there."""

    def run(self, work: abc.Callable[[Any], T], insist: bool = False) -> T:
        # The name of the method that defines it.
        name = work.__qualname__.partition('.<')[0]
        cloud, world = self.cloud, self.cloud.world
        commit = functools.partial(self._commit, work)
        world.send(commit, 'journal: %s', name)
        if world.down != 'journal' and not world.fault(0.02):
            return commit()
        cloud.journal_failures += 1
        if world.choices.likely():
            world.say('committed, and the answer is lost')
            commit()
        raise exceptions.JournalUnavailable('away')

    def _commit(self, work: abc.Callable[[Any], T]) -> T:
        try:
            return super().run(work)
        except exceptions.JournalUnavailable as exc:
            if LOCKED not in str(exc):
                raise
            self.cloud.world.now += self.limits.lock_wait
            raise exceptions.JournalLocked(LOCKED) from exc


class Journal:
    """The real journal, with the clocks of the process's host."""

    def __init__(self, cloud: Cloud, skew: float) -> None:
        world = cloud.world
        self.now = lambda: world.now + skew
        self.database = Database(cloud)
        self.ledger = synced_ledger.SyncedLedger(
            cloud.conf, self.database, self.now, clock=lambda: world.now)
        self.rows = store.StoredRows(self.database, self.ledger, self.now)


class Parts(processes.Process):
    """The parts of a process of nova-api, or of another one.

    :param skew: the clock error of its host, in seconds
    :param reads: how long it waits for cells, by default as nova-api does;
        see ``databases.source``
    """

    def __init__(self, cloud: Cloud, name: str, skew: float = 0.0,
                 **reads: bool) -> None:
        self.cloud = cloud
        self.name = name
        self.journal = Journal(cloud, skew)
        self.rows, self.ledger = self.journal.rows, self.journal.ledger
        options = cloud.conf.aggregate_mirror
        self.limits = cloud.limits
        self.source = databases.source(
            cloud.clock, cloud.nova, engines.Limits(options.cell_timeout)
            if reads else self.limits, **reads)
        self.placement = simulated_placement.Client(
            cloud.world, cloud.placement)
        self.reconciler = reconciler.Reconciler(
            self.journal.ledger, self.source, self.placement,
            self.journal.rows)
        self.context = self.reconciler
        self.without_ledger = provider_writes.Context(
            journal.Ledger(), self.source, self.placement)
        self._now = lambda: cloud.world.now
        seconds = self.limits.backoff
        self._hung = backoff.Backoff(seconds, seconds)
        self._refused = backoff.Backoff(
            longest=min(seconds, processes.REFUSED_PAUSE))
        self.prepare: abc.Callable[[drain.Drain], object] = lambda drain: None
        """The mutant's change to an agent's drain."""

    def check_nova(self) -> None:
        """Accept the journal: there is only one nova."""


class Mirror(mirror.Mirror):
    """The real hook in a simulated process."""

    def __init__(self, parts: Parts) -> None:
        self._conf = parts.cloud.conf
        self._parts = parts
        self._local = threading.local()
        self._is_observer = False
        self.row: journal.Row | None = None
        self.failed = False
        """Whether nova's method failed."""

    def before(self, operation: hooks.Operation) -> Any:
        cloud = self._parts.cloud
        if not operation.host:
            return self._before_delete(cloud.nova, operation)
        kept = super().before(operation)
        self.row = kept.row
        cloud.began[kept.row.id] = cloud.world.now
        if not kept.recorded:
            # An unrecorded call logs an ERROR, unless it is mirrored or handed
            # over.
            cloud.unrecorded[kept.row.id] = (
                int(operation.aggregate_id), operation.host)
        return kept

    def _before_delete(self, nova: simulated_nova.Nova,
                       operation: hooks.Operation) -> Any:
        uuid = nova.ids[int(operation.aggregate_id)]
        nova.deletions[uuid] += 1
        kept = super().before(operation)
        if kept and kept.recorded:
            nova.marked.add(kept.uuid)
        if not kept:
            # Not found in nova, therefore not marked.
            nova.deletions[uuid] -= 1
        return kept

    def _converge(self, operation: hooks.Operation, request: Any, kept: Any
                  ) -> None:
        super()._converge(operation, request, kept)
        if kept.row:
            self._parts.cloud.unrecorded.pop(kept.row.id, None)

    def is_judged(self) -> bool:
        """Check whether another process may close the row of this call."""
        return self.row is not None and (
            self.row.id in self._parts.cloud.judged)

    def _process(self) -> Parts:
        return self._parts


class Figures:
    def __getattr__(self, name: str) -> abc.Callable:
        return lambda *args, **kwargs: None


def handle(hook: Mirror, cloud: Cloud, operation: tuple[str, int, str],
           request_id: str) -> None:
    """Handle one request in nova-api, as ``hooks`` wraps nova's method."""
    method, number, host = operation
    about = hooks.Operation(METHODS[method], number, host, request_id)
    hook.row, hook.failed = None, False
    kept = hook.before(about)
    failures = cloud.journal_failures
    try:
        cloud.nova.call(method, number, host, hook.is_judged)
    except simulated.NovaError as exc:
        hook.failed = True
        cloud.world.say('nova: %s', exc)
    finally:
        hook.after(about, kept)
    if hook.row and cloud.journal_failures == failures:
        # Either mirrored, or handed over to the journal.
        cloud.unrecorded.pop(hook.row.id, None)


def serve(hook: Mirror, cloud: Cloud, process: str,
          operations: abc.Iterable[tuple[str, int, str]]) -> None:
    """Handle the requests of one nova-api worker."""
    for number, operation in enumerate(operations):
        handle(hook, cloud, operation, 'req-%s-%d' % (process, number))


def drain_journal(parts: Parts, steps: int) -> None:
    """Run an agent's drain thread.

    There is no lease: two agents may both believe that they lead.
    """
    world = parts.cloud.world
    step = drainer(parts)
    for _ in range(steps):
        # The real drain polls every second; here it waits for rows.
        world.wait(parts.cloud.database.has_rows)
        try:
            step()
        except exceptions.JournalUnavailable as exc:
            world.say('agent: %s', exc)


def drainer(parts: Parts) -> abc.Callable[[], bool]:
    """Return the real drain step of an agent, with its state across steps."""
    cloud = parts.cloud
    prepared = drain.Drain(cloud.conf, parts.journal.rows, parts.reconciler,
                           Figures(), now=lambda: cloud.world.now)
    read = prepared._read

    def judging(ids: list[str]) -> list[journal.Row]:
        found = read(ids)
        oldest = cloud.world.now - cloud.conf.aggregate_mirror.max_call_age
        cloud.judged |= {
            row.id for row in found if not row.running and (
                cloud.began.get(row.id, 0.0) <= oldest
                or not cloud.database.is_running(row.id))}
        return found

    prepared._read = judging
    parts.prepare(prepared)
    return prepared.step


def sync(parts: Parts) -> None:
    """Run an agent's sync thread."""
    world = parts.cloud.world
    if world.current() and world.choices.likely():
        world.wait(parts.cloud.database.has_rows)
    compare(parts)


def compare(parts: Parts) -> bool:
    """Run an agent's real full sync; return whether it was complete."""
    cloud = parts.cloud
    done = periodic_sync.PeriodicSync(
        cloud.conf, parts.reconciler, Figures(),
        now=lambda: cloud.world.now).step()
    if done is None:
        return False
    cloud.syncs += 1
    if outcome_is_good(done):
        cloud.fed |= done.nova.aggregates.keys()
    return outcome_is_good(done)


def outcome_is_good(done: result.Result) -> bool:
    return not (done.outcome.failed or done.not_compared or done.refused)


def command(parts: Parts) -> None:
    """Run an operator's sync_aggregates."""
    world = parts.cloud.world
    if world.choices.likely():
        world.wait(parts.cloud.database.has_rows)
    try:
        full_sync.run(parts.reconciler, parts.journal.rows.all())
    except exceptions.MirrorError as exc:
        world.say('command: %s', exc)
