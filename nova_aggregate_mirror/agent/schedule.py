# SPDX-License-Identifier: Apache-2.0
"""Due times of journal rows, by one agent's monotonic clock: pure."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from nova_aggregate_mirror import journal


@dataclasses.dataclass(slots=True)
class _Seen:
    row: journal.Brief
    since: float
    """When this agent first saw the row."""
    due: float


class Schedule:
    """Due times of the rows that an agent has seen, and which it may close.

    Clocks of different hosts are never compared: the age of a row counts from
    when this agent first saw it.

    :param overdue: seconds after which a running row is converged, and then
        the interval at which this is repeated
    :param longest: seconds after which no operation can still run
    :param now: seconds of a monotonic clock
    """

    def __init__(self, overdue: float, longest: float,
                 now: Callable[[], float]) -> None:
        self._overdue = overdue
        self._longest = longest
        self._now = now
        self._seen: dict[str, _Seen] = {}

    def see(self, found: Iterable[journal.Brief]) -> None:
        """Update the schedule with the rows that are in the journal now.

        A row that was handed over since, or for which an operator requested a
        retry, is due immediately.
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
        """List the rows that are due, the longest overdue first."""
        now = self._now()
        due = [one for one in self._seen.values() if one.due <= now]
        # The sort is stable: among rows seen together, the oldest is first.
        return [one.row.id for one in sorted(
            due, key=lambda one: one.due)[:limit]]

    def may_close(self, row: str) -> bool:
        """Check whether the operation of a row can no longer run."""
        seen = self._seen[row]
        return not seen.row.running or self._age(seen) >= self._longest

    def again(self, row: str, seconds: float | None = None) -> None:
        """Reschedule a row.

        :param seconds: from now; by default the interval of running rows
        """
        self._seen[row].due = self._now() + (
            self._overdue if seconds is None else seconds)

    def backlog(self) -> journal.Backlog:
        """Return the backlog, with ages as seen by this agent."""
        pending = [self._age(one) for one in self._seen.values()
                   if one.row.pending]
        return journal.Backlog(len(pending), len(self._seen) - len(pending),
                               max(pending, default=0.0))

    def _age(self, seen: _Seen) -> float:
        return self._now() - seen.since
