# SPDX-License-Identifier: Apache-2.0
"""A full sync as it was requested, its result, and the judgement of it."""

from collections import abc
import dataclasses
import functools
import math
import operator

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror import source

Association = associations.Association
Outcome = outcome.Outcome
Problem = problems.Problem
State = associations.State
Subject = outcome.Subject
NO_PROVIDER = ('if nova-compute has just started on that host, wait a minute; '
               'otherwise restart it, and if the provider is missing a minute '
               'later, see its log')
NODE_UUID = 'correct its uuid in the table compute_nodes of its cell'
AGAIN = 'run this command again'
PRUNE = '--prune removes stale associations'


@dataclasses.dataclass(frozen=True)
class Request:
    """The scope of a full sync, and its limits."""

    max_removed_share: float | None = None
    """Also remove stale owned associations, unless they exceed this share of
    all owned associations or suggest a damaged database. None only adds, and
    removes aggregates that users deleted; UNLIMITED disables the brake."""
    write: bool = True
    """False changes nothing, in placement or in the journal."""
    observes: bool = False
    """With ``write`` false, whether the ledger is written all the same."""
    hosts: frozenset[str] = frozenset()
    """Only these hosts; empty means all."""
    aggregates: frozenset[str] = frozenset()
    """Only these aggregates, by name or UUID; empty means all."""
    foreign: bool = False
    """Also read each provider of a compute node, for the aggregates that
    nova never had while the ledger exists."""
    failed_before: outcome.Errors = dataclasses.field(default_factory=dict)
    """Providers that failed in the last sync; they come last, in order."""
    time_to_retry: abc.Callable[[], float] = lambda: math.inf
    """Returns the seconds left for these; the next sync tries the rest."""

    @property
    def feeds_ledger(self) -> bool:
        return self.write or self.observes


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a full sync, of a dry run or of a comparison."""

    outcome: Outcome
    nova: source.Nova
    """Nova as it was compared, limited to the requested members."""
    associations: abc.Sequence[Association] = ()
    """Those that were not in sync, or changed, with the state afterwards."""
    drift: abc.Sequence[Association] = ()
    """Those that the comparison found missing or stale."""
    refused: exceptions.RemovalsRefused | None = None
    """Why the brake refused the removals, if it did."""
    not_compared: exceptions.MirrorError | None = None
    """Why only journal rows were processed, if so."""
    removable: frozenset[str] = frozenset()
    """Foreign aggregates that only compute nodes have; none of them shares."""
    request: Request = Request()
    interruption: int = 0
    """Exit status of an interrupted sync; 0 for others."""

    def status(self) -> int:
        """Return the exit status: of several, the lowest is most urgent."""
        if self.interruption:
            return self.interruption
        # No problem of a sync has OK, which is the lowest.
        statuses = [problem.status for problem in self.problems]
        if not self.request.write and self.select(*associations.DRIFT):
            statuses.append(exit_status.DRIFT)
        return min(statuses, default=exit_status.OK)

    @property
    def judgement(self) -> str:
        """``success``, ``partial``, or ``failure`` if nothing was compared.

        Log, metrics, summary and report follow it. The exit status also tells
        of an interruption, of what is pending and of the drift of a dry run.
        """
        if self.not_compared:
            return 'failure'
        return 'partial' if self.failures else 'success'

    def select(self, *states: State) -> list[Association]:
        return [association for association in self.associations
                if association.state in states]

    def summary(self, note: str = PRUNE) -> str:
        """Return the figures in lines, if any; stale ones with the note."""
        verbs = ('added', 'removed') if self.request.write else (
            'to add', 'to remove')
        text = associations.changes(len(self.select(State.MISSING)),
                                    len(self.select(State.STALE)), verbs)
        if not text and self.judgement == 'partial':
            text = 'No association %s changed' % (
                'was' if self.request.write else 'would be')
        elif text and not self.request.write:
            text = 'Placement differs from nova: ' + text
        lines = [text + '.'] if text else []
        if not self.refused and (stale := self.select(State.STALE_KEPT)):
            lines.append('%s kept: %s.' % (
                plurals.count(len(stale), 'stale association'), note))
        if isinstance(self.not_compared, exceptions.Stopped):
            lines.append('Interrupted before the comparison: %s.' % AGAIN)
        if self.unprocessed:
            left = plurals.count(
                len(self.unprocessed), 'host or deleted aggregate',
                'hosts or deleted aggregates')
            lines.append('Interrupted; %s not reconciled: %s.' % (left, AGAIN))
        if not lines and not self.not_compared:
            lines.append('Placement matches nova: ' + self._extent())
        return '\n'.join(lines)

    def _extent(self) -> str:
        """Return how many aggregates and compute nodes were compared."""
        nodes = (self.nova.nodes_of(self.request.hosts) if self.request.hosts
                 else frozenset(self.nova.nodes))
        aggregates = self.request.aggregates or self.nova.aggregates
        text = '%s, %s' % (plurals.count(len(aggregates), 'aggregate'),
                           plurals.count(len(nodes), 'compute node'))
        if pending := {association.provider
                       for association in self.select(State.PENDING)}:
            text += (', %d of them without a resource provider yet'
                     % len(pending))
        return text

    @property
    def failures(self) -> list[Problem]:
        """List what keeps the sync from a success: all but what is pending.

        Nova-compute creates a provider that is missing, as soon as it runs.
        """
        return [problem for problem in self.problems
                if problem.status != exit_status.NO_PROVIDER]

    @functools.cached_property
    def unprocessed(self) -> list[str]:
        """Hosts and deleted aggregates that an interruption skipped."""
        names = {dirty.host for dirty, exc in self.outcome.unfinished.items()
                 if isinstance(exc, exceptions.Stopped)}
        names |= {subject.name for subject, exc in self.outcome.failed.items()
                  if subject.kind == outcome.AGGREGATE
                  and isinstance(exc, exceptions.Stopped)}
        return sorted(names)

    @functools.cached_property
    def problems(self) -> list[Problem]:
        """What is not mirrored or compared, by exit status."""
        return sorted([*self._obstacles(), *self._failed()],
                      key=operator.attrgetter('status', 'key', 'text'))

    def lines(self, listing: str = '"--format json"') -> list[str]:
        """List the problems for a person; see ``problems.lines``."""
        return problems.lines(self.problems, listing)

    def _obstacles(self) -> abc.Iterator[Problem]:
        """List what nova, an operator or nova-compute has to correct."""
        nova = self.nova
        for aggregate in sorted(nova.invalid_aggregates):
            yield Problem(str(aggregate), _capitalized(aggregate.problem),
                          aggregate.step, exit_status.NOT_UPDATED)
        for row in sorted(nova.invalid_nodes):
            if row.host in nova.members:
                text = '%s: the UUID of its compute node in nova is %r' % (
                    _capitalized(str(row)), row.node)
                yield Problem(row.host, text, NODE_UUID, exit_status.NO_NODE)
        for host in nova.unmapped_or_nodeless():
            text, step = nova.obstacles.get(
                host, ('nova does not find its compute node', ''))
            status = (exit_status.NOT_MAPPED if host in nova.unmapped
                      else exit_status.NO_NODE)
            yield Problem(host, 'Host %s: %s' % (host, text), step, status)
        # A provider has an association for each of its aggregates.
        pending = {(association.provider, ', '.join(association.hosts))
                   for association in self.select(State.PENDING)}
        for provider, names in sorted(pending):
            text = 'Host %s: compute node %s has no resource provider yet' % (
                names, provider)
            if Subject(outcome.PROVIDER, provider) not in self.outcome.failed:
                yield Problem(
                    provider, text, NO_PROVIDER, exit_status.NO_PROVIDER)

    def _failed(self) -> abc.Iterator[Problem]:
        """List what failed: comparison, cells, removals and writes."""
        error, refused = self.not_compared, self.refused
        if error and not isinstance(error, exceptions.Stopped):
            yield Problem.of(error, text='Nothing could be compared')
        yield from problems.of_cells(
            self.nova.cells_down, 'its hosts are unchanged')
        if refused:
            yield Problem.of(refused, text='Removals refused')
        for subject, exc in self.outcome.failed.items():
            if not isinstance(exc, exceptions.Stopped):
                yield Problem.of(exc, str(subject), self._effect(subject),
                                 unwritten=subject in self.outcome.unwritten)

    def _effect(self, subject: Subject) -> str:
        """Return what a failure of the subject leaves undone."""
        text = str(subject)
        if subject == outcome.JOURNAL:
            return 'The journal is not up to date'
        if subject.kind == outcome.UNREAD:
            name = self.nova.aggregates.get(subject.name, 'that was deleted')
            return 'Aggregate %s (%s) is not compared' % (name, subject.name)
        if subject.name in self.nova.nodes:
            names = self.nova.host_names(subject.name)
            if subject.kind == outcome.FOREIGN:
                return 'Host %s: the %s are unknown' % (names, text)
            if subject.kind == outcome.PROVIDER:
                text = 'host %s (%s)' % (names, text)
        is_write = self.request.write or subject in self.outcome.unwritten
        return '%s is not %s' % (
            _capitalized(text), 'mirrored' if is_write else 'compared')


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]
