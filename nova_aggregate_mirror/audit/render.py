# SPDX-License-Identifier: Apache-2.0
"""Misplaced servers as text and as JSON: pure, no I/O."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import json
import time
from typing import Any

import prettytable

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable

COLUMNS = ('Server', 'Host', 'Asked for', 'Found', 'Why', 'To move it')
WIDTH = 38

FIELDS = ('server', 'name', 'host', 'project', 'state', 'rule', 'asked',
          'found', 'cause', 'why', 'since', 'command')


def table(found: Iterable[audit.Misplacement]) -> str:
    """Render some misplacements."""
    shown = prettytable.PrettyTable(COLUMNS)
    shown.align, shown.max_width = 'l', WIDTH
    for one in found:
        server, cause = one.server, one.cause
        # Line by line, because a cell has several lines.
        shown.add_row(['\n'.join(map(printable.line, cell)) for cell in (
            (server.name, server.uuid, 'project %s' % server.project),
            (server.host,), (one.asked,), (one.found,),
            (cause.text, 'since %s' % moment(cause.since))
            if cause.since else (cause.text,), (one.command,))],
            divider=True)
    return str(shown.get_string())


def fields(one: audit.Misplacement) -> Mapping[str, Any]:
    """Return a misplacement for a program; see the command's page."""
    server, cause = one.server, one.cause
    return dict(zip(FIELDS, (
        server.uuid, server.name, server.host, server.project, server.state,
        one.rule, one.asked, one.found, cause.kind, cause.text,
        moment(cause.since) if cause.since else None, one.command)))


def totals(counts: auditor.Totals, cells_down: Mapping[str, str]
           ) -> Mapping[str, Any]:
    """Return the counts for a program."""
    return {'servers': counts.servers, 'misplaced': counts.misplaced,
            'without_request': counts.unknown,
            'rules': dict(counts.by_rule), 'cells_down': dict(cells_down)}


def document(pages: Iterable[Iterable[audit.Misplacement]],
             counts: auditor.Totals, cells_down: Mapping[str, str]
             ) -> Iterator[str]:
    """Yield the parts of a JSON object; counts follow the misplacements."""
    yield '{"misplacements": ['
    separator = '\n'
    for page in pages:
        for one in page:
            yield separator + json.dumps(fields(one))
            separator = ',\n'
    yield '\n], %s\n' % json.dumps(totals(counts, cells_down))[1:]


def summary(counts: auditor.Totals) -> str:
    """Return the result in one sentence."""
    text = '%d of %s on a host that contradicts the request' % (
        counts.misplaced, plurals.count(
            counts.servers, 'server is', 'servers are'))
    rules = ', '.join('%d %s' % (count, name) for name, count
                      in counts.by_rule.items() if count)
    return text + (': ' + rules if rules else '')


def moment(seconds: float) -> str:
    """Render a time in UTC."""
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds))
