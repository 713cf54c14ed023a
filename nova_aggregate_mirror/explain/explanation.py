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
SENTENCE_NAMES, ROW_NAMES = 5, 6
"""Maximum number of names in the sentence, and in a row of the table."""
COLUMNS = ('Compute nodes', 'Hosts', 'Reason', 'Detail', 'What to do', 'Also')
TABLE = ('Hosts', 'Reason, and what to do')
RECORD = ('Time', 'Event', 'Host', 'Result')
FUNNEL = ('Condition', 'Asked by', 'Left', 'Excluded')
ZONES = ('Zone', 'Servers')
PAGE = 'answer'  # The template.


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
    """Index of the first condition that it fails; their number if none."""
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
    """Whether Ctrl-C ended the placing, so that more may fit."""
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
    def multinode_hosts(self) -> set[str]:
        """The hosts with several compute nodes."""
        nodes = collections.Counter(verdict.host for verdict in self.verdicts)
        return {host for host, count in nodes.items() if count > 1}

    @property
    def noun(self) -> str:
        """The plural noun for numbers of verdicts."""
        return 'compute nodes' if self.multinode_hosts else 'hosts'

    @property
    def placed_by_host(self) -> list[tuple[str, int]]:
        """Hosts and their numbers of servers, the largest number first."""
        return collections.Counter(self.placed).most_common()


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
        text += ' (%s)' % names(acceptable, SENTENCE_NAMES)
    if why := excluded(answer):
        text += ': ' + why
    if answer.count > 1:
        text += '. %d of %d servers fit at once' % (
            len(answer.placed), answer.count)
    if answer.placed:
        counts = ['%d on %s' % (count, host)
                  for host, count in answer.placed_by_host]
        text += ': ' + plurals.first(counts, SENTENCE_NAMES)
    return text


def excluded(answer: Answer) -> str:
    """Return why hosts are not left, with the number of hosts by reason."""
    # Nova has no compute node, or no cell that has any answered.
    no_node = '' if answer.verdicts else 'nova shows no compute node'
    phrases = collections.Counter(sorted(
        verdict.reason.phrase for verdict in answer.verdicts
        if verdict.reason.kind != ACCEPTABLE))
    return answer.failure or no_node or ', '.join(
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
    total = '%d %s%s' % (len(inside.verdicts), inside.noun,
                         ' of %s' % zone if zone else '')
    parts = ['%s on %d of %s' % (reason, count, total)
             for reason, count in answer.ran_out.items()]
    end = 'then ' + ', '.join(filter(None, [*parts, excluded(inside)]))
    if answer.interrupted or len(answer.placed) == MAX_SERVERS:
        end = 'stopped there, and more may fit'
    return '%d more; %s' % (len(answer.placed), end)


def names(hosts: abc.Iterable[str], limit: int) -> str:
    """Join the first hosts; a host with several nodes is named once."""
    texts = [host if count == 1 else '%s with %d nodes' % (host, count)
             for host, count in collections.Counter(hosts).items()]
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
        for count, hosts, phrase, detail, step, also in rows(answer):
            further = 'also: ' + also if also else ''
            cells.append(((plurals.count(count, 'compute node'), hosts),
                          (phrase, detail, step, further)))
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
        hosts = names((verdict.host for verdict in verdicts), ROW_NAMES)
        found.append((
            len(verdicts), hosts, reason.phrase, reason.detail, reason.step,
            '; '.join(further.phrase for further in also)))
    return found


def groups(answer: Answer) -> list[tuple[list[Verdict], list[Reason]]]:
    """Group verdicts of one condition with the same reason, in their order."""
    by_key: dict[Any, list[Verdict]] = {}
    for verdict in answer.verdicts:
        # Further reasons of one phrase may differ in their figures.
        further = tuple(reason.phrase for reason in verdict.also)
        key = verdict.condition, verdict.reason, further
        by_key.setdefault(key, []).append(verdict)
    return [(verdicts, reasons(verdicts)) for verdicts in by_key.values()]


def reasons(verdicts: list[Verdict]) -> list[Reason]:
    """Return the reasons of a group; a single host is named in them."""
    common = []
    by_verdict = [(verdict.reason, *verdict.also) for verdict in verdicts]
    for reason, *others in zip(*by_verdict, strict=True):
        if {*others} - {reason}:
            # The verdicts have the phrase in common, not the figures.
            reason = Reason(reason.kind, reason.phrase)
        common.append(reason)
    hosts = {verdict.host for verdict in verdicts}
    if len(hosts) > 1:
        return common
    return [reason.with_host(verdicts[0].host) for reason in common]


def paragraph(text: str) -> str:
    """Wrap a text to the width of a terminal."""
    return textwrap.fill(printable.line(text), terminal_tables.WIDTH)
