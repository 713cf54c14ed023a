# SPDX-License-Identifier: Apache-2.0
"""Rendering of the explanation of a request: bars, hosts and remedies."""

import collections
from collections import abc
from typing import Any

from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.html_report import page


def render(answer: explanation.Answer | departures.Answer, now: float
           ) -> abc.Iterator[str]:
    """Render the page, part by part."""
    if isinstance(answer, departures.Answer):
        return page.generate(
            'departures', now, answer=answer,
            sentence=departures.sentence(answer), columns=departures.TABLE,
            not_looked_at=departures.NOT_LOOKED_AT, order=departures.ORDER)
    nodes = collections.Counter(verdict.host for verdict in answer.verdicts)
    return page.generate(
        'answer', now, answer=answer, sentence=rendering.sentence(answer),
        state=answer.record and rendering.state(answer.record),
        record_columns=rendering.RECORD, bars=rendering.funnel(answer),
        rows=list(_rows(answer)), not_looked_at=answer.not_looked_at,
        multinode_hosts={host for host, count in nodes.items() if count > 1},
        placed=collections.Counter(answer.placed).most_common())


def _rows(answer: explanation.Answer) -> abc.Iterator[abc.Mapping[str, Any]]:
    """Yield the rows of the template: compute nodes with equal verdicts."""
    conditions: set[int] = set()
    for verdicts in rendering.groups(answer):
        condition = verdicts[0].condition
        reason, *others = rendering.reasons(verdicts)
        # Its first row is the target of the link from its bar.
        anchor = '' if condition in conditions else 'condition-%d' % condition
        yield {'verdicts': verdicts, 'first': verdicts[0], 'reason': reason,
               'others': others, 'anchor': anchor}
        conditions.add(condition)
