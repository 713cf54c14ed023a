# SPDX-License-Identifier: Apache-2.0
"""The audit: each server's request compared with the host that it is on."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import causes
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True, slots=True)
class AuditedServer:
    """A server and its request."""

    server: source.PlacedServer
    request: constraints.ServerRequest | None
    """None if nova has no request of the server that can be read."""
    why: str = ''
    """Why it cannot be read."""
    forced: bool = False
    """Whether the request names its host."""
    own: Sequence[tuple[str, constraints.Rule]] = ()
    """Rules of this server only, such as that of a segment."""


@dataclasses.dataclass
class Totals:
    """What an audit has seen so far."""

    servers: int = 0
    """Servers that were audited."""
    misplaced: int = 0
    """Servers with at least one misplacement."""
    unknown: int = 0
    """Servers without a request that can be read; not audited."""
    by_rule: dict[str, int] = dataclasses.field(default_factory=dict)
    """Name of a rule to the number of servers that break it."""
    why_unknown: str = ''
    """Why the first of the requests cannot be read."""


class Auditor:
    """Compares servers with the aggregates of their hosts.

    :param checks: the rules to check, by name
    :param known: every aggregate
    :param syncs: full syncs that compared everything, oldest first
    :param zone: only servers that request this zone, or are on its hosts
    :param default_zone: the zone of hosts that are in no zone
    :param complete: adds what is known about the arrival of a server
    """

    def __init__(self, checks: Sequence[tuple[str, rules.Check]],
                 known: source.Aggregates,
                 syncs: Sequence[causes.PastSync] = (), zone: str = '',
                 default_zone: str = '',
                 complete: Callable[[source.PlacedServer],
                                    source.PlacedServer] = lambda one: one
                 ) -> None:
        self.counts = Totals()
        self._known = known
        self._rules = rules.RuleCache(checks, known.metadata)
        self._checks = checks
        self._syncs = syncs
        self._zone = zone
        self._default_zone = default_zone
        self._complete = complete

    def refresh(self, known: source.Aggregates, hosts: Collection[str]
                ) -> None:
        """Compare with these aggregates from now on.

        :param known: every aggregate, with its members among some hosts
        :param hosts: these hosts
        """
        if known.metadata != self._known.metadata:
            self._rules = rules.RuleCache(self._checks, known.metadata)
        self._known = dataclasses.replace(known, members={
            **self._known.members, **dict.fromkeys(hosts, {}),
            **known.members})

    def suspects(self, found: Iterable[AuditedServer]) -> frozenset[str]:
        """Return the hosts with servers that appear to be misplaced."""
        return frozenset(one.server.host for one in found
                         if self._broken(one))

    def run(self, found: Iterable[AuditedServer]
            ) -> Iterator[audit.Misplacement]:
        """Audit servers one after another."""
        for one in found:
            yield from self._audit(one)

    def _audit(self, one: AuditedServer) -> Iterator[audit.Misplacement]:
        server, counts = one.server, self.counts
        if one.request is None:
            counts.unknown += 1
            counts.why_unknown = counts.why_unknown or one.why
            return
        within = self._known.of(server.host)
        if self._zone and self._zone not in (one.request.zone, *(
                rules.zones(within, self._known.metadata)
                or [self._default_zone])):
            return
        counts.servers += 1
        broken = self._broken(one)
        if not broken:
            return
        counts.misplaced += 1
        server = self._complete(server)
        for name in {name for name, _rule in broken}:
            counts.by_rule[name] = counts.by_rule.get(name, 0) + 1
        for name, rule in broken:
            yield audit.Misplacement(
                server, name, rule.subject,
                rules.found(name, rule, within, self._known),
                causes.cause(server, name, rule, one.forced, self._known,
                             self._syncs))

    def _broken(self, one: AuditedServer
                ) -> list[tuple[str, constraints.Rule]]:
        """List the rules that the host of a server does not pass."""
        if one.request is None:
            return []
        within = self._known.of(one.server.host)
        return [*self._rules.broken(one.request, within), *(
            (name, rule) for name, rule in one.own
            if not rule.passes(within))]
