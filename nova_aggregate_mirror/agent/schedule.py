# SPDX-License-Identifier: Apache-2.0
"""When each journal row is due, by one agent's monotonic clock: pure."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from nova_aggregate_mirror import journal


@dataclasses.dataclass
class _Seen:
    row: journal.Brief
    since: float
    """When this agent first saw the row."""
    due: float


class Schedule:
    """Which rows an agent should converge now, and which it may close.

    The clocks of two hosts are never compared: ages count from when this agent
    first saw a row.

    :param overdue: seconds after which a running row is converged, and then
        again and again
    :param longest: seconds after which no operation can still run
    :param now: seconds of a clock that is never set
    """

    def __init__(self, overdue: float, longest: float,
                 now: Callable[[], float]) -> None:
        self._overdue = overdue
        self._longest = longest
        self._now = now
        self._seen: dict[str, _Seen] = {}

    def see(self, found: Iterable[journal.Brief]) -> None:
        """Take note of what is in the journal now.

        A row that was handed over since, or that an operator wants to be
        tried again, is due at once.
        """
        now, before = self._now(), self._seen
        self._seen = {}
        for row in found:
            seen = before.get(row.id)
            if seen is None:
                seen = _Seen(row, now, now + row.running * self._overdue)
            elif (row.running < seen.row.running
                  or row.attempts < seen.row.attempts):
                seen.due = now
            seen.row = row
            self._seen[row.id] = seen

    def due(self, limit: int) -> list[str]:
        """Rows that are due, those first that have been for the longest."""
        now = self._now()
        due = [one for one in self._seen.values() if one.due <= now]
        # The sort is stable: of rows seen at once, the oldest comes first.
        return [one.row.id for one in sorted(
            due, key=lambda one: one.due)[:limit]]

    def may_close(self, row: str) -> bool:
        """Whether the operation of a row that was seen has ended."""
        seen = self._seen[row]
        return not seen.row.running or self._age(seen) >= self._longest

    def again(self, row: str, seconds: float | None = None) -> None:
        """Let a row be due later.

        :param seconds: from now; as for a running row unless given
        """
        self._seen[row].due = self._now() + (
            self._overdue if seconds is None else seconds)

    def backlog(self) -> journal.Backlog:
        """How much is left, as this agent saw it."""
        pending = [self._age(one) for one in self._seen.values()
                   if one.row.pending]
        return journal.Backlog(len(pending), len(self._seen) - len(pending),
                               max(pending, default=0.0))

    def _age(self, seen: _Seen) -> float:
        return self._now() - seen.since
