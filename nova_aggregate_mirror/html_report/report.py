# SPDX-License-Identifier: Apache-2.0
"""Rendering of the report on nova and placement."""

from collections import abc
import itertools
from typing import Any

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import matrix
from nova_aggregate_mirror.html_report import page
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import sync_history

REPAIR = commands.SYNC + ' --prune'
State = associations.State
STALE = (State.STALE, State.STALE_KEPT)


def render(content: collect.Content, now: float) -> abc.Iterator[str]:
    """Render the page, part by part."""
    return page.generate('report', now, most=sync_history.MOST,
                         symbols=matrix.SYMBOLS, **values(content))


def status(content: collect.Content) -> int:
    """Return the exit status: the lowest that applies."""
    result = content.sync.status()
    if result == exit_status.OK and content.journal.trouble:
        return exit_status.COULD_NOT_RUN
    return result


def summary(content: collect.Content) -> str:
    """Summarize the comparison, and the audit if any, in one line."""
    text, findings = _comparison(content), content.findings
    return '%s; %s' % (text, findings.summary) if findings else text


def _comparison(content: collect.Content) -> str:
    result = content.sync
    if result.not_compared:
        return 'Nothing could be compared: %s' % result.not_compared
    missing, stale = result.select(State.MISSING), result.select(*STALE)
    parts = ['%d %s' % (len(drift), word) for word, drift in (
        ('missing', missing), ('stale', stale)) if drift]
    number = len(result.problems) + bool(content.journal.trouble)
    count = plurals.count(number, 'problem')
    if not parts:
        return ('%s on the page; otherwise no difference was found' % count
                if number else 'Placement is in sync with nova')
    differs = 'Placement differs from nova: %s' % ' and '.join(parts)
    return '%s; the page lists %s' % (differs, count) if number else differs


def values(content: collect.Content) -> dict[str, Any]:
    """Return the variables of the template."""
    result, journal = content.sync, content.journal
    nova = result.nova
    compared = matrix.shown(syncs.complete(result))
    rows = matrix.rows(nova, compared, marks(content))
    columns = matrix.columns(nova, compared)
    troubles = list(filter(None, [
        journal.trouble, *journal.disagreements, *result.problems]))
    states = frozenset().union(*(column.counts for column in columns))
    # Without the rows of providers that have no known host.
    differing = [len(row.hosts) for row in rows
                 if row.differs and row.hosts[0].name]
    misplaced = content.findings and content.findings.figure
    drift = result.select(*associations.DRIFT)
    never = syncs.NEVER if journal.has_ledger else syncs.UNKNOWN
    return {
        **vars(content),
        'status': status(content), 'summary': summary(content),
        'good': not status(content) and not misplaced, 'states': states,
        'compared': not result.not_compared, 'nova_read': not isinstance(
            result.not_compared, exceptions.NovaUnavailable),
        'problems': troubles, 'missing': len(result.select(State.MISSING)),
        'stale': len(result.select(*STALE)), 'extent': problems.unread(nova),
        'nodes': len(nova.compute_nodes()), 'aggregates': len(nova.aggregates),
        'hosts': len(nova.hosts() | nova.members.keys()), 'columns': columns,
        'rows': [(row, _spans(row, columns)) for row in rows],
        'differing': sum(differing), 'meanings': exit_status.TEXTS,
        'pending': len(result.select(State.PENDING)),
        'foreign': result.select(
            State.FOREIGN_AGGREGATE, State.FOREIGN_PROVIDER,
            State.UNKNOWN_PROVIDER, State.ABSENT),
        'unknown': problems.owner(
            nova) if nova.unread else 'no compute node',
        'described': syncs.foreign(result, never), 'state': store.state,
        'repair': REPAIR if drift and not result.refused else '',
        'observed': next((sync.observed for sync in journal.syncs
                          if sync.mode), content.observes),
        'audit_command': commands.AUDIT}


def marks(content: collect.Content) -> abc.Mapping[str, abc.Set[str]]:
    """Map short texts about problems other than drift to their hosts."""
    nova, not_compared = content.sync.nova, set[str]()
    for name in syncs.failed(content.sync, outcome.PROVIDER, outcome.HOST):
        not_compared |= nova.hosts_of(name) or {name}
    return {
        'in the journal': {row.dirty.host for row in content.journal.rows
                           if row.mirrored_at is None},
        'not mapped to its cell': nova.unmapped,
        'no compute node': nova.nodeless(),
        'its cell did not answer': nova.hosts_down.keys(),
        matrix.NO_UUID: frozenset[str]().union(*(
            aggregate.hosts for aggregate in nova.invalid_aggregates)),
        'compute node without a UUID': nova.members.keys() & {
            row.host for row in nova.invalid_nodes},
        'could not be compared': not_compared - nova.hosts_down.keys()}


def _spans(row: matrix.MatrixRow, columns: abc.Iterable[matrix.Column]
           ) -> list[tuple[matrix.MatrixCell | None, int]]:
    """Return each cell, or None for several empty ones, with its width."""
    cells = {cell.aggregate: cell for cell in row.cells}
    groups = itertools.groupby(cells.get(column.uuid) for column in columns)
    return [(cell, len(list(group))) for cell, group in groups]
