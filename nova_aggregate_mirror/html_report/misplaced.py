# SPDX-License-Identifier: Apache-2.0
"""Misplaced servers, grouped for the page: pure, no I/O."""

from collections import abc
import dataclasses
import shlex

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import commands
from nova_aggregate_mirror.reconcile import problems

MAX_NAMED = 2000
"""Servers that the page names; a browser stays fast with them."""


@dataclasses.dataclass
class Group:
    """Servers with the same host, request and cause."""

    servers: list[audit.Misplacement]
    """Those that the page names, in the order of their creation."""
    count: int = 0
    """All of them."""
    earliest: float | None = None
    latest: float | None = None
    """Since when, in seconds since the epoch, as far as it is known."""

    @property
    def first(self) -> audit.Misplacement:
        return self.servers[0]

    @property
    def command(self) -> str:
        """The command that lists all of them."""
        return '%s --host %s' % (
            commands.AUDIT, shlex.quote(self.first.server.host))


@dataclasses.dataclass
class Misplacements:
    """Result of an audit, which keeps a limited number of its servers."""

    totals: auditor.Totals = dataclasses.field(default_factory=auditor.Totals)
    troubles: list[problems.Problem] = dataclasses.field(default_factory=list)
    """Why the audit is incomplete; empty if it is not."""
    omitted: int = 0
    """Misplacements that are in no group."""
    _groups: dict[tuple[str, ...], Group] = dataclasses.field(
        default_factory=dict)
    _named: int = 0

    def add(self, page: abc.Iterable[audit.Misplacement]) -> None:
        """Add misplacements to their groups, within the limit of the page."""
        for misplacement in page:
            cause = misplacement.cause
            key = (misplacement.server.host, misplacement.rule,
                   misplacement.requested, misplacement.actual,
                   cause.kind, cause.text)
            is_named = self._named < MAX_NAMED
            if key not in self._groups and not is_named:
                self.omitted += 1
                continue
            group = self._groups.setdefault(key, Group([]))
            group.count += 1
            since = cause.since
            if since is not None:
                group.earliest = min(since, group.earliest or since)
                group.latest = max(since, group.latest or since)
            if is_named:
                self._named += 1
                group.servers.append(misplacement)

    @property
    def groups(self) -> list[Group]:
        """The groups by host, rule, request and cause."""
        return [self._groups[key] for key in sorted(self._groups)]

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        if self.troubles and not self.totals.servers:
            return 'the servers could not be audited'
        return auditor.summary(self.totals) + (
            ', as far as they could be audited' if self.troubles else '')

    @property
    def figure(self) -> int | str:
        """The number of misplaced servers; ? rather than an unsure 0."""
        return self.totals.misplaced or ('?' if self.troubles else 0)
