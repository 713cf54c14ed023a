# SPDX-License-Identifier: Apache-2.0
"""What the last full syncs did: for people, nothing depends on it."""

import dataclasses

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
    passes: int = 1

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
