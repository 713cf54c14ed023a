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
from nova_aggregate_mirror.reconcile import wording

COLUMNS = ('Server', 'Host', 'Asked for', 'Found', 'Why', 'To move it')
WIDTH = 38


def table(found: Iterable[audit.Misplacement]) -> str:
    """Render some misplacements."""
    shown = prettytable.PrettyTable(COLUMNS)
    shown.align, shown.max_width = 'l', WIDTH
    for one in found:
        server, cause = one.server, one.cause
        shown.add_row([
            '%s\n%s\nproject %s' % (server.name, server.uuid, server.project),
            server.host, one.asked, one.found,
            cause.text + '\nsince %s' % moment(cause.since)
            if cause.since else cause.text, one.command], divider=True)
    return str(shown.get_string())


def fields(one: audit.Misplacement) -> Mapping[str, Any]:
    """Return a misplacement for a program; see the command's page."""
    server, cause = one.server, one.cause
    return {
        'server': server.uuid, 'name': server.name, 'host': server.host,
        'project': server.project, 'state': server.state, 'rule': one.rule,
        'asked': one.asked, 'found': one.found, 'cause': cause.kind,
        'why': cause.text,
        'since': moment(cause.since) if cause.since else None,
        'command': one.command}


def document(pages: Iterable[Iterable[audit.Misplacement]],
             counts: auditor.Counts, cells_down: Mapping[str, str]
             ) -> Iterator[str]:
    """Yield the parts of a JSON object; counts follow the misplacements."""
    yield '{"misplacements": ['
    separator = '\n'
    for page in pages:
        for one in page:
            yield separator + json.dumps(fields(one))
            separator = ',\n'
    yield '\n], "servers": %d, "misplaced": %d, "without_request": %d, ' % (
        counts.servers, counts.misplaced, counts.unknown)
    yield '"rules": %s, "cells_down": %s}\n' % (
        json.dumps(counts.by_rule), json.dumps(dict(cells_down)))


def summary(counts: auditor.Counts) -> str:
    """Return the result in one sentence."""
    text = '%d of %s on a host that contradicts the request' % (
        counts.misplaced, wording.count(
            counts.servers, 'server is', 'servers are'))
    rules = ', '.join('%d %s' % (count, name) for name, count
                      in counts.by_rule.items() if count)
    return text + (': ' + rules if rules else '')


def moment(seconds: float) -> str:
    """Render a time in UTC."""
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds))
