# SPDX-License-Identifier: Apache-2.0
"""Result of a full sync or of a dry run, as text, table and JSON."""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import functools
import itertools
from typing import Any

from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan

Aggregate = outcome.Aggregate
Provider = outcome.Provider
Subject = outcome.Subject

DISCOVER = 'run "nova-manage cell_v2 discover_hosts"'
RESTART = 'restart nova-compute on that host'
AGAIN = 'run this command again'

COLUMNS = ('action', 'host', 'provider', 'aggregate', 'aggregate UUID')

SAME = 10
"""Number of faults with the same reason that are listed individually."""

Row = dict[str, str]
Fault = tuple[int, str, str]
"""Exit status, line, and the reason, which other faults may share."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """Texts that depend on the command."""

    nodeless: str = RESTART
    refused: str = ('add --force, or temporarily raise [aggregate_mirror] '
                    'max_removed_share; if not, check nova\'s database')
    all: str = '--format json lists all'
    stale: str = '--prune removes stale associations'


class Result:
    """Result of one full sync, for display."""

    def __init__(self, sync: full_sync.Sync, asked: full_sync.Request,
                 advice: Advice = Advice()) -> None:
        self._sync = sync
        self._asked = asked
        self._advice = advice
        self._nova = sync.nova
        self._verbs = ('added', 'removed') if asked.write else (
            'to add', 'to remove')

    def status(self) -> int:
        """Return the lowest exit status that applies."""
        codes = [code for code, _line, _reason in self._faults]
        if not self._asked.write and (self.added or self.removed or self.left):
            codes.append(exit_status.DRIFT)
        return min(codes, default=exit_status.OK)

    def document(self) -> dict[str, Any]:
        """Return the whole result, in a reproducible order."""
        outcome = self._sync.outcome
        return {
            'dry_run': not self._asked.write,
            'add': self.added,
            'remove': self.removed,
            'left': self.left,
            'kept': self.kept,
            'vanished': self.vanished,
            'pending': [{'host': host, 'provider': node} for node, host
                        in sorted(outcome.pending.items())],
            'unmapped': sorted(self._nova.unmapped),
            'nodeless': sorted(self._nova.nodeless()),
            'cells_down': [{'cell': cell, 'reason': reason} for cell, reason
                           in sorted(self._nova.cells_down.items())],
            'failed': [{'subject': str(subject), 'reason': str(exc)}
                       for subject, exc in sorted(
                           outcome.failed.items(), key=lambda one: str(one[0]))
                       if not isinstance(exc, exceptions.Stopped)],
            'refused': _text(self._sync.refused),
            'not_compared': _text(self._sync.not_compared),
            'not_looked_at': self.remaining,
        }

    def rows(self) -> list[list[str]]:
        """List the associations, each after the action taken."""
        return [[action, *row.values()] for action, rows in zip(
            (*self._verbs, 'left: not pruned', 'kept: foreign',
             'kept: no longer in nova'),
            (self.added, self.removed, self.left, self.kept, self.vanished))
            for row in rows]

    def summary(self) -> str:
        """Return the figures in one or more lines."""
        text = plurals.associations(
            len(self.added), len(self.removed), *self._verbs)
        if self._faults:
            text += '%s%s reported' % ('; ' if text else '', plurals.count(
                self.fault_count, 'failure'))
        lines = [text + '.'] if text else []
        if self.left and not self._sync.refused:
            lines.append('%s kept: %s.' % (plurals.count(
                len(self.left), 'stale association'), self._advice.stale))
        if isinstance(self._sync.not_compared, exceptions.Stopped):
            lines.append('Interrupted before the comparison: %s.' % AGAIN)
        if self.remaining:
            lines.append('Interrupted; %s not reconciled: %s.' % (
                plurals.count(len(self.remaining), 'host or deleted aggregate',
                              'hosts or deleted aggregates'), AGAIN))
        return '\n'.join(lines) or (
            'Placement already matches nova.' if self._asked.write
            else 'Nothing to change: placement matches nova.')

    def faults(self) -> list[str]:
        """List what is not mirrored, each with the reason or the remedy."""
        lines: list[str] = []
        for reason, faults in itertools.groupby(
                self._faults, key=lambda fault: fault[2]):
            same = [line for _code, line, _reason in faults]
            lines += same
            if reason and len(same) > SAME:
                lines[-len(same) + SAME:] = [
                    '... and %d more for the same reason; %s'
                    % (len(same) - SAME, self._advice.all)]
        return lines

    @property
    def fault_count(self) -> int:
        """Number of faults, including those that are not listed."""
        return len(self._faults)

    @functools.cached_property
    def added(self) -> list[Row]:
        return self._rows((change.provider, uuid)
                          for change in self._sync.outcome.changes
                          for uuid in change.add)

    @functools.cached_property
    def removed(self) -> list[Row]:
        return self._rows(_removals(self._sync.outcome.changes))

    @functools.cached_property
    def left(self) -> list[Row]:
        """Stale owned associations that were not to be removed."""
        gone = set(_removals(self._sync.outcome.changes))
        return self._rows(one for one in _removals(self._sync.stale)
                          if one not in gone)

    @functools.cached_property
    def kept(self) -> list[Row]:
        """Foreign associations, as far as they were read."""
        kept = [*self._sync.outcome.kept.items(), *self._sync.foreign.items()]
        return self._rows((provider, uuid) for provider, uuids in kept
                          for uuid in uuids - self._gone())

    @functools.cached_property
    def vanished(self) -> list[Row]:
        """Vanished aggregates of providers that are not compute nodes.

        Prune removes them once the aggregate has been absent for 24 hours.
        """
        return self._rows((provider, uuid) for provider, uuids
                          in self._sync.foreign.items()
                          for uuid in uuids & self._gone()
                          if (provider, uuid) not in set(_removals(
                              self._sync.outcome.changes)))

    def _gone(self) -> frozenset[str]:
        return frozenset().union(*self._sync.foreign.values()) - frozenset(
            self._nova.aggregates)

    @functools.cached_property
    def remaining(self) -> list[str]:
        """Hosts and deleted aggregates that an interruption skipped."""
        outcome = self._sync.outcome
        return sorted({
            dirty.host for dirty, exc in outcome.unfinished.items()
            if isinstance(exc, exceptions.Stopped)} | {
            subject.uuid for subject, exc in outcome.failed.items()
            if isinstance(subject, Aggregate)
            and isinstance(exc, exceptions.Stopped)})

    @functools.cached_property
    def _faults(self) -> list[Fault]:
        faults = [(code, line, '') for code, line in self._find_faults()]
        outcome = self._sync.outcome
        for subject, exc in outcome.failed.items():
            if not isinstance(exc, exceptions.Stopped):
                faults.append((
                    exit_status.of(exc, subject in outcome.unwritten),
                    '%s is not mirrored: %s' % (self._subject(subject), exc),
                    str(exc)))
        return sorted(faults, key=lambda one: (one[0], one[2], one[1]))

    def _find_faults(self) -> Iterator[tuple[int, str]]:
        outcome, missed = self._sync.outcome, self._sync.not_compared
        if missed and not isinstance(missed, exceptions.Stopped):
            yield (exit_status.of(missed),
                   'Nothing could be compared: %s' % missed)
        for host in self._nova.unmapped:
            yield (exit_status.NOT_MAPPED,
                   'Host %s has no host mapping: %s' % (host, DISCOVER))
        for host in self._nova.nodeless():
            yield (exit_status.NO_NODE, 'Host %s has no compute node: %s'
                   % (host, self._advice.nodeless))
        for name, reason in self._nova.cells_down.items():
            yield (exit_status.NO_NODE,
                   'Cell %s did not answer: %s; its hosts are unchanged'
                   % (name, reason))
        for node, host in outcome.pending.items():
            yield (exit_status.NO_PROVIDER,
                   'Host %s: compute node %s has no resource provider yet: %s'
                   % (host, node, RESTART))
        if self._sync.refused:
            yield (exit_status.REFUSED,
                   'Removals refused: %s. If they are correct, %s'
                   % (self._sync.refused, self._advice.refused))

    def _subject(self, subject: Subject) -> str:
        text = str(subject)
        if isinstance(subject, Provider) and (
                subject.uuid in self._nova.nodes):
            text = 'host %s (%s)' % (self._nova.nodes[subject.uuid], text)
        return text[0].upper() + text[1:]

    def _rows(self, associations: Iterable[tuple[str, str]]) -> list[Row]:
        # The journal and the comparison may find the same association.
        rows = [{'host': self._nova.nodes.get(provider, ''),
                 'provider': provider,
                 'aggregate': self._nova.aggregates.get(uuid, ''),
                 'aggregate_uuid': uuid}
                for provider, uuid in set(associations)]
        return sorted(rows, key=lambda row: tuple(row.values()))


def _text(error: exceptions.MirrorError | None) -> str | None:
    return str(error) if error else None


def _removals(changes: Iterable[plan.Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        for uuid in change.remove:
            yield change.provider, uuid
