# SPDX-License-Identifier: Apache-2.0
"""The history of full syncs, for people."""

import dataclasses
from typing import Any

from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal.db import syncs
from nova_aggregate_mirror.journal.db import transactions
from nova_aggregate_mirror.journal import rows

# Characters of a name, as columns of names have them.
NAME_LENGTH = 255
# Of a text of all removals: what a column of MySQL holds, and more than
# anybody reads.
REMOVALS_LENGTH = 10 ** 6

# Exit statuses: placement, or nova or the journal, could not be read.
NOT_COMPARED = (exit_status.NOT_READ, exit_status.COULD_NOT_RUN)
# Options with which not everything is compared.
SCOPES = (' --host ', ' --aggregate ')
KEEP = 500
"""So many entries are kept; older ones are deleted."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One full sync, or several in a row that changed nothing and are alike.

    Of several, everything but ``started_at`` is the last one's.
    """

    command: str
    """What ran: ``agent``, or a command with its options."""
    host: str
    started_at: float
    """Seconds since the epoch: when the first one began."""
    ended_at: float
    seconds: float
    """How long it took."""
    added: int = 0
    """Associations, as the next two."""
    removed: int = 0
    stale: int = 0
    """What should not be there and was left."""
    failed: int = 0
    """Providers and hosts that could not be mirrored."""
    status: int = 0
    """The exit status of ``placement sync_aggregates``, the agent's too."""
    reason: str = ''
    """Why something failed or was refused; the first reason of several."""
    removals: str = ''
    """Each association that was removed, a line each."""
    passes: int = 1

    @property
    def compared(self) -> bool:
        """Whether it compared all of nova with placement to the end."""
        return (self.status not in NOT_COMPARED and self.status < 128
                and not any(option in self.command for option in SCOPES))

    def continues(self, before: 'Entry') -> bool:
        """Whether it says nothing new, so that one entry is enough for both.

        An agent that finds everything right once a minute would otherwise
        push out of the history what it is kept for.
        """
        quiet = not (self.added or self.removed or before.added
                     or before.removed)
        return quiet and self._alike() == before._alike()

    def _alike(self) -> tuple[str, str, int, int, int]:
        # A reason may hold a time or a port: those do not make it another.
        return self.command, self.host, self.stale, self.failed, self.status


class History:
    """The last full syncs in the journal's database.

    Every method raises ``JournalUnavailable`` when the database cannot be
    used.
    """

    def __init__(self, database: transactions.Transactions) -> None:
        self._database = database

    def note(self, entry: Entry, keep: int = KEEP) -> None:
        """Add a full sync; only the last ones are kept.

        :param keep: how many
        """
        entry = dataclasses.replace(
            entry, command=rows.storable(entry.command, NAME_LENGTH),
            host=rows.storable(entry.host, NAME_LENGTH),
            reason=rows.storable(entry.reason),
            removals=rows.storable(entry.removals, REMOVALS_LENGTH))

        def work(connection: Any) -> None:
            for found in syncs.newest(connection, 1):
                if entry.continues(_entry(found)) and syncs.count(
                        connection, found, {
                            'ended_at': entry.ended_at,
                            'seconds': entry.seconds,
                            'reason': entry.reason}):
                    return
            syncs.insert(connection, dataclasses.asdict(entry), keep)

        self._database.run(work)

    def newest(self, limit: int = KEEP) -> list[Entry]:
        """Read the last full syncs, newest first."""
        return [_entry(found) for found in self._database.run(
            lambda connection: syncs.newest(connection, limit))]


def _entry(found: Any) -> Entry:
    return Entry(**{field.name: getattr(found, field.name)
                    for field in dataclasses.fields(Entry)})
