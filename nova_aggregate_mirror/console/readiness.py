# SPDX-License-Identifier: Apache-2.0
"""Wait until placement has hosts in all their aggregates; change nothing.

Long because each reason to wait has its text and its remedy.
"""

from collections import abc
import dataclasses
import time

from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror import source

TIMEOUT = 300
"""Seconds to wait by default."""
INTERVAL = 1.0
"""Seconds between two attempts, or as long as an attempt takes if that is
longer: nova-api has no query for the compute nodes of a single host."""
REQUEST = 30.0
"""Seconds that one placement request may take."""
LEAST = 10.0
"""Seconds that an attempt may take even at the end of the wait."""
SETTLE = 5.0
"""Seconds after which a host that is in no aggregate is an error. A Galera
node may return a host's memberships a little after they were committed."""
SHOWN = 10
"""Maximum number of lines about one attempt."""

State = associations.State


@dataclasses.dataclass(frozen=True, order=True)
class Missing:
    """Something that a host, or one of its providers, does not have yet."""

    status: int
    """The exit status if it is still missing at the end."""
    subject: str
    state: str
    reason: str = dataclasses.field(default='', compare=False)
    """The text of an error, which may differ at each attempt."""
    remedy: str = dataclasses.field(default='', compare=False)
    error: exceptions.MirrorError | None = dataclasses.field(
        default=None, compare=False)

    def __str__(self) -> str:
        return ': '.join(filter(None, (
            '%s %s' % (self.subject, self.state), self.reason)))


@dataclasses.dataclass(frozen=True)
class Attempt:
    """State of the hosts at one time."""

    missing: tuple[Missing, ...]
    nova: source.Nova = dataclasses.field(
        default_factory=lambda: source.Nova({}, {}, {}))
    """Nova's state; empty when it could not be read."""
    memberless: frozenset[str] = frozenset()
    """Hosts that are in no aggregate."""
    stale: tuple[str, ...] = ()
    """Associations that nova does not have, as lines of text."""


@dataclasses.dataclass(frozen=True)
class WaitResult:
    """The result of a wait for hosts."""

    hosts: frozenset[str]
    seconds: float
    """How long it took."""
    last: Attempt

    def status(self) -> int:
        """Return the lowest exit status that applies."""
        return min((lack.status for lack in self.last.missing),
                   default=exit_status.OK)

    def summary(self) -> list[str]:
        """Return a line for each host; none if anything is missing."""
        if self.last.missing:
            return []
        nova = self.last.nova
        return ['Host %s: placement has it in %s after %.0f s: %s' % (
            host, plurals.count(len(nova.members[host]), 'aggregate'),
            self.seconds, _names(nova.members[host], nova.aggregates))
            for host in sorted(self.hosts)]

    def faults(self) -> list[str]:
        """List what is missing with the remedy, and what is stale."""
        return [*_limited('Timeout after %.0f s: %s' % (
            self.seconds, '; '.join(filter(None, (str(lack), lack.remedy))))
            for lack in self.last.missing), *_limited(self.last.stale)]


def until_mirrored(
    nova_source: source.Source, placement: client.Client,
    hosts: abc.Collection[str], timeout: float, say: abc.Callable[[str], None],
    now: abc.Callable[[], float] = time.monotonic,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> WaitResult:
    """Wait until every compute node is in all aggregates of its host.

    Retriable errors are retried until the timeout; only once if the account is
    refused, in case of a token that expired, and not if it lacks a role.

    :param timeout: seconds after which no further attempt is made
    :param say: called with a line for each thing that is newly missing
    :raises UnknownName: a host is in no aggregate after ``SETTLE`` seconds
    :raises MirrorError: a permanent error of nova or placement, or a refusal
    """
    began, before, is_refused = now(), frozenset[Missing](), False
    while True:
        start = now()
        last = _attempt(nova_source, placement, hosts, max(
            LEAST, began + timeout - start))
        refusal = next((
            lack.error for lack in last.missing if lack.error and issubclass(
                lack.error.meaning, exceptions.NotAuthorized)), None)
        if refusal and (is_refused or issubclass(
                refusal.meaning, exceptions.Forbidden)):
            raise refusal
        is_refused = refusal is not None
        for line in _limited(str(lack) for lack in last.missing
                             if lack not in before):
            say(line)
        passed = now() - began
        if last.memberless and passed >= min(SETTLE, timeout):
            raise _memberless(last.memberless)
        if not last.missing or passed >= timeout:
            return WaitResult(frozenset(hosts), passed, last)
        before = frozenset(last.missing)
        sleep(min(max(INTERVAL, now() - start), timeout - passed))


def _attempt(nova_source: source.Source, placement: client.Client,
             hosts: abc.Collection[str], seconds: float) -> Attempt:
    """Read nova, then the providers; a retriable error counts as missing."""
    try:
        nova = nova_source.read(hosts)
        lacks = [lack for host in sorted(hosts) for lack in _host(host, nova)]
        with deadline.within(seconds):
            of_providers, current = _read(nova, placement)
        lacks += of_providers
        stale = () if lacks else _stale(nova_source, hosts, current)
    except exceptions.Retriable as exc:
        return Attempt((Missing(
            exit_status.of(exc), 'Nova', 'could not be read', str(exc),
            error=exc),))
    return Attempt(tuple(sorted(lacks)), nova,
                   frozenset(hosts) - nova.members.keys(), stale)


def _host(host: str, nova: source.Nova) -> abc.Iterator[Missing]:
    """List what nova lacks of a host."""
    subject = 'Host %s' % host
    if host not in nova.members:
        yield Missing(exit_status.COULD_NOT_RUN, subject, 'is in no aggregate')
    elif host in nova.hosts_down:
        yield Missing(
            exit_status.NO_NODE, subject, 'is in a cell that did not answer',
            '; '.join('cell %s: %s' % cell
                      for cell in sorted(nova.cells_down.items())))
    elif host in nova.nodeless() & nova.unmapped:
        yield Missing(exit_status.NO_NODE, subject,
                      'has neither host mapping nor compute node',
                      remedy=sync_result.RETIRED)
    elif host in nova.nodeless():
        yield Missing(exit_status.NO_NODE, subject,
                      'has no compute node that nova lists',
                      remedy=sync_result.NO_NODE)
    elif host in nova.unmapped:
        yield Missing(exit_status.NOT_MAPPED, subject, 'has no host mapping',
                      remedy=sync_result.DISCOVER)


def _read(nova: source.Nova, placement: client.Client
          ) -> tuple[list[Missing], dict[str, frozenset[str]]]:
    """Return what the providers of compute nodes lack, and what they have."""
    current: dict[str, frozenset[str]] = {}
    nodes: list[str] = []
    unread: list[Missing] = []
    for node, aggregates in sorted(nova.desired().items()):
        try:
            if aggregates or nova.disputed(node):
                with deadline.within(REQUEST):
                    current[node] = placement.get(node).aggregates
        except exceptions.ProviderNotFound:
            if not aggregates:
                current[node] = frozenset()
        except exceptions.Retriable as exc:
            # The others would probably fail in the same way.
            unread.append(Missing(exit_status.of(exc), _subject(nova, node),
                                  'could not be read', str(exc), error=exc))
            break
        nodes.append(node)
    compared = comparison.Comparison(current, nova, {}, frozenset())
    by_node: dict[tuple[str, State], list[str]] = {}
    for association in associations.compare(compared, compared.changes(())):
        by_node.setdefault((association.provider, association.state), []
                           ).append(association.aggregate_uuid)
    lacks = [lack for (node, state), uuids in by_node.items() if node in nodes
             for lack in _lacking(nova, placement, node, state, uuids)]
    return lacks + unread, current


def _lacking(nova: source.Nova, placement: client.Client, node: str,
             state: State, uuids: abc.Collection[str]
             ) -> abc.Iterator[Missing]:
    """Describe associations in the same state of a compute node."""
    if state is State.DISPUTED:
        yield Missing(
            exit_status.NOT_UPDATED, _subject(nova, node),
            'is not changed in %s' % _names(uuids, nova.aggregates),
            comparison.rivalry(nova, node), comparison.RIVALS)
    elif state is State.PENDING:
        yield Missing(
            exit_status.NO_PROVIDER,
            'Host %s: compute node %s' % (nova.host_names(node), node),
            'has no resource provider yet',
            remedy='%s, and check that nova uses this placement: %s' % (
                sync_result.RESTART, placement.endpoint()))
    elif state is State.MISSING:
        yield Missing(
            exit_status.DRIFT, _subject(nova, node),
            'is not in %s' % _names(uuids, nova.aggregates),
            remedy='check that an agent is running, or sync the host')


def _subject(nova: source.Nova, node: str) -> str:
    return 'Host %s (provider %s)' % (nova.host_names(node), node)


def _stale(nova_source: source.Source, hosts: abc.Collection[str],
           current: source.Memberships) -> tuple[str, ...]:
    """Describe associations of these providers that nova does not have."""
    aggregates = frozenset[str]().union(*current.values())
    nova = nova_source.read(hosts, aggregates=aggregates)
    compared = comparison.Comparison(current, nova, {}, frozenset())
    stale: dict[str, list[str]] = {}
    for association in associations.compare(compared, compared.changes(())):
        if association.state is State.STALE:
            stale.setdefault(association.provider, []).append(
                association.aggregate_uuid)
    return tuple(
        '%s is also in %s, where nova does not have it; a full sync with '
        '--prune removes that' % (
            _subject(nova, node), _names(uuids, nova.aggregates))
        for node, uuids in sorted(stale.items()))


def _memberless(hosts: abc.Iterable[str]) -> exceptions.UnknownName:
    return exceptions.UnknownName(
        'nova has no host %s in any aggregate; add the host to its aggregates '
        'first: "openstack aggregate add host <aggregate> <host>"'
        % ', '.join(sorted(hosts)))


def _names(uuids: abc.Iterable[str], names: abc.Mapping[str, str]) -> str:
    return ', '.join(sorted(
        '%s (%s)' % (names.get(uuid, 'unknown'), uuid) for uuid in uuids))


def _limited(lines: abc.Iterable[str]) -> list[str]:
    texts = list(lines)
    surplus = len(texts) - SHOWN
    return texts if surplus <= 0 else [
        *texts[:SHOWN], '... and %d more' % surplus]
