# SPDX-License-Identifier: Apache-2.0
"""Rendering of the report on nova and placement."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import matrix
from nova_aggregate_mirror.html_report import misplaced
from nova_aggregate_mirror.html_report import page
from nova_aggregate_mirror.reconcile import associations

# Rows of the matrix that a browser lays out at once.
CHUNK = 50
# Lines of a list; the commands list everything.
MOST = 500
# More entries of the history would not help on a page.
SYNCS = 100

REPAIR = 'nova-aggregate-mirror-manage placement sync_aggregates --prune'
State = associations.State
STALE = (State.STALE, State.STALE_KEPT)

SYMBOLS = {
    State.IN_SYNC: ('✓', 'in sync', 'in nova and in placement'),
    State.MISSING: ('+', 'missing', 'in nova, not yet in placement'),
    State.STALE: ('−', 'stale', 'in placement, not in nova'),
    State.PENDING: ('…', 'pending',
                    'in nova; there is no resource provider yet'),
    State.NO_NODE: ('∅', 'no node',
                    'in nova; the host has no compute node'),
    State.UNKNOWN: ('?', 'unknown',
                    'in nova; could not be compared with placement')}

MEANINGS = {
    exit_status.OK: 'everything mirrored',
    exit_status.NOT_READ: 'placement could not be read',
    exit_status.NOT_UPDATED: 'a provider could not be updated',
    exit_status.NOT_MAPPED: 'a host has no host mapping',
    exit_status.NO_NODE: 'a host has no compute node, or its cell is down',
    exit_status.NO_PROVIDER: 'a compute node has no provider yet',
    exit_status.REFUSED: 'too many associations would have been removed',
    exit_status.COULD_NOT_RUN: 'nova or the journal could not be read',
    130: 'interrupted', 143: 'interrupted'}


@dataclasses.dataclass(frozen=True)
class Span:
    """A cell of a row, or several empty cells."""

    cell: matrix.MatrixCell | None
    width: int = 1


def render(collected: collect.Collected, now: float) -> Iterator[str]:
    """Render the page, part by part."""
    return page.generate('report', now, most=MOST, symbols=SYMBOLS,
                         **values(collected))


def _result(collected: collect.Collected) -> sync_result.Result:
    return sync_result.Result(
        collected.sync, collected.request,
        never=sync_result.NEVER if collected.journal.has_ledger
        else sync_result.UNKNOWN)


def status(collected: collect.Collected) -> int:
    """Return the exit status: the lowest that applies."""
    status = _result(collected).status()
    if status == exit_status.OK and collected.journal.trouble:
        return exit_status.COULD_NOT_RUN
    return status


def verdict(collected: collect.Collected) -> str:
    """Summarize the comparison in one line."""
    result = _result(collected)
    if collected.sync.not_compared:
        return 'Nothing could be compared'
    parts = ['%d %s' % (len(drift), word) for word, drift in (
        ('missing', result.among(State.MISSING)),
        ('stale', result.among(*STALE))) if drift]
    text = 'Placement differs from nova: %s' % ' and '.join(parts)
    if not parts:
        text = 'Placement is in sync with nova'
    if result.failures or collected.journal.trouble:
        text += ', as far as it could be compared'
    return text


def values(collected: collect.Collected) -> dict[str, Any]:
    """Return the variables of the template."""
    result = _result(collected)
    journal, nova = collected.journal, collected.sync.nova
    compared = matrix.shown(collect.associations_of(collected))
    rows = matrix.rows(nova, compared, collect.marks(collected))
    columns = matrix.columns(nova, compared)
    faults = result.faults()
    if journal.trouble:
        faults.insert(0, '%s. The information about deleted aggregates and '
                         'operations is not complete.' % journal.trouble)
    names = {column.uuid: column.name or 'deleted ' + column.uuid
             for column in columns}
    return {
        'status': status(collected), 'verdict': verdict(collected),
        'compared': not collected.sync.not_compared,
        'faults': faults, 'endpoint': collected.endpoint,
        'figures': [*_figures(result, collected), *_misplaced(collected)],
        'columns': columns,
        'names': names, 'zones': collected.zones, 'meanings': MEANINGS,
        'chunks': _chunks(rows, [column.uuid for column in columns]),
        'hosts': len({*nova.members, *nova.hosts()}),
        'differing': sum(len(row.hosts) for row in rows if row.differs),
        'journal': [(row, row.state) for row in journal.rows],
        'pending': result.among(State.PENDING),
        'foreign': result.among(
            State.FOREIGN_AGGREGATE, State.FOREIGN_PROVIDER, State.ABSENT),
        'described': list(result.foreign()),
        'repair': REPAIR if result.among(*associations.DRIFT) else '',
        'syncs': journal.syncs[:SYNCS], 'trouble': journal.trouble,
        'findings': collected.findings, 'audit_command': misplaced.COMMAND}


def _figures(result: sync_result.Result, collected: collect.Collected
             ) -> list[tuple[str, int | str, str]]:
    """Return the figures at the top: a label, a number and its kind."""
    nova = collected.sync.nova
    if collected.sync.not_compared:
        # An unknown figure must not look like zero.
        return [('aggregates', len(nova.aggregates), ''),
                ('missing or stale', '?', 'unknown'),
                _pending(collected.journal)]
    return [
        ('aggregates', len(nova.aggregates), ''),
        ('hosts', len({*nova.members, *nova.hosts()}), ''),
        ('compute nodes', len(nova.compute_nodes()), ''),
        ('missing', len(result.among(State.MISSING)), 'missing'),
        ('stale', len(result.among(*STALE)), 'stale'),
        ('pending', len(result.among(State.PENDING)), 'pending'),
        _pending(collected.journal)]


def _misplaced(collected: collect.Collected
               ) -> list[tuple[str, int | str, str]]:
    misplacements = collected.findings
    return [] if not misplacements else [
        ('misplaced servers', misplacements.figure, 'misplaced')]


def _pending(journal: collect.JournalContent) -> tuple[str, int | str, str]:
    count = sum(row.mirrored_at is None for row in journal.rows)
    return 'in the journal', '?' if journal.trouble else count, 'unknown'


def _chunks(rows: Sequence[matrix.MatrixRow], uuids: Sequence[str]
            ) -> Iterator[list[tuple[matrix.MatrixRow, list[Span]]]]:
    places = {uuid: place for place, uuid in enumerate(uuids)}
    for start in range(0, len(rows), CHUNK):
        yield [(row, _spans(row, places))
               for row in rows[start:start + CHUNK]]


def _spans(row: matrix.MatrixRow, places: dict[str, int]) -> list[Span]:
    """Return the cells in the order of the columns; merge empty cells."""
    spans, at = [], 0
    for cell in sorted(row.cells, key=lambda cell: places[cell.aggregate]):
        place = places[cell.aggregate]
        if place > at:
            spans.append(Span(None, place - at))
        spans.append(Span(cell))
        at = place + 1
    if at < len(places):
        spans.append(Span(None, len(places) - at))
    return spans
