# SPDX-License-Identifier: Apache-2.0
"""Explanation of a scheduling decision, as text and as a document: pure.

Long because a terminal, a program and a page show each of its values.
"""

import collections
from collections import abc
import dataclasses
import shlex
import textwrap
from typing import Any

from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.scheduler import moving
from nova_aggregate_mirror import terminal_tables

CREATE, UNSHELVE = 'create', 'unshelve'
OPERATIONS = {
    CREATE: 'quotas, rights to the flavor, image, volumes, addresses, and the '
    'ports of a server that was never on a host',
    moving.COLD: 'state of the server, volumes, addresses',
    moving.LIVE: 'state of the server, and what nova-conductor and '
    'nova-compute check of both hosts: nova-scheduler is asked again without '
    'a host that they refuse ([DEFAULT] migrate_max_retries)',
    moving.EVACUATION: 'state of the server, whether its host is down, '
    'volumes, addresses',
    UNSHELVE: 'quotas, state and image of the server, volumes, addresses',
    'rebuild': 'state of the server, quotas, the image and its traits, '
    'volumes',
    'resize': 'quotas, rights to the flavor, state and image of the server, '
    'addresses'}
"""Operations on a server for which nova-scheduler finds a host, to what else
nova-api, nova-conductor, cinder and neutron may refuse."""

MAX_SERVERS = 10_000
"""Servers of a request for as many as fit; no other asks for as many."""

HOST = '<host>'
"""Placeholder for the host in texts, so that hosts in one state are alike."""

ACCEPTABLE = 'acceptable'
"""Kind of the verdict on a compute node that passes every condition."""

SENTENCE_HOSTS, ROW_HOSTS = 5, 6
"""Hosts that the sentence, and a row of the table, name."""

COLUMNS = ('Compute nodes', 'Hosts', 'Reason', 'Detail', 'What to do', 'Also')
TABLE = ('Hosts', 'Reason, and what to do')
RECORD = ('Time', 'Event', 'Host', 'Result')
FUNNEL = ('Condition', 'Asked by', 'Left', 'Excluded')
ZONES = ('Zone', 'Servers')


@dataclasses.dataclass(frozen=True)
class Reason:
    """The reason why compute nodes do not pass a condition."""

    kind: str
    """The same word for all reasons of this kind, for programs."""
    phrase: str
    """For the summary after a number of nodes, such as ``disabled``."""
    detail: str = ''
    step: str = ''
    """What to do; like ``detail`` it may contain ``HOST``."""

    def with_host(self, host: str) -> 'Reason':
        return Reason(self.kind, self.phrase, self.detail.replace(HOST, host),
                      self.step.replace(HOST, shlex.quote(host)))


@dataclasses.dataclass(frozen=True)
class Condition:
    """What excludes hosts, and how many compute nodes."""

    name: str
    asked_by: str
    """What sets the condition, such as ``flavor``; may be empty."""
    left: int
    """Number of those that pass this and all earlier conditions."""
    excluded: int


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result for one compute node."""

    node: str
    """UUID of the compute node, and of its provider."""
    host: str
    reason: Reason
    condition: int
    """Number of the first one that it fails, from 0; of all if none."""
    scores: abc.Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Weigher of nova to its part of the weight, of an acceptable node."""
    also: tuple[Reason, ...] = ()
    """Further conditions that the node is known not to meet, in order."""

    @property
    def weight(self) -> float | None:
        """The sum of nova's weighers; None if the node is not weighed."""
        return sum(self.scores.values()) if self.scores else None


@dataclasses.dataclass(frozen=True)
class RecordEntry:
    """A fault of a server, or an event of its last action."""

    time: str
    """ISO 8601, UTC."""
    event: str
    """``fault``, or the action and its event."""
    host: str
    """Empty for nova-conductor."""
    result: str
    """The message of a fault, or the result of an event."""


@dataclasses.dataclass(frozen=True)
class ServerRecord:
    """The state of a server, and what has led to it, as nova stores it."""

    state: str
    task: str
    fault: str
    """The message of the last one; empty, as ``task``, without one."""
    entries: abc.Sequence[RecordEntry]
    """Oldest first."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The explanation of one request."""

    request: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    conditions: abc.Sequence[Condition] = ()
    verdicts: abc.Sequence[Verdict] = ()
    """One for each compute node; acceptable nodes first, by weight."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Parts that are not explained, or may differ in nova-scheduler."""
    placed: abc.Sequence[str] = ()
    """Hosts of the servers, if several are requested at once."""
    count: int = 1
    """Number of servers that are requested at once, or that fit."""
    fills: bool = False
    """Whether servers were placed until none fits."""
    ran_out: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    """What then excludes hosts that took servers, to their number."""
    zones: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Zone of the hosts to the number of servers that fit there."""
    interrupted: bool = False
    """Whether Ctrl-C has ended that, and more may fit."""
    failure: str = ''
    """Why the request fails whatever hosts there are; empty if it does not."""
    record: ServerRecord | None = None
    remarks: abc.Sequence[str] = ()
    """Said before the answer: the operation chosen, what is down or unread."""
    stays: str = ''
    """Why nova-scheduler is not asked; empty if it is."""
    not_looked_at: str = ''
    """What else may refuse the request."""
    cells_down: bool = False
    """Whether hosts may be missing, as a cell did not answer."""

    @property
    def acceptable(self) -> abc.Sequence[Verdict]:
        return [verdict for verdict in self.verdicts
                if verdict.reason.kind == ACCEPTABLE]

    @property
    def possible(self) -> bool:
        """Check whether nova-scheduler finds a host for each server."""
        if self.fills:
            return bool(self.placed)
        if self.count > 1:
            return len(self.placed) == self.count
        return bool(self.acceptable)

    @property
    def noun(self) -> str:
        """The plural noun for numbers of verdicts."""
        hosts = {verdict.host for verdict in self.verdicts}
        return 'hosts' if len(hosts) == len(self.verdicts) else 'compute nodes'


def sentence(answer: Answer) -> str:
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
    if why := excluded(answer):
        text += ': ' + why
    if answer.count > 1:
        text += '. %d of %d servers fit at once' % (
            len(answer.placed), answer.count)
    if answer.placed:
        by_host = collections.Counter(answer.placed).most_common()
        counts = ['%d on %s' % (count, host) for host, count in by_host]
        text += ': ' + plurals.first(counts, SENTENCE_HOSTS)
    return text


def excluded(answer: Answer) -> str:
    """Return why hosts are not left, with the number of each reason."""
    # Nova has none, or the cells with all of them did not answer.
    nothing = '' if answer.verdicts else 'nova shows no compute node'
    phrases = collections.Counter(sorted(
        verdict.reason.phrase for verdict in answer.verdicts
        if verdict.reason.kind != ACCEPTABLE))
    return answer.failure or nothing or ', '.join(
        '%d %s' % (count, phrase) for phrase, count in phrases.most_common())


def _filled(answer: Answer) -> str:
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
    if answer.interrupted or len(answer.placed) == MAX_SERVERS:
        end = 'stopped there, and more may fit'
    return '%d more; %s' % (len(answer.placed), end)


def names(hosts: abc.Iterable[str], limit: int) -> str:
    """Join the first hosts; a host with several nodes is named once."""
    texts = [host if nodes == 1 else '%s with %d nodes' % (host, nodes)
             for host, nodes in collections.Counter(hosts).items()]
    return plurals.first(texts, limit)


def text(answer: Answer, tables: bool = True) -> str:
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


def state(server: ServerRecord) -> str:
    """Return the state of a server and its last fault as one sentence."""
    return 'The server is in state %s%s%s' % (
        server.state, ' (%s)' % server.task if server.task else '',
        ': ' + server.fault if server.fault else '')


def document(answer: Answer) -> dict[str, Any]:
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


def funnel(answer: Answer) -> list[tuple[str, str, int, int]]:
    """Return rows for ``FUNNEL``: how many nodes each condition leaves."""
    return [('compute nodes in nova', '', len(answer.verdicts), 0),
            *map(dataclasses.astuple, answer.conditions)]


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    """Return rows for ``COLUMNS``; hosts in the same state share a row."""
    found = []
    for verdicts, (reason, *also) in groups(answer):
        hosts = names((verdict.host for verdict in verdicts), ROW_HOSTS)
        found.append((
            len(verdicts), hosts, reason.phrase, reason.detail, reason.step,
            '; '.join(further.phrase for further in also)))
    return found


def groups(answer: Answer) -> list[tuple[list[Verdict], list[Reason]]]:
    """Group verdicts of one condition with the same reason, in their order."""
    groups: dict[Any, list[Verdict]] = {}
    for verdict in answer.verdicts:
        # These may differ in their figures.
        further = tuple(reason.phrase for reason in verdict.also)
        key = verdict.condition, verdict.reason, further
        groups.setdefault(key, []).append(verdict)
    return [(verdicts, reasons(verdicts)) for verdicts in groups.values()]


def reasons(verdicts: list[Verdict]) -> list[Reason]:
    """Return the reasons of a group; a single host is named in them."""
    common = []
    for reason, *others in zip(*((verdict.reason, *verdict.also)
                                 for verdict in verdicts), strict=True):
        if {*others} - {reason}:
            # They have the phrase in common.
            reason = Reason(reason.kind, reason.phrase)
        common.append(reason)
    hosts = {verdict.host for verdict in verdicts}
    if len(hosts) > 1:
        return common
    return [reason.with_host(verdicts[0].host) for reason in common]


def paragraph(text: str) -> str:
    """Wrap a text to the width of a terminal."""
    return textwrap.fill(printable.line(text), terminal_tables.WIDTH)
