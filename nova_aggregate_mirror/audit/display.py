# SPDX-License-Identifier: Apache-2.0
"""Misplaced servers as text and as JSON: pure, no I/O."""

from collections import abc
from typing import Any

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror import source
from nova_aggregate_mirror import terminal_tables

COLUMNS = ('Server, host', 'Why')

FIELDS = ('server', 'name', 'host', 'project', 'state', 'rule', 'requested',
          'actual', 'cause', 'detail', 'since', 'step', 'keep_step')


def table(misplacements: abc.Collection[audit.Misplacement]) -> str:
    """Return a table, and the commands below it."""
    rows, lines = map(cells, misplacements), steps(misplacements)
    return '\n'.join([terminal_tables.render(COLUMNS, rows, divider=True),
                      *map(printable.line, lines)])


def steps(misplacements: abc.Iterable[audit.Misplacement]) -> list[str]:
    """Return the commands for each server, on a line of their own."""
    lines = []
    for misplacement in misplacements:
        name = misplacement.server.name
        aim = 'unpin' if misplacement.rule == audit.DEFAULT_ZONE else 'move'
        lines += ['To %s %s:' % (aim, name), '  ' + misplacement.step]
        if misplacement.keep_step:
            lines += ['To keep %s there:' % name,
                      '  ' + misplacement.keep_step]
    return lines


def cells(misplacement: audit.Misplacement
          ) -> tuple[terminal_tables.Cell, ...]:
    """Return the cells for ``COLUMNS``, with a line for each fact."""
    server, cause = misplacement.server, misplacement.cause
    facts = ['Requested: %s' % misplacement.requested,
             'Actual: %s' % misplacement.actual, 'Why: %s' % cause.text]
    if cause.since:
        facts.append('Since: %s' % dates.iso(cause.since))
    return ((server.name, server.uuid, 'project %s' % server.project,
             'host %s' % server.host), tuple(facts))


def row(misplacement: audit.Misplacement) -> tuple[Any, ...]:
    """Return the values of ``FIELDS``; see the command's page."""
    server, cause = misplacement.server, misplacement.cause
    return (
        server.uuid, server.name, server.host, server.project, server.state,
        misplacement.rule, misplacement.requested, misplacement.actual,
        cause.kind, cause.text,
        dates.iso(cause.since) if cause.since else None,
        misplacement.step, misplacement.keep_step or None)


def document(misplacements: abc.Iterable[audit.Misplacement],
             totals: auditor.Totals, cells_down: source.Down
             ) -> dict[str, Any]:
    """Return the misplacements and the totals for a program."""
    rows = map(row, misplacements)
    return {'misplacements': [dict(zip(FIELDS, values)) for values in rows],
            'servers': totals.servers, 'misplaced': totals.misplaced,
            'without_request': totals.unknown, 'rules': totals.by_rule,
            'cells_down': problems.documents(cells_down)}


def summary(totals: auditor.Totals) -> str:
    """Return the result in one sentence."""
    text = '%d of %s on a host that contradicts the request%s' % (
        totals.misplaced, plurals.count(
            totals.servers, 'server is', 'servers are'),
        ', or pinned to the default zone'
        if audit.DEFAULT_ZONE in totals.by_rule else '')
    rules = ', '.join('%d %s' % (count, name) for name, count
                      in totals.by_rule.items() if count)
    return text + (': ' + rules if rules else '')
