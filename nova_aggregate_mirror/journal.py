# SPDX-License-Identifier: Apache-2.0
"""What is dirty, who works on it, and which UUIDs ever were aggregates."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import random
import threading
import time
from typing import Any
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc

from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import history as history_queries
from nova_aggregate_mirror.db import queries
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import history
from nova_aggregate_mirror import owner as row_owner

T = TypeVar('T')

# A claim only spares others the work. It has to last longer than a batch, and
# a claimant that died is seen by its lock, long before.
CLAIM_SECONDS = 60.0
# Between two attempts of a row that alone fails: double each time, up to this.
LONGEST_BACKOFF = 30.0
# No process with a clock of about the same time writes a time so far ahead.
HORIZON = 2 * CLAIM_SECONDS
# A transaction that met others is repeated after a pause, each a little longer
# than the one before: for two seconds in all.
CONFLICTS = 20
PAUSE = 0.02
# Characters of an error; more help nobody, and a column is as long as it is.
ERROR_LENGTH = 1000
# Characters of a name, as columns of names have them.
NAME_LENGTH = 255


@dataclasses.dataclass(frozen=True)
class Dirty:
    """What one operation may leave different between nova and placement."""

    host: str = ''
    nodes: frozenset[str] = frozenset()
    aggregate_uuid: str = ''
    """Set instead of the host when the aggregate itself is being deleted."""
    request_id: str = ''


@dataclasses.dataclass(frozen=True)
class Row:
    """A journal row: what is dirty, and what became of it so far."""

    id: int
    dirty: Dirty
    owner: str
    """Who runs the operation; empty once it was handed over."""
    created_at: float
    """Seconds since the epoch, as are the other times."""
    attempts: int
    last_error: str
    next_attempt_at: float = 0.0
    claimant: str = ''
    claimed_until: float = 0.0


class Journal:
    """The journal and the ledger of one process.

    Every method raises ``JournalUnavailable`` when the database cannot be
    used; nothing was written then, as far as anybody can tell.

    :param conf: nova's configuration, with this package's options
    :param now: seconds since the epoch
    :param jitter: between 0 and 1, to keep processes out of step
    :param owner: who this process is, unless it is to find out
    :param database: one that is open and up to date already
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 now: Callable[[], float] = time.time,
                 jitter: Callable[[], float] = random.random,
                 owner: row_owner.Owner | None = None,
                 database: engine.Database | None = None) -> None:
        self._conf = conf
        self._now = now
        self._jitter = jitter
        self._mutex = threading.Lock()
        self._database = database
        self._entered: frozenset[str] = frozenset()
        """UUIDs that this process has seen in the ledger. They stay there
        for as long as nova has them."""
        self._to_hand_over: dict[int, str] = {}
        """Rows whose hand-over the database refused, to the reason."""
        self._forsaken: set[Row] = set()
        """Rows of ended operations that are perhaps there; see forsake."""
        self._word = threading.Lock()
        self._owner = owner or row_owner.Owner(row_owner.directory(conf))

    def record(self, dirty: Dirty, aggregates: Iterable[str] = ()) -> Row:
        """Write that something is about to become dirty; durable on return.

        :param aggregates: UUIDs of nova aggregates that enter the ledger in
            the same transaction
        :returns: the row, which this process owns
        :raises NotRecorded: when it could not be written
        """
        aggregates, now = frozenset(aggregates), self._now()
        late, forsaken = dict(self._to_hand_over), frozenset(self._forsaken)
        row = Row(id=0, dirty=dirty, owner='', created_at=now, attempts=0,
                  last_error='', next_attempt_at=now)

        def work(connection: Any) -> Row:
            token = self._owner.token()
            queries.remember(connection, aggregates - self._entered, now)
            for number, error in late.items():
                queries.hand_over(connection, number, token, error, now)
            queries.forsake(connection, token, {
                (one.created_at, one.dirty.request_id) for one in forsaken})
            number = queries.insert(
                connection, host=dirty.host or None,
                nodes=','.join(sorted(dirty.nodes)),
                aggregate_uuid=dirty.aggregate_uuid or None,
                request_id=dirty.request_id, owner=token, created_at=now,
                attempts=0, last_error='', next_attempt_at=now)
            return dataclasses.replace(row, id=number, owner=token)

        try:
            written = self._run(work)
        except exceptions.JournalUnavailable as exc:
            raise exceptions.NotRecorded(str(exc), row) from exc
        self._entered |= aggregates
        self._forsaken.difference_update(forsaken)
        for done in late:
            self._to_hand_over.pop(done, None)
        self._settle()
        return written

    def forsake(self, row: Row) -> None:
        """Give up a row that ``NotRecorded`` named: its operation has ended.

        It may be in the journal all the same. The next ``record`` hands it
        over, and until then an agent of this host reads that it has ended.
        """
        self._forsaken.add(row)
        self._settle(_unsure(row), lambda: row in self._forsaken)

    def complete(self, ids: Iterable[int]) -> int:
        """Close rows: placement shows what they were about.

        :returns: how many were there; what somebody else closed counts for
            them alone
        """
        ids = sorted(ids)
        return self._run(lambda connection: queries.delete(connection, ids))

    def hand_over(self, row: int, error: str) -> None:
        """Leave a row of ours to whoever converges it next.

        If the database is away, the next ``record`` does it. Until then an
        agent of this host reads that the operation has ended.
        """
        now, error = self._now(), _storable(error)
        self._to_hand_over[row] = error
        try:
            self._run(lambda connection: queries.hand_over(
                connection, row, self._owner.token(), error, now))
            self._to_hand_over.pop(row, None)
        finally:
            self._settle(str(row), lambda: row in self._to_hand_over)

    def claim(self, limit: int) -> list[Row]:
        """Take rows that are due, so that no other agent works on them.

        Due is a row that may be closed, and one of which nobody here can tell
        whether its operation still runs although it should have ended. A
        claim is a compare-and-swap; that of a dead process counts for nothing,
        and what this process claimed before it gets again.

        What is known here to have ended is handed over with it, so that from
        then on everybody may close it, and does not wait: who cannot tell may
        have tried it, in vain, and set it back. It comes first, once: rows
        that fail again and again are always due.

        :param limit: how many rows at most
        """
        now, token = self._now(), self._owner_token()
        late = now - 2 * self._conf.aggregate_mirror.inline_timeout
        owners = _Owners(self._owner)

        def work(connection: Any) -> list[Row]:
            seen = map(_row, queries.due(
                connection, now, now + HORIZON, limit))
            due = sorted(
                (row for row in seen if owners.leave_free(row, token, now)
                 and owners.is_due(row, now, late)),
                key=lambda row: (not owners.have_ended(row),
                                 row.next_attempt_at))[:limit]
            taken = queries.claim(connection, due, token, now + CLAIM_SECONDS)
            rows = [row for row in due if row.id in taken]
            queries.disown(connection, {
                row.id for row in rows if owners.have_ended(row)})
            return [dataclasses.replace(row, owner='')
                    if owners.have_ended(row) else row for row in rows]

        return self._run(work)

    def retry_later(self, errors: Mapping[Row, str],
                    longest: float = LONGEST_BACKOFF) -> None:
        """Give claimed rows back that failed by themselves; each waits.

        :param longest: seconds that a row that was often tried waits
        """
        now = self._now()
        if not errors:
            return
        later = {
            row.id: (_storable(error),
                     now + min(longest, _backoff(row.attempts))
                     * (0.5 + 0.5 * self._jitter()))
            for row, error in errors.items()}
        self._run(lambda connection: queries.retry_later(connection, later))

    def release(self, ids: Iterable[int]) -> None:
        """Give claimed rows back as they were: it was not their fault."""
        ids = sorted(ids)
        self._run(lambda connection: queries.release(connection, ids))

    def retry_now(self, ids: Iterable[int]) -> int:
        """Let rows be tried at once; tell how many there were."""
        ids = sorted(ids)
        return self._run(lambda connection: queries.retry_now(connection, ids))

    def rows(self) -> list[Row]:
        """Every row, oldest first."""
        return self._run(lambda connection: [
            _row(found) for found in queries.rows(connection)])

    def backlog(self) -> tuple[int, float]:
        """How many rows there are, and the age in seconds of the oldest."""
        count, oldest = self._run(queries.backlog)
        return count, max(0.0, self._now() - oldest) if count else 0.0

    def closable(self, rows: Iterable[Row]) -> list[Row]:
        """Those rows of which the operation has ended, so anyone may close.

        The owner handed it over, has left word that it has ended, or is dead.
        Of an owner on another host nobody can tell, so that its row waits for
        ``max_call_age``.
        """
        oldest = self._now() - self._conf.aggregate_mirror.max_call_age
        owners = _Owners(self._owner)
        with engine.translated():
            return [row for row in rows
                    if not row.owner or owners.have_ended(row)
                    or owners.should_have_ended(row, oldest)]

    def ledger(self) -> frozenset[str]:
        """Every UUID that is, or once was, a nova aggregate's."""
        return self._run(queries.ledger)

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        """Those of these UUIDs that are in the ledger."""
        wanted = frozenset(aggregates)
        if not wanted:
            return wanted
        return self._run(lambda connection: queries.known(connection, wanted))

    def remember(self, aggregates: Iterable[str]) -> None:
        """Enter UUIDs of nova aggregates into the ledger."""
        wanted, now = frozenset(aggregates), self._now()
        if not wanted <= self._entered:
            self._run(lambda connection: queries.remember(
                connection, wanted, now))
            self._entered |= wanted

    def emptied(self, empty: Iterable[str], others: Iterable[str]) -> int:
        """Note which UUIDs placement was just found empty of.

        :param empty: UUIDs that nova does not have and placement neither;
            after ``forget_after`` seconds of that they leave the ledger
        :param others: UUIDs of which that is not so
        :returns: how many left
        """
        empty, others, now = frozenset(empty), frozenset(others), self._now()
        before = now - self._conf.aggregate_mirror.forget_after
        forgotten = self._run(lambda connection: queries.emptied(
            connection, empty, others, now, before))
        self._entered -= forgotten
        return len(forgotten)

    def note_sync(self, entry: history.Entry, keep: int = history.KEEP
                  ) -> None:
        """Add a full sync to the history, which keeps that many."""
        entry = dataclasses.replace(
            entry, command=_storable(entry.command)[:NAME_LENGTH],
            host=_storable(entry.host)[:NAME_LENGTH],
            reason=_storable(entry.reason))
        self._run(lambda connection: history_queries.note(
            connection, entry, keep))

    def syncs(self, limit: int = history.KEEP) -> list[history.Entry]:
        """The last full syncs, newest first."""
        return self._run(lambda connection: history_queries.newest(
            connection, limit))

    def lease(self, name: str) -> tuple[str, int, float] | None:
        """Holder, renewals and seconds of a lease; None if nobody ever led."""
        return self._run(lambda connection: queries.lease(connection, name))

    def take_lease(self, name: str, seen: tuple[str, int, float] | None,
                   seconds: float) -> bool:
        """Take or renew a lease if it is still as it was seen."""
        token = self._owner_token()
        return self._run(lambda connection: queries.take_lease(
            connection, name, seen, token, seconds))

    def leave_lease(self, name: str) -> None:
        """Let another one lead at once, if this process does."""
        token = self._owner_token()
        self._run(lambda connection: queries.leave_lease(
            connection, name, token))

    def holds(self, lease: tuple[str, int, float] | None) -> bool:
        """Whether a lease is this process's own."""
        return lease is not None and self._owner.is_mine(lease[0])

    def is_dead(self, holder: str) -> bool:
        """Whether the process behind a name is known to be dead."""
        with engine.translated():
            return self._owner.is_dead(holder)

    def _settle(self, key: str = '',
                is_late: Callable[[], bool] = lambda: False) -> None:
        """Leave word of what the journal was not told, and only of that."""
        # Without word a row waits for this process's next operation.
        with self._word, contextlib.suppress(OSError):
            if is_late():
                self._owner.end(key)
            elif not (self._forsaken or self._to_hand_over):
                self._owner.take_back()

    def _owner_token(self) -> str:
        with engine.translated():
            return self._owner.token()

    def _run(self, work: Callable[[Any], T]) -> T:
        """Do something in one transaction, again if it met others."""
        with engine.translated():
            database = self._opened()
            for attempt in range(CONFLICTS):
                try:
                    with database.transaction() as connection:
                        return work(connection)
                except db_exc.DBError as exc:
                    # Servers undo one of two transactions that wait for each
                    # other, and Galera does at commit.
                    if not engine.is_conflict(exc):
                        raise
                    error = exc
                time.sleep(self._jitter() * PAUSE * attempt)
            raise error

    def _opened(self) -> engine.Database:
        """The database, which is opened anew until it was usable once."""
        if self._database is None:
            # Without the mutex: of those who meet a server that hangs, each
            # would wait for all that came before.
            database = engine.Database(self._conf)
            database.prepare()
            with self._mutex:
                self._database = self._database or database
        return self._database


class _Owners:
    """What can be told here of the owners of rows; each is asked once."""

    def __init__(self, owner: row_owner.Owner) -> None:
        self._owner = owner
        self._is_dead = functools.cache(owner.is_dead)
        self._word = functools.cache(owner.ended)

    def have_ended(self, row: Row) -> bool:
        """Whether its owner is dead, or has left word that it is done."""
        return bool(row.owner) and (
            self._is_dead(row.owner)
            or not self._word(row.owner).isdisjoint(
                {str(row.id), _unsure(row)}))

    def should_have_ended(self, row: Row, before: float) -> bool:
        """Whether a row is older than that, and nobody here can tell."""
        return row.created_at < before and not self._owner.can_tell(row.owner)

    def is_due(self, row: Row, now: float, late: float) -> bool:
        """Whether to try a row now.

        :param late: what was written before that should have ended
        """
        # A time further ahead than any that we would write was written before
        # the clock was set back.
        waits = now < row.next_attempt_at <= now + HORIZON
        return self.have_ended(row) or (not waits and (
            not row.owner or self.should_have_ended(row, late)))

    def leave_free(self, row: Row, token: str, now: float) -> bool:
        """Whether a row is not claimed by another process that lives."""
        claimed = now < row.claimed_until <= now + HORIZON
        return (not claimed or row.claimant == token
                or self._is_dead(row.claimant))


def _unsure(row: Row) -> str:
    """Names a row of which nobody knows the number to its own process."""
    return '%r %r' % (row.created_at, row.dirty.request_id)


def _backoff(attempts: int) -> float:
    # A float has room for 1023 doublings: nine hours.
    return min(LONGEST_BACKOFF, 2.0 ** min(attempts, 10))


def _storable(error: str) -> str:
    """What every database takes of an error, whatever its character set."""
    plain = error[:ERROR_LENGTH].replace('\0', r'\x00')
    return plain.encode('ascii', 'backslashreplace').decode()


def _row(found: Any) -> Row:
    return Row(id=found.id, owner=found.owner, created_at=found.created_at,
               attempts=found.attempts, last_error=found.last_error,
               next_attempt_at=found.next_attempt_at, claimant=found.claimant,
               claimed_until=found.claimed_until,
               dirty=Dirty(host=found.host or '',
                           nodes=frozenset(filter(None,
                                                  found.nodes.split(','))),
                           aggregate_uuid=found.aggregate_uuid or '',
                           request_id=found.request_id))
