# SPDX-License-Identifier: Apache-2.0
"""Rendering of the explanation of a request: bars, hosts and remedies."""

import collections
from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.html_report import page


@dataclasses.dataclass(frozen=True)
class Bar:
    """A condition, with the compute nodes that meet it and all before it."""

    name: str
    asked_by: str
    passed: int
    excluded: int
    total: int
    step: int
    """Number of the step, from 0; -1 for all compute nodes."""

    def share(self, count: int) -> str:
        """Return a number of compute nodes as a width."""
        return '%.4g%%' % (100 * count / self.total if self.total else 0)

    @property
    def last(self) -> bool:
        """Check whether this condition excludes the last compute nodes."""
        return self.excluded > 0 and not self.passed


@dataclasses.dataclass(frozen=True)
class VerdictRow:
    """Compute nodes with the same verdict."""

    verdicts: list[explanation.Verdict]
    reason: explanation.Reason
    also: list[explanation.Reason]
    anchor: str
    """Of the first row of a step, for links from its bar."""

    @property
    def first(self) -> explanation.Verdict:
        return self.verdicts[0]


def render(answer: explanation.Answer, now: float) -> abc.Iterator[str]:
    """Render the page, part by part."""
    return page.generate('answer', now, **values(answer))


def values(answer: explanation.Answer) -> abc.Mapping[str, Any]:
    """Return the variables of the template."""
    nodes = collections.Counter(verdict.host for verdict in answer.verdicts)
    rows = list(_rows(answer))
    return {
        'answer': answer, 'sentence': rendering.sentence(answer),
        'state': answer.record and rendering.state(answer.record),
        'record_columns': rendering.RECORD,
        'bars': bars(answer), 'rows': rows, 'figures': _figures(answer),
        'placeholder': explanation.HOST if any(
            explanation.HOST in reason.detail + reason.advice
            for row in rows for reason in (row.reason, *row.also))
        else '',
        'several': {host for host, count in nodes.items() if count > 1},
        'placed': collections.Counter(answer.placed).most_common()}


def bars(answer: explanation.Answer) -> list[Bar]:
    """List all compute nodes, then each condition in order."""
    return [Bar(*row, total=len(answer.verdicts), step=number)
            for number, row in enumerate(rendering.funnel(answer), start=-1)]


def _rows(answer: explanation.Answer) -> abc.Iterator[VerdictRow]:
    steps: set[int] = set()
    for verdicts in rendering.groups(answer):
        step = verdicts[0].step
        reason, *also = rendering.reasons(verdicts)
        yield VerdictRow(verdicts, reason, also,
                         anchor='' if step in steps else 'step-%d' % step)
        steps.add(step)


def _figures(answer: explanation.Answer) -> list[tuple[str, int, str]]:
    """Return the figures at the top: a label, a number and its kind."""
    acceptable = len(answer.acceptable)
    figures = [
        ('compute node' if len(answer.verdicts) == 1 else 'compute nodes',
         len(answer.verdicts), ''),
        ('condition' if len(answer.steps) == 1 else 'conditions',
         len(answer.steps), ''),
        ('excluded', len(answer.verdicts) - acceptable, 'excluded'),
        ('left', acceptable, 'left')]
    if answer.count > 1:
        figures += [('servers requested', answer.count, ''),
                    ('servers that fit', len(answer.placed), 'left')]
    return figures
