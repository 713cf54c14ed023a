# SPDX-License-Identifier: Apache-2.0
"""Daemon that drains the journal and runs periodic full syncs."""

from collections import abc
from typing import Protocol

from nova_aggregate_mirror import journal


DIRECTIONS = ('missing', 'stale')
"""Of a difference: nova has the association, or only placement has it."""


class Figures(Protocol):
    """Receiver of an agent's metrics; see ``agent.metrics``."""

    def set_backlog(self, backlog: journal.Backlog) -> None:
        """Record the backlog of the journal."""

    def observe_drain(self, result: str, seconds: float, added: int,
                      removed: int, conflicts: int = 0) -> None:
        """Record that one batch of the journal was processed."""

    def observe_sync(self, result: str, seconds: float, added: int = 0,
                     removed: int = 0,
                     drift: abc.Mapping[tuple[str, str], int] | None = None,
                     refused: bool = False, conflicts: int = 0,
                     uncompared: int = 0) -> None:
        """Record that one full sync finished."""

    def expect_audits(self, rules: abc.Iterable[str]) -> None:
        """Announce the rules that audits will check."""

    def observe_audit(self, result: str, seconds: float, servers: int = 0,
                      by_rule: abc.Mapping[str, int] | None = None) -> None:
        """Record that one audit of the servers finished."""

    def set_leader(self, leads: bool) -> None:
        """Record whether this agent is the leader."""

    def beat(self, loop: str) -> None:
        """Record that a loop is alive."""
