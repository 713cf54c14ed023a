# SPDX-License-Identifier: Apache-2.0
"""What waits to be mirrored, and which aggregates were ever nova's."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class Dirty:
    """What one operation may leave different between nova and placement."""

    host: str
    nodes: frozenset[str] = frozenset()
    """UUIDs of the host's compute nodes when the operation began."""
    request_id: str = ''


@dataclasses.dataclass(frozen=True)
class Row:
    """A journal row: what is dirty, and what became of it so far."""

    id: str
    """A UUID of the process that writes the row."""
    dirty: Dirty
    running: bool
    """Whether the operation may still run; not, once it is handed over."""
    created_at: float
    """Seconds since the epoch, for display."""
    attempts: int = 0
    """How often it failed."""
    last_error: str = ''
    mirrored_at: float | None = None
    """When the host was last found or made right; None after a failure."""

    @property
    def state(self) -> str:
        """What became of it so far, in words."""
        if not self.running:
            return 'to be mirrored'
        return ('mirrored, may still run' if self.mirrored_at is not None
                else 'may still run')


@dataclasses.dataclass(frozen=True)
class Brief:
    """As much of a row as it takes to tell when it is due."""

    id: str
    running: bool
    attempts: int
    pending: bool
    """Whether placement may not show it yet."""


@dataclasses.dataclass(frozen=True)
class Backlog:
    """How much is left in the journal."""

    pending: int
    """Operations that placement may not show yet."""
    waiting: int
    """Operations that are mirrored, and may still run."""
    oldest: float
    """The age in seconds of the oldest pending one; 0 without any."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known of one UUID that is, or once was, an aggregate's."""

    deleted: bool = False
    """Whether a user deleted it, or began to."""
    absent: float = 0.0
    """For how many seconds no full sync has found it in nova."""


class Ledger(Protocol):
    """What a reconciler asks of a ledger."""

    def entries(self) -> Mapping[str, Entry]:
        """Read every UUID."""

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        """Read which of these UUIDs are there."""

    def remember(self, aggregates: Iterable[str]) -> None:
        """Enter UUIDs of nova aggregates."""

    def observe(self, present: Iterable[str], empty: Iterable[str]) -> None:
        """Note what a full sync of everything saw.

        :param present: UUIDs of nova's aggregates
        :param empty: UUIDs that no provider is in
        """
