# SPDX-License-Identifier: Apache-2.0
"""Audit of each server's request, and misplaced servers as text and JSON."""

from collections import abc
import dataclasses
import functools
from typing import Any

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror import terminal_tables

RULES_CACHED = 4096
"""Requests whose rules are cached; most servers share theirs with others."""
COLUMNS = ('Server, host', 'Why')
FIELDS = ('server', 'name', 'host', 'project', 'state', 'rule', 'requested',
          'actual', 'cause', 'detail', 'since', 'step', 'keep_step')


@dataclasses.dataclass(frozen=True, slots=True)
class AuditedServer:
    server: audit.PlacedServer
    request: constraints.ServerRequest | None
    """None if nova has no request of the server that can be read."""
    error: str = ''
    """Why it cannot be read."""
    segments: rules.Segments = frozenset()


@dataclasses.dataclass
class Totals:
    """Numbers of the servers that were audited so far."""

    servers: int = 0
    misplaced: int = 0
    """Servers with at least one misplacement."""
    unknown: int = 0
    """Servers without a request that can be read; not audited."""
    by_rule: dict[str, int] = dataclasses.field(default_factory=dict)
    """Name of a rule to the number of servers that break it."""
    error: str = ''
    """Why the first of the requests cannot be read."""
    hosts: set[str] = dataclasses.field(default_factory=set)
    """Hosts with servers, whatever zone was selected."""
    readable: int = 0
    """Servers whose request can be read, whatever zone was selected."""

    @property
    def progress(self) -> str:
        return '%d servers audited, %d misplaced' % (
            self.servers, self.misplaced)

    def unaudited(self) -> list[problems.Problem]:
        """Say how many servers were not audited; an error if all were not."""
        if not self.unknown:
            return []
        text = '%s not audited: nova has no request that it can read (%s)' % (
            plurals.count(self.unknown, 'server is', 'servers are'),
            self.error)
        status = exit_status.OK if self.readable else exit_status.COULD_NOT_RUN
        return [problems.Problem('', text, status=status)]

    def status(self, found: abc.Iterable[problems.Problem]) -> int:
        """Return the exit status of an audit with these problems."""
        statuses = {problem.status for problem in found}
        if self.misplaced:
            statuses.add(exit_status.DRIFT)
        return min(statuses - {exit_status.OK}, default=exit_status.OK)


@dataclasses.dataclass
class Auditor:
    """Compares servers with the aggregates of their hosts."""

    audit_rules: abc.Sequence[rules.AuditRule]
    aggregates: keyed_aggregates.Aggregates
    settings: rules.Settings = rules.Settings()
    syncs: abc.Sequence[rules.PastSync] = ()
    """Full syncs that compared everything, oldest first."""
    zone: str = ''
    """Only servers that request it, or are on its hosts."""
    default_zone: str = ''
    """The zone of hosts that are in no zone."""
    complete: abc.Callable[[audit.PlacedServer], audit.PlacedServer] = (
        lambda server: server)
    """Adds when and how a server arrived on its host."""
    can_unpin: bool = False
    """Whether the compute API can change the zone of a server."""
    totals: Totals = dataclasses.field(default_factory=Totals)

    def __post_init__(self) -> None:
        self._rules = functools.lru_cache(RULES_CACHED)(self._rules_of)
        self._intern = functools.cache(frozenset[str])

    def refresh(self, aggregates: keyed_aggregates.Aggregates,
                hosts: abc.Collection[str]) -> None:
        """Take newer aggregates, of whose members only ``hosts`` were read."""
        if aggregates.metadata != self.aggregates.metadata:
            self._rules.cache_clear()
        self.aggregates = dataclasses.replace(aggregates, members={
            **self.aggregates.members, **dict.fromkeys(hosts, {}),
            **aggregates.members})

    @property
    def zones(self) -> frozenset[str]:
        zones = {values.get(constraints.ZONE, '')
                 for values in self.aggregates.metadata.values()}
        return frozenset({self.default_zone, *zones} - {''})

    def suspects(self, page: abc.Iterable[AuditedServer]) -> frozenset[str]:
        """Return the hosts with servers that appear to be misplaced."""
        return frozenset(audited.server.host for audited in page
                         if self._broken(audited))

    def run(self, page: abc.Iterable[AuditedServer]
            ) -> abc.Iterator[audit.Misplacement]:
        """Yield the misplacements of servers; count them in the totals."""
        totals = self.totals
        for audited in page:
            totals.hosts.add(audited.server.host)
            if audited.request is None:
                totals.unknown += 1
                totals.error = totals.error or audited.error
                continue
            totals.readable += 1
            zones = rules.zones(audited.server.host, self.aggregates)
            if self.zone and self.zone not in (
                    audited.request.zone, *(zones or [self.default_zone])):
                continue
            totals.servers += 1
            broken = self._broken(audited)
            if not broken:
                continue
            totals.misplaced += 1
            server = self.complete(audited.server)
            for name in {name for name, _rule in broken}:
                totals.by_rule[name] = totals.by_rule.get(name, 0) + 1
            for name, rule in broken:
                actual = rules.contradiction(
                    rule, server.host, self.aggregates)
                cause = rules.PINNED
                if name != audit.DEFAULT_ZONE:
                    cause = rules.cause(
                        server, rule, audited.request.names_host,
                        self.aggregates, self.syncs)
                yield audit.Misplacement(
                    server, name, rule.subject, actual, cause,
                    self.can_unpin, zone=zones[0] if zones else '')

    def _broken(self, audited: AuditedServer
                ) -> list[tuple[str, constraints.Rule]]:
        """List the rules that the host of a server does not pass."""
        if audited.request is None:
            return []
        host_aggregates = self.aggregates.of_host(audited.server.host)
        return [(name, rule) for name, rule
                in self._rules(audited.request, audited.segments)
                if not rule.passes(host_aggregates)]

    def _rules_of(self, request: constraints.ServerRequest,
                  segments: rules.Segments
                  ) -> list[tuple[str, constraints.Rule]]:
        """List the rules for a request, each with its name in the audit."""
        inputs = rules.RuleInput(
            request, self.aggregates.metadata, self.settings, segments)
        named_rules = []
        for audit_rule in self.audit_rules:
            for rule in audit_rule.conditions(inputs):
                # Of equal sets, which may be large, the cache keeps one.
                rule = dataclasses.replace(
                    rule, restricting=self._intern(rule.restricting))
                named_rules.append((audit_rule.name, rule))
        return named_rules


def table(misplacements: abc.Collection[audit.Misplacement]) -> str:
    """Return a table, and the commands below it."""
    rows, lines = map(cells, misplacements), steps(misplacements)
    return '\n'.join([terminal_tables.render(COLUMNS, rows, divider=True),
                      *map(printable.line, lines)])


def steps(misplacements: abc.Iterable[audit.Misplacement]) -> list[str]:
    """Return the commands for each server, on a line of their own."""
    lines = []
    for misplaced in misplacements:
        name = misplaced.server.name
        aim = 'unpin' if misplaced.rule == audit.DEFAULT_ZONE else 'move'
        lines += ['To %s %s:' % (aim, name), '  ' + misplaced.step]
        if misplaced.keep_step:
            lines += ['To keep %s there:' % name, '  ' + misplaced.keep_step]
    return lines


def cells(misplaced: audit.Misplacement) -> tuple[terminal_tables.Cell, ...]:
    """Return the cells for ``COLUMNS``, with a line for each fact."""
    server, cause = misplaced.server, misplaced.cause
    facts = ['Requested: %s' % misplaced.requested,
             'Actual: %s' % misplaced.actual, 'Why: %s' % cause.text]
    if cause.since:
        facts.append('Since: %s' % dates.iso(cause.since))
    return ((server.name, server.uuid, 'project %s' % server.project,
             'host %s' % server.host), tuple(facts))


def row(misplaced: audit.Misplacement) -> tuple[Any, ...]:
    """Return the values of ``FIELDS``; see the command's page."""
    server, cause = misplaced.server, misplaced.cause
    return (
        server.uuid, server.name, server.host, server.project, server.state,
        misplaced.rule, misplaced.requested, misplaced.actual, cause.kind,
        cause.text, dates.iso(cause.since) if cause.since else None,
        misplaced.step, misplaced.keep_step or None)


def document(misplacements: abc.Iterable[audit.Misplacement], totals: Totals,
             cells_down: source.Down) -> dict[str, Any]:
    """Return the misplacements and the totals for a program."""
    rows = map(row, misplacements)
    return {'misplacements': [dict(zip(FIELDS, values)) for values in rows],
            'servers': totals.servers, 'misplaced': totals.misplaced,
            'without_request': totals.unknown, 'rules': totals.by_rule,
            'cells_down': problems.documents(cells_down)}


def summary(totals: Totals) -> str:
    """Return the result in one sentence."""
    text = '%d of %s on a host that contradicts the request%s' % (
        totals.misplaced, plurals.count(
            totals.servers, 'server is', 'servers are'),
        ', or pinned to the default zone'
        if audit.DEFAULT_ZONE in totals.by_rule else '')
    counts = ', '.join('%d %s' % (count, name) for name, count
                       in totals.by_rule.items() if count)
    return text + (': ' + counts if counts else '')
