# SPDX-License-Identifier: Apache-2.0
"""Result of a full sync or of a dry run, as text, table and JSON.

Long because rows, document, faults and exit status judge one result alike.
"""

from collections import abc
import dataclasses
import functools
import itertools
from typing import Any

from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source
from nova_aggregate_mirror import terminal_tables

Association = associations.Association
State = associations.State

DISCOVER = 'run "nova-manage cell_v2 discover_hosts"'
RESTART = 'restart nova-compute on that host'
NO_NODE = '%s, and %s if the host has no mapping' % (RESTART, DISCOVER)
RETIRED = ('if it was retired as a member, nova-api answers 404 to its '
           'removal: start nova-compute with this host name once, %s, and '
           'remove it from its aggregates' % DISCOVER)
NODE_UUID = 'correct its uuid in the table compute_nodes of its cell'
AGAIN = 'run this command again'
HOW_TO_REMOVE = (
    ' An aggregate is removed from a provider by setting the others: '
    '"openstack --os-placement-api-version 1.29 resource provider aggregate '
    'set --generation GENERATION --aggregate OTHER PROVIDER".')
NEVER = 'nova never had it while this journal exists'
UNKNOWN = ('nova does not have it, and only a ledger of nova-aggregate-mirror '
           'would tell whether it ever had it')
"""About foreign aggregates: deleted ones are among them."""
PRUNE = '--prune removes stale associations'

COLUMNS = ('Action', 'Host', 'Provider', 'Aggregate', 'Aggregate UUID')
IN_TABLE = ('Action', 'Host, provider', 'Aggregate')
"""The columns of a table, which fits a terminal: names come first."""

LISTED = (State.MISSING, State.STALE, State.STALE_KEPT,
          State.FOREIGN_AGGREGATE, State.FOREIGN_PROVIDER, State.ABSENT)
"""States of the associations that have a row, in this order."""

MOST_LISTED = 10
"""Faults of one kind, and foreign aggregates, that are listed each."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that is not mirrored."""

    status: int
    subject: str
    text: str
    remedy: str = ''
    error: exceptions.MirrorError | None = None
    """None if nova has to change."""

    def __str__(self) -> str:
        return ': '.join(filter(None, (self.text, self.remedy)))

    @property
    def key(self) -> tuple[str, str]:
        """Kind of the error, and whose it is: other faults may share it."""
        return self.error.failure.key if self.error else ('', '')


class Result:
    """Result of one full sync, for display.

    :param stale_advice: text about stale associations that were kept
    :param interruption: exit status of an interrupted sync; 0 for others
    :param never: text about foreign aggregates
    """

    def __init__(self, sync: full_sync.SyncOutcome, request: full_sync.Request,
                 stale_advice: str = PRUNE, interruption: int = 0,
                 never: str = NEVER) -> None:
        self.sync = sync
        self.request = request
        self.interruption = interruption
        self._stale_advice, self._never = stale_advice, never
        self._nova = sync.nova

    def status(self) -> int:
        """Return the lowest exit status that applies."""
        if self.interruption:
            return self.interruption
        codes = [fault.status for fault in self.all_faults]
        if not self.request.write and self.select(*associations.DRIFT):
            codes.append(exit_status.DRIFT)
        return min(codes, default=exit_status.OK)

    @property
    def judgement(self) -> str:
        """``success``, ``partial``, or ``failure`` if nothing was compared.

        Log, metrics, summary and report follow it, and so does the exit status
        except for what is pending and for the drift of a dry run.
        """
        if self.sync.not_compared:
            return 'failure'
        return 'partial' if self.failures else 'success'

    def select(self, *states: State) -> list[Association]:
        """List the associations in these states."""
        return [association for association in self.sync.associations
                if association.state in states]

    def document(self) -> dict[str, Any]:
        """Return the result for JSON or YAML, in a reproducible order."""
        failed = self.sync.outcome.failed
        return {
            'dry_run': not self.request.write,
            'add': self._entries(State.MISSING),
            'remove': self._entries(State.STALE),
            'stale_kept': self._entries(State.STALE_KEPT),
            'foreign_aggregates': self._entries(State.FOREIGN_AGGREGATE),
            'foreign_providers': self._entries(State.FOREIGN_PROVIDER),
            'absent': [
                {**_entry(association), 'absent_for': association.absent_for}
                for association in self.select(State.ABSENT)],
            'pending': self._entries(State.PENDING),
            'unmapped': sorted(self._nova.unmapped),
            'without_compute_node': sorted(self._nova.nodeless()),
            'without_uuid': [
                {'id': aggregate.id, 'aggregate': aggregate.name,
                 'hosts': sorted(aggregate.hosts)}
                for aggregate in sorted(self._nova.invalid_aggregates)],
            'cells_down': [{'cell': cell, 'reason': reason} for cell, reason
                           in sorted(self._nova.cells_down.items())],
            'failed': [{'subject': str(subject), 'reason': str(exc),
                        'kind': exc.failure.kind, 'who': exc.failure.party}
                       for subject, exc in sorted(
                           failed.items(), key=lambda failure: str(failure[0]))
                       if not isinstance(exc, exceptions.Stopped)],
            'refused': _text(self.sync.refused),
            'not_compared': _text(self.sync.not_compared),
            'unprocessed': self.unprocessed,
            'exit_status': self.status(),
        }

    def rows(self, states: abc.Sequence[State] = LISTED
             ) -> list[tuple[str, ...]]:
        """List the associations in these states, for ``COLUMNS``."""
        return [(association.state.action, association.host,
                 association.provider, association.aggregate,
                 association.aggregate_uuid)
                for state in states for association in self.select(state)]

    def summary(self) -> str:
        """Return the figures in lines, if there are any."""
        verbs = ('added', 'removed') if self.request.write else (
            'to add', 'to remove')
        text = plurals.associations(
            len(self.select(State.MISSING)), len(self.select(State.STALE)),
            *verbs)
        if not text and self.judgement == 'partial':
            text = ('No association was changed' if self.request.write
                    else 'No association would be changed')
        elif text and not self.request.write:
            text = 'Placement differs from nova: ' + text
        lines = [text + '.'] if text else []
        stale = self.select(State.STALE_KEPT)
        if stale and not self.sync.refused:
            lines.append('%s kept: %s.' % (plurals.count(
                len(stale), 'stale association'), self._stale_advice))
        if isinstance(self.sync.not_compared, exceptions.Stopped):
            lines.append('Interrupted before the comparison: %s.' % AGAIN)
        if self.unprocessed:
            lines.append('Interrupted; %s not reconciled: %s.' % (
                plurals.count(
                    len(self.unprocessed), 'host or deleted aggregate',
                    'hosts or deleted aggregates'), AGAIN))
        if not lines and not self.sync.not_compared:
            lines.append('Placement matches nova: %s, %s%s' % (
                plurals.count(len(self.request.aggregates
                                  or self._nova.aggregates), 'aggregate'),
                plurals.count(len(
                    self._nova.nodes_of(self.request.hosts)
                    if self.request.hosts else self._nova.nodes),
                    'compute node'), self._pending_clause()))
        return '\n'.join([*lines, *self.foreign()])

    def _pending_clause(self) -> str:
        """Return how many compute nodes have no provider; empty for none."""
        pending = {association.provider
                   for association in self.select(State.PENDING)}
        return ', %d of them without a resource provider yet' % len(
            pending) if pending else ''

    def foreign(self) -> abc.Iterator[str]:
        """Describe the aggregates that are not nova's, if requested."""
        if not self.request.foreign:
            return
        by_aggregate: dict[str, set[str]] = {}
        for association in self.select(State.FOREIGN_AGGREGATE):
            by_aggregate.setdefault(association.aggregate_uuid, set()).add(
                association.host)
        for uuid, hosts in sorted(by_aggregate.items())[:MOST_LISTED]:
            yield 'Aggregate %s of %s: %s; its owner is unknown.%s' % (
                uuid, plurals.some(hosts), self._never,
                HOW_TO_REMOVE if uuid in self.sync.removable else '')
        if len(by_aggregate) > MOST_LISTED:
            yield '... and %d more aggregates' % (
                len(by_aggregate) - MOST_LISTED)

    def faults(self, listing: str = '"--format json"') -> list[str]:
        """List what is not mirrored, each with the reason or the remedy.

        :param listing: what lists more than the first ``MOST_LISTED`` errors
            of one kind
        """
        lines: list[str] = []
        for key, group in itertools.groupby(
                self.all_faults, key=lambda fault: fault.key):
            texts = [str(fault) for fault in group]
            if any(key) and len(texts) > MOST_LISTED:
                texts[MOST_LISTED:] = [
                    '... and %d more of the same kind; %s lists all'
                    % (len(texts) - MOST_LISTED, listing)]
            lines += texts
        return lines

    @property
    def failures(self) -> list[Fault]:
        """List what keeps the sync from a success: all but what is pending.

        Nova-compute creates a provider that is missing, as soon as it runs.
        """
        return [fault for fault in self.all_faults
                if fault.status != exit_status.NO_PROVIDER]

    @functools.cached_property
    def unprocessed(self) -> list[str]:
        """Hosts and deleted aggregates that an interruption skipped."""
        return sorted({
            dirty.host for dirty, exc in self.sync.outcome.unfinished.items()
            if isinstance(exc, exceptions.Stopped)} | {
            subject.name for subject, exc in self.sync.outcome.failed.items()
            if subject.kind == outcome.AGGREGATE
            and isinstance(exc, exceptions.Stopped)})

    @functools.cached_property
    def all_faults(self) -> list[Fault]:
        """Faults by exit status, including those that are not listed."""
        return sorted([*self._obstacles(), *self._errors()],
                      key=lambda fault: (fault.status, fault.key, fault.text))

    def _obstacles(self) -> abc.Iterator[Fault]:
        """List what a sync cannot repair."""
        yield from obstacles(self._nova)
        for provider, hosts in sorted({
                (association.provider, ', '.join(association.hosts))
                for association in self.select(State.PENDING)
                if outcome.Subject(outcome.PROVIDER, association.provider)
                not in self.sync.outcome.failed}):
            yield without_provider(hosts, provider)

    def _errors(self) -> abc.Iterator[Fault]:
        """List what failed: comparison, cells, removals and writes."""
        missed = self.sync.not_compared
        if missed and not isinstance(missed, exceptions.Stopped):
            yield Fault(exit_status.of(missed), '',
                        'Nothing could be compared: %s' % missed, error=missed)
        for name, reason in self._nova.cells_down.items():
            text = 'Cell %s did not answer: %s; its hosts are unchanged' % (
                name, reason)
            yield Fault(exit_status.NO_NODE, name, text,
                        error=exceptions.CellUnavailable(text, [name]))
        if self.sync.refused:
            yield Fault(exit_status.of(self.sync.refused), '',
                        'Removals refused: %s' % refusal(self.sync.refused),
                        error=self.sync.refused)
        for subject, exc in self.sync.outcome.failed.items():
            if not isinstance(exc, exceptions.Stopped):
                yield Fault(
                    exit_status.of(
                        exc, unwritten=subject in self.sync.outcome.unwritten),
                    str(subject), '%s: %s' % (self._effect(subject), exc),
                    error=exc)

    def _effect(self, subject: outcome.Subject) -> str:
        """Return what a failure of the subject leaves undone."""
        text = str(subject)
        if subject.kind == outcome.UNREAD:
            return 'Aggregate %s (%s) is not compared' % (
                self._nova.aggregates.get(subject.name, 'that was deleted'),
                subject.name)
        if subject.name in self._nova.nodes:
            names = self._nova.host_names(subject.name)
            if subject.kind == outcome.FOREIGN:
                return 'Host %s: the %s are unknown' % (names, text)
            if subject.kind == outcome.PROVIDER:
                text = 'host %s (%s)' % (names, text)
        return _capitalized(text) + ' is not mirrored'

    def _entries(self, state: State) -> list[dict[str, Any]]:
        return [_entry(association) for association in self.select(state)]


def obstacles(nova: source.Nova) -> abc.Iterator[Fault]:
    """List what nova has to correct before all of it can be mirrored.

    These are aggregates without a UUID, and member hosts without host mapping
    or compute node.
    """
    yield from without_uuid(nova)
    nodeless = nova.nodeless()
    for status, hosts, text, remedy in (
            (exit_status.NOT_MAPPED, nova.unmapped & nodeless,
             'has neither host mapping nor compute node', RETIRED),
            (exit_status.NOT_MAPPED, nova.unmapped - nodeless,
             'has no host mapping', DISCOVER),
            (exit_status.NO_NODE, nodeless - nova.unmapped,
             'has no compute node that nova lists', NO_NODE)):
        for host in hosts:
            yield Fault(status, host, 'Host %s %s' % (host, text), remedy)


def without_uuid(nova: source.Nova) -> abc.Iterator[Fault]:
    """List the aggregates, and compute nodes of members, without a UUID."""
    for aggregate in sorted(nova.invalid_aggregates):
        yield Fault(exit_status.NOT_UPDATED, str(aggregate),
                    _capitalized(aggregate.problem), aggregate.step)
    for row in sorted(nova.invalid_nodes):
        if row.host in nova.hosts_of_invalid_nodes():
            yield Fault(
                exit_status.NO_NODE, row.host,
                '%s: the UUID of its compute node in nova is %r'
                % (_capitalized(str(row)), row.node), NODE_UUID)


def without_provider(hosts: str, provider: str) -> Fault:
    """Describe a compute node of these hosts that placement does not have."""
    text = 'Host %s: compute node %s has no resource provider yet'
    return Fault(exit_status.NO_PROVIDER, provider, text % (hosts, provider),
                 RESTART)


def in_table(rows: abc.Iterable[tuple[str, ...]]
             ) -> list[tuple[terminal_tables.Cell, ...]]:
    """Return rows for ``IN_TABLE``: host and provider in lines of one cell.

    There is no room for a column of UUIDs: that of an aggregate without a name
    is in the same cell.
    """
    return [
        (action, tuple(filter(None, (
            host, provider, '' if aggregate else 'aggregate ' + uuid))),
         aggregate)
        for action, host, provider, aggregate, uuid in rows]


def refusal(error: exceptions.RemovalsRefused) -> str:
    """Return why the brake refused removals, and what to do."""
    return ('%s. If they are correct, run a sync with "--prune --force"; if '
            'not, correct nova\'s host aggregates' % error)


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def _entry(association: Association) -> dict[str, Any]:
    return {'hosts': list(association.hosts), 'provider': association.provider,
            'aggregate': association.aggregate,
            'aggregate_uuid': association.aggregate_uuid}


def _text(error: exceptions.MirrorError | None) -> str | None:
    return str(error) if error else None
