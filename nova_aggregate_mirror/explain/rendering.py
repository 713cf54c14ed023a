# SPDX-License-Identifier: Apache-2.0
"""Explanations as text and as documents: pure, no I/O."""

import collections
from collections import abc
import dataclasses
import textwrap
from typing import Any

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

SENTENCE_HOSTS, ROW_HOSTS = 5, 6
"""Hosts that the sentence, and a row of the table, name."""

COLUMNS = ('Compute nodes', 'Hosts', 'Reason', 'Detail', 'What to do', 'Also')
TABLE = ('Hosts', 'Reason, and what to do')
RECORD = ('Time', 'Event', 'Host', 'Result')
FUNNEL = ('Condition', 'Asked by', 'Left', 'Excluded')
ZONES = ('Zone', 'Servers')


def sentence(answer: explanation.Answer) -> str:
    """Return how many hosts are left, and why the others are not."""
    acceptable = [verdict.host for verdict in answer.acceptable]
    if answer.stays:
        return 'nova-scheduler is not asked: %s' % answer.stays
    if answer.fills and (answer.placed or answer.ran_out):
        return _filled(answer)
    text = 'nova-scheduler finds %d of %d %s' % (
        len(acceptable), len(answer.verdicts), answer.noun)
    if acceptable:
        text += ' (%s)' % names(acceptable, SENTENCE_HOSTS)
    why = excluded(answer)
    if why:
        text += ': ' + why
    if answer.count > 1:
        text += '. %d of %d servers fit at once' % (
            len(answer.placed), answer.count)
    if answer.placed:
        by_host = collections.Counter(answer.placed).most_common()
        counts = ['%d on %s' % (count, host) for host, count in by_host]
        text += ': ' + plurals.first(counts, SENTENCE_HOSTS)
    return text


def excluded(answer: explanation.Answer) -> str:
    """Return why hosts are not left, with the number of each reason."""
    # Nova has none, or the cells with all of them did not answer.
    nothing = '' if answer.verdicts else 'nova shows no compute node'
    phrases = collections.Counter(sorted(
        verdict.reason.phrase for verdict in answer.verdicts
        if verdict.reason.kind != explanation.ACCEPTABLE))
    return answer.failure or nothing or ', '.join(
        '%d %s' % (count, phrase) for phrase, count in phrases.most_common())


def _filled(answer: explanation.Answer) -> str:
    """Return how many servers fit, and what then excludes the hosts."""
    zone = answer.request.get('zone')
    elsewhere = 'not in zone %s' % zone
    verdicts = []
    for verdict in answer.verdicts:
        reasons = (verdict.reason, *verdict.also)
        if elsewhere not in {reason.phrase for reason in reasons}:
            verdicts.append(verdict)
    inside = dataclasses.replace(answer, verdicts=verdicts)
    hosts = '%d %s%s' % (len(inside.verdicts), inside.noun,
                         ' of %s' % zone if zone else '')
    parts = ['%s on %d of %s' % (reason, count, hosts)
             for reason, count in answer.ran_out.items()]
    end = 'then ' + ', '.join(filter(None, [*parts, excluded(inside)]))
    if answer.interrupted or len(answer.placed) == explanation.MAX_SERVERS:
        end = 'stopped there, and more may fit'
    return '%d more; %s' % (len(answer.placed), end)


def names(hosts: abc.Iterable[str], limit: int) -> str:
    """Join the first hosts; a host with several nodes is named once."""
    texts = [host if nodes == 1 else '%s with %d nodes' % (host, nodes)
             for host, nodes in collections.Counter(hosts).items()]
    return plurals.first(texts, limit)


def text(answer: explanation.Answer, tables: bool = True) -> str:
    """Render the answer, perhaps with the table of hosts."""
    parts = [paragraph(remark) for remark in answer.remarks]
    if answer.record:
        parts.append(paragraph(state(answer.record)))
        if answer.record.entries:
            parts.append(terminal_tables.render(
                RECORD, map(dataclasses.astuple, answer.record.entries)))
    parts.append(printable.line(sentence(answer)))
    if answer.not_looked_at:
        parts.append(paragraph('Not looked at: %s.' % answer.not_looked_at))
    request = ', '.join('%s %s' % field for field in answer.request.items())
    parts += [paragraph('Request: ' + request),
              terminal_tables.render(FUNNEL, funnel(answer))]
    if answer.zones:
        parts.append(terminal_tables.render(ZONES, answer.zones.items()))
    if tables and answer.verdicts:
        cells = []
        for count, hosts, *reason, also in rows(answer):
            also = also and 'also: ' + also
            cells.append(((plurals.count(count, 'compute node'), hosts),
                          (*reason, also)))
        parts.append(terminal_tables.render(TABLE, cells))
    parts += [paragraph('Note: ' + note) for note in answer.notes]
    return '\n\n'.join(parts)


def state(server: explanation.ServerRecord) -> str:
    """Return the state of a server and its last fault as one sentence."""
    return 'The server is in state %s%s%s' % (
        server.state, ' (%s)' % server.task if server.task else '',
        ': ' + server.fault if server.fault else '')


def document(answer: explanation.Answer) -> dict[str, Any]:
    """Return a JSON object; its keys are documented with the command."""
    keys = 'condition', 'asked_by', 'left', 'excluded'
    conditions = [dict(zip(keys, row, strict=True)) for row in funnel(answer)]
    server = answer.record and dataclasses.asdict(answer.record)
    hosts = []
    for verdict in answer.verdicts:
        reason, *also = [
            {'kind': reason.kind, 'reason': reason.phrase,
             'detail': reason.detail, 'step': reason.step}
            for reason in reasons([verdict])]
        hosts.append({
            'host': verdict.host, 'node': verdict.node,
            'weight': verdict.weight, 'weights': dict(verdict.scores),
            'condition': verdict.condition, **reason, 'also': also})
    return {
        'remarks': list(answer.remarks), 'summary': sentence(answer),
        'not_looked_at': answer.not_looked_at, 'server': server,
        'request': dict(answer.request), 'failure': answer.failure,
        'conditions': conditions, 'hosts': hosts, 'count': answer.count,
        'placed': list(answer.placed), 'ran_out': dict(answer.ran_out),
        'zones': dict(answer.zones), 'notes': list(answer.notes)}


def funnel(answer: explanation.Answer) -> list[tuple[str, str, int, int]]:
    """Return rows for ``FUNNEL``: how many nodes each condition leaves."""
    return [('compute nodes in nova', '', len(answer.verdicts), 0),
            *map(dataclasses.astuple, answer.conditions)]


def rows(answer: explanation.Answer) -> list[tuple[Any, ...]]:
    """Return rows for ``COLUMNS``; hosts in the same state share a row."""
    found = []
    for verdicts, (reason, *also) in groups(answer):
        hosts = names((verdict.host for verdict in verdicts), ROW_HOSTS)
        found.append((
            len(verdicts), hosts, reason.phrase, reason.detail, reason.step,
            '; '.join(further.phrase for further in also)))
    return found


def groups(answer: explanation.Answer) -> list[
        tuple[list[explanation.Verdict], list[explanation.Reason]]]:
    """Group verdicts of one condition with the same reason, in their order."""
    groups: dict[Any, list[explanation.Verdict]] = {}
    for verdict in answer.verdicts:
        # These may differ in their figures.
        further = tuple(reason.phrase for reason in verdict.also)
        key = verdict.condition, verdict.reason, further
        groups.setdefault(key, []).append(verdict)
    return [(verdicts, reasons(verdicts)) for verdicts in groups.values()]


def reasons(verdicts: list[explanation.Verdict]) -> list[explanation.Reason]:
    """Return the reasons of a group; a single host is named in them."""
    common = []
    for reason, *others in zip(*((verdict.reason, *verdict.also)
                                 for verdict in verdicts), strict=True):
        if {*others} - {reason}:
            # They have the phrase in common.
            reason = explanation.Reason(reason.kind, reason.phrase)
        common.append(reason)
    hosts = {verdict.host for verdict in verdicts}
    if len(hosts) > 1:
        return common
    return [reason.with_host(verdicts[0].host) for reason in common]


def paragraph(text: str) -> str:
    """Wrap a text to the width of a terminal."""
    return textwrap.fill(printable.line(text), terminal_tables.WIDTH)
