# SPDX-License-Identifier: Apache-2.0
"""Explanations as text and as documents: pure, no I/O."""

import textwrap
from typing import Any

import prettytable

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import sentence
from nova_aggregate_mirror import printable

SHOWN = 6
"""Hosts that a row of the table names."""
WIDTH = 44

HOSTS = ('Hosts', 'Names', 'Reason', 'Detail', 'What to do')
FUNNEL = ('Condition', 'Asked by', 'Left', 'Excluded')


def text(answer: explanation.Answer) -> str:
    """Render the sentence, the funnel, the hosts and the notes."""
    return '\n\n'.join([
        *head(answer), _table(HOSTS, hosts(answer)), *notes(answer)])


def head(answer: explanation.Answer) -> list[str]:
    """Render the sentence, the request and the funnel."""
    request = ', '.join('%s %s' % each for each in answer.request.items())
    return [printable.line(sentence.sentence(answer)),
            _paragraph('Request: ' + request),
            _table(FUNNEL, funnel(answer))]


def notes(answer: explanation.Answer) -> list[str]:
    """Render each note as a paragraph."""
    return [_paragraph('Note: ' + note) for note in answer.notes]


def document(answer: explanation.Answer) -> dict[str, Any]:
    """Return a JSON object; its keys are documented with the command."""
    return {
        'summary': sentence.sentence(answer),
        'request': dict(answer.request),
        'failure': answer.failure,
        'steps': [
            {'condition': name, 'asked_by': by, 'left': left,
             'excluded': excluded}
            for name, by, left, excluded in funnel(answer)],
        'hosts': [
            {'host': one.host, 'node': one.node, 'weight': one.weight,
             'step': one.step, 'kind': one.reason.kind,
             'reason': one.reason.phrase, 'detail': one.detail,
             'advice': one.advice} for one in answer.verdicts],
        'count': answer.count,
        'placed': list(answer.placed),
        'notes': list(answer.notes),
    }


def funnel(answer: explanation.Answer) -> list[tuple[str, str, int, int]]:
    """List the steps with the numbers of nodes left and excluded."""
    before = len(answer.verdicts)
    rows = [('compute nodes in nova', '', before, 0)]
    for step in answer.steps:
        left = len(step.passed)
        rows.append((step.name, step.asked_by, left, before - left))
        before = left
    return rows


def hosts(answer: explanation.Answer) -> list[tuple[Any, ...]]:
    """List hosts by reason; hosts in the same state share a row."""
    return [(len(found), sentence.names((one.host for one in found), SHOWN),
             found[0].reason.phrase, *remedy(found))
            for found in groups(answer)]


def groups(answer: explanation.Answer) -> list[list[explanation.Verdict]]:
    """Group the verdicts of one step with the same reason, in their order."""
    same: dict[tuple[int, explanation.Reason], list[explanation.Verdict]] = {}
    for one in answer.verdicts:
        same.setdefault((one.step, one.reason), []).append(one)
    return list(same.values())


def remedy(group: list[explanation.Verdict]) -> tuple[str, str]:
    """Return detail and advice; a single host is named in them."""
    first = group[0]
    if group[1:]:
        return first.reason.detail, first.reason.advice
    return first.detail, first.advice


def _paragraph(text: str) -> str:
    return textwrap.fill(printable.line(text), 2 * WIDTH)


def _table(columns: tuple[str, ...], rows: list[Any]) -> str:
    table = prettytable.PrettyTable(columns)
    table.align, table.max_width = 'l', WIDTH
    table.add_rows([[printable.line(str(cell)) for cell in row]
                    for row in rows])
    return table.get_string()
