# SPDX-License-Identifier: Apache-2.0
"""Rendering of the explanation of a request: bars, hosts and remedies."""

import collections
from collections import abc

from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
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
        'answer', now, answer=answer, sentence=explanation.sentence(answer),
        state=answer.record and explanation.state(answer.record),
        record_columns=explanation.RECORD, bars=explanation.funnel(answer),
        rows=explanation.groups(answer), not_looked_at=answer.not_looked_at,
        multinode_hosts={host for host, count in nodes.items() if count > 1},
        placed=collections.Counter(answer.placed).most_common())
