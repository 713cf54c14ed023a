# SPDX-License-Identifier: Apache-2.0
"""The daemon: it drains the journal and runs the periodic full syncs."""

from typing import Protocol

from nova_aggregate_mirror import journal


class Figures(Protocol):
    """Where an agent leaves its figures; see ``agent.metrics``."""

    def backlog(self, backlog: journal.Backlog) -> None:
        """How much is left in the journal."""

    def drained(self, result: str, seconds: float, added: int,
                removed: int) -> None:
        """One batch of the journal was worked on."""

    def synced(self, result: str, seconds: float, added: int = 0,
               removed: int = 0, drift: int | None = None,
               refused: bool = False) -> None:
        """One full sync ended."""

    def leading(self, leads: bool) -> None:
        """Whether this agent is the one that works."""

    def beat(self, loop: str) -> None:
        """This loop is alive."""
