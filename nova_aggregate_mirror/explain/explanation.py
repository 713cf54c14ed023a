# SPDX-License-Identifier: Apache-2.0
"""Explanation of a scheduling decision: conditions and verdicts."""

from collections import abc
import dataclasses
import shlex

from nova_aggregate_mirror.scheduler import moving

CREATE, UNSHELVE, REBUILD = 'create', 'unshelve', 'rebuild'
OPERATIONS = (CREATE, moving.COLD, moving.LIVE, moving.EVACUATION, UNSHELVE,
              REBUILD, 'resize')
"""Operations on a server for which nova-scheduler finds a host."""

MAX_SERVERS = 10_000
"""Servers of a request for as many as fit; no other asks for as many."""

HOST = '<host>'
"""Placeholder for the host in texts, so that hosts in one state are alike."""

ACCEPTABLE = 'acceptable'
"""Kind of the verdict on a compute node that passes every condition."""


@dataclasses.dataclass(frozen=True)
class Reason:
    """The reason why compute nodes do not pass a condition."""

    kind: str
    """The same word for all reasons of this kind, for programs."""
    phrase: str
    """For the summary after a number of nodes, such as ``disabled``."""
    detail: str = ''
    step: str = ''
    """What to do; like ``detail`` it may contain ``HOST``."""

    def with_host(self, host: str) -> 'Reason':
        return dataclasses.replace(
            self, detail=self.detail.replace(HOST, host),
            step=self.step.replace(HOST, shlex.quote(host)))


@dataclasses.dataclass(frozen=True)
class Condition:
    """What excludes hosts, and how many compute nodes."""

    name: str
    asked_by: str
    """What sets the condition, such as ``flavor``; may be empty."""
    left: int
    """Number of those that pass this and all earlier conditions."""
    excluded: int


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result for one compute node."""

    node: str
    """UUID of the compute node, and of its provider."""
    host: str
    reason: Reason
    condition: int
    """Number of the first one that it fails, from 0; of all if none."""
    scores: abc.Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Weigher of nova to its part of the weight, of an acceptable node."""
    also: tuple[Reason, ...] = ()
    """Further conditions that the node is known not to meet, in order."""

    @property
    def weight(self) -> float | None:
        """The sum of nova's weighers; None if the node is not weighed."""
        return sum(self.scores.values()) if self.scores else None


@dataclasses.dataclass(frozen=True)
class RecordEntry:
    """A fault of a server, or an event of its last action."""

    time: str
    """ISO 8601, UTC."""
    event: str
    """``fault``, or the action and its event."""
    host: str
    """Empty for nova-conductor."""
    result: str
    """The message of a fault, or the result of an event."""


@dataclasses.dataclass(frozen=True)
class ServerRecord:
    """The state of a server, and what has led to it, as nova stores it."""

    state: str
    task: str
    fault: str
    """The message of the last one; empty, as ``task``, without one."""
    entries: abc.Sequence[RecordEntry]
    """Oldest first."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The explanation of one request."""

    request: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    conditions: abc.Sequence[Condition] = ()
    verdicts: abc.Sequence[Verdict] = ()
    """One for each compute node; acceptable nodes first, by weight."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Parts that are not explained, or may differ in nova-scheduler."""
    placed: abc.Sequence[str] = ()
    """Hosts of the servers, if several are requested at once."""
    count: int = 1
    """Number of servers that are requested at once, or that fit."""
    fills: bool = False
    """Whether servers were placed until none fits."""
    ran_out: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    """What then excludes hosts that took servers, to their number."""
    zones: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Zone of the hosts to the number of servers that fit there."""
    interrupted: bool = False
    """Whether Ctrl-C has ended that, and more may fit."""
    failure: str = ''
    """Why the request fails whatever hosts there are; empty if it does not."""
    record: ServerRecord | None = None
    remarks: abc.Sequence[str] = ()
    """What is said before the answer: the operation that was chosen, what is
    down or could not be read."""
    stays: str = ''
    """Why nova-scheduler is not asked; empty if it is."""
    not_looked_at: str = ''
    """What else may refuse the request."""
    cells_down: bool = False
    """Whether hosts may be missing, as a cell did not answer."""

    @property
    def acceptable(self) -> abc.Sequence[Verdict]:
        return [verdict for verdict in self.verdicts
                if verdict.reason.kind == ACCEPTABLE]

    @property
    def possible(self) -> bool:
        """Check whether nova-scheduler finds a host for each server."""
        if self.fills:
            return bool(self.placed)
        if self.count > 1:
            return len(self.placed) == self.count
        return bool(self.acceptable)

    @property
    def noun(self) -> str:
        """The plural noun for numbers of verdicts."""
        hosts = {verdict.host for verdict in self.verdicts}
        return 'hosts' if len(hosts) == len(self.verdicts) else 'compute nodes'
