# SPDX-License-Identifier: Apache-2.0
"""History of full syncs, for operators."""

import contextlib
import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.journal import store

NAME_LENGTH = 255  # Characters of a name, as of the name columns.
# Characters of the list of removals, which fits a MEDIUMTEXT of MySQL.
REMOVALS_LENGTH = 10 ** 6
KEEP = 500  # Entries; older ones are deleted.
_SYNCS = models.syncs.c
_NEWEST = sa.select(models.syncs).order_by(_SYNCS.id.desc())


@dataclasses.dataclass(frozen=True)
class Entry:
    """A full sync, or consecutive equal full syncs that changed nothing.

    Of several, all fields but ``started_at`` and ``passes`` are of the last.
    """

    command: str
    """``agent``, or the command with its options."""
    host: str
    started_at: float
    """Start of the first sync, in seconds since the epoch."""
    ended_at: float
    seconds: float
    added: int = 0
    """Number of associations, like ``removed`` and ``stale``; of an observing
    agent those that a sync would change."""
    removed: int = 0
    stale: int = 0
    failed: int = 0
    """Number of providers, hosts and cells with a fault."""
    status: int = 0
    """The exit status of ``placement sync_aggregates``, also for the agent."""
    reason: str = ''
    removals: str = ''
    """The removed associations, one per line."""
    compared: bool = True
    """Whether all of nova was compared with placement, to mirror it."""
    mode: str = ''
    """Mode of the agent; empty for a command."""
    passes: int = 1

    @property
    def observed(self) -> bool:
        """Whether it is of an observing agent, which changes nothing."""
        return self.mode == conf.OBSERVE

    def continues(self, before: 'Entry') -> bool:
        """Return whether this sync can be merged into the entry before.

        Otherwise syncs without a difference would push out all other entries.
        """
        is_quiet = self.observed or not (self.added or self.removed)
        # Reasons are not compared: they may contain a time or a port.
        return is_quiet and self == dataclasses.replace(
            before, started_at=self.started_at, ended_at=self.ended_at,
            seconds=self.seconds, reason=self.reason, passes=self.passes)


def add(database: engine.Database, entry: Entry, keep: int = KEEP) -> None:
    """Add a full sync, or count it in the newest entry if that is alike.

    The oldest entries beyond ``keep`` are deleted, and of the rows of
    nova-api processes those that ``store.forget_processes`` finds.
    """
    entry = dataclasses.replace(
        entry, command=rows.storable(entry.command, NAME_LENGTH),
        host=rows.storable(entry.host, NAME_LENGTH),
        reason=rows.storable(entry.reason),
        removals=rows.storable(entry.removals, REMOVALS_LENGTH))

    before = _NEWEST.limit(1)
    if entry.mode:
        # Two leaders of different modes alternate: each skips the entries of
        # the other, but not those of commands, which have no mode.
        before = before.where(_SYNCS.mode.in_(['', entry.mode]))

    def work(connection: Any) -> None:
        addition = entry
        row = connection.execute(before).first()
        if row and entry.continues(_entry(row)):
            # The addition replaces the row, if no other process has meanwhile.
            deletion = sa.delete(models.syncs).where(
                _SYNCS.id == row.id, _SYNCS.passes == row.passes)
            if connection.execute(deletion).rowcount:
                addition = dataclasses.replace(
                    entry, started_at=row.started_at, passes=row.passes + 1)
        connection.execute(
            sa.insert(models.syncs), dataclasses.asdict(addition))
        # By the number of rows: IDs may have gaps, for example on Galera.
        ids = _NEWEST.with_only_columns(_SYNCS.id)
        surplus = connection.scalar(ids.offset(keep).limit(1))
        if surplus is not None:
            connection.execute(
                sa.delete(models.syncs).where(_SYNCS.id <= surplus))

    try:
        database.run(work)
    except exceptions.JournalLocked:
        # Another session has the newest entry, or the oldest ones.
        database.run(lambda connection: connection.execute(
            sa.insert(models.syncs), dataclasses.asdict(entry)))
    # If this fails, old processes are displayed until the next sync.
    with contextlib.suppress(exceptions.JournalUnavailable):
        store.forget_processes(database, entry.ended_at)


def newest(database: engine.Database) -> list[Entry]:
    """Read the full syncs, newest first."""
    return [_entry(row) for row in database.read(_NEWEST)]


def _entry(row: Any) -> Entry:
    return Entry(**{field.name: getattr(row, field.name)
                    for field in dataclasses.fields(Entry)})
