# SPDX-License-Identifier: Apache-2.0
"""Wait until placement has hosts in all their aggregates; change nothing."""

from collections import abc
import dataclasses
import time

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source

TIMEOUT = 300
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
"""Maximum number of lines of a list."""

Fault = result.Fault
State = associations.State


@dataclasses.dataclass(frozen=True)
class WaitResult:
    """State of the hosts after the last attempt."""

    hosts: frozenset[str]
    missing: list[Fault]
    nova: source.Nova = dataclasses.field(
        default_factory=lambda: source.Nova({}, {}, {}))
    """Nova's state; empty when it could not be read."""
    memberless: frozenset[str] = frozenset()
    stale: tuple[str, ...] = ()
    """Associations that nova does not have, as lines of text."""
    seconds: float = 0.0
    """Since the start of the wait."""

    def status(self) -> int:
        """Return the lowest exit status that applies."""
        return min((fault.status for fault in self.missing),
                   default=exit_status.OK)

    def summary(self) -> list[str]:
        """Return a line for each host; none if anything is missing."""
        if self.missing:
            return []
        members, names = self.nova.members, self.nova.aggregates
        return ['Host %s: placement has it in %s after %.0f s: %s' % (
            host, plurals.count(len(members[host]), 'aggregate'),
            self.seconds, _names(members[host], names))
            for host in sorted(self.hosts)]

    def faults(self) -> list[str]:
        """List what is missing with the remedy, and what is stale."""
        return [*_limited('Timeout after %.0f s: %s' % (
            self.seconds, '; '.join(filter(None, (fault.text, fault.remedy))))
            for fault in self.missing), *_limited(self.stale)]


def until_mirrored(
    nova_source: source.Source, placement: client.Client,
    hosts: frozenset[str], timeout: float, say: abc.Callable[[str], None],
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
    began, previous, is_refused = now(), set[tuple[str, str]](), False
    while True:
        start = now()
        last = _attempt(nova_source, placement, hosts, max(
            LEAST, began + timeout - start))
        refusal = next((
            fault.error for fault in last.missing if fault.error
            and issubclass(fault.error.meaning, exceptions.NotAuthorized)),
            None)
        if refusal and (is_refused or issubclass(
                refusal.meaning, exceptions.Forbidden)):
            raise refusal
        is_refused = refusal is not None
        for line in _limited(fault.text for fault in last.missing
                             if _identity(fault) not in previous):
            say(line)
        passed = now() - began
        if last.memberless and passed >= min(SETTLE, timeout):
            raise _memberless_error(last.memberless)
        if not last.missing or passed >= timeout:
            return dataclasses.replace(last, seconds=passed)
        previous = set(map(_identity, last.missing))
        sleep(min(max(INTERVAL, now() - start), timeout - passed))


def _attempt(nova_source: source.Source, placement: client.Client,
             hosts: frozenset[str], seconds: float) -> WaitResult:
    """Read nova, then the providers; a retriable error counts as missing."""
    try:
        nova = nova_source.read(hosts)
        memberless = hosts - nova.members.keys() - frozenset[str]().union(*(
            aggregate.hosts for aggregate in nova.invalid_aggregates))
        missing = [*_host_faults(memberless, nova),
                   *result.obstacles(nova)]
        with deadline.within(seconds):
            provider_faults, current = _read_providers(nova, placement)
        missing += provider_faults
        stale = () if missing else _stale(nova_source, hosts, current)
    except exceptions.Retriable as exc:
        return WaitResult(hosts, [_unread('Nova', exc)])
    missing.sort(key=lambda fault: (fault.status, fault.subject, fault.text))
    return WaitResult(hosts, missing, nova, memberless, stale)


def _identity(fault: Fault) -> tuple[str, str]:
    """Return what stays the same while an error has another text."""
    return fault.subject, '' if fault.error else fault.text


def _unread(subject: str, error: exceptions.MirrorError) -> Fault:
    return Fault(exit_status.of(error), subject,
                 '%s could not be read: %s' % (subject, error), error=error)


def _host_faults(memberless: frozenset[str], nova: source.Nova
                 ) -> abc.Iterator[Fault]:
    """Yield the faults of hosts in no aggregate, or in unavailable cells."""
    for host in memberless:
        yield Fault(exit_status.COULD_NOT_RUN, host,
                    'Host %s is in no aggregate' % host)
    for host, cells in nova.hosts_down.items():
        error = exceptions.CellUnavailable('; '.join(
            'cell %s: %s' % (cell, nova.cells_down[cell])
            for cell in sorted(cells)))
        yield Fault(
            exit_status.NO_NODE, host, 'Host %s may be in a cell that did '
            'not answer: %s' % (host, error), error=error)


def _read_providers(nova: source.Nova, placement: client.Client
                    ) -> tuple[list[Fault], dict[str, frozenset[str]]]:
    """Return what providers of compute nodes lack, and their aggregates."""
    current: dict[str, frozenset[str]] = {}
    nodes: list[str] = []
    unread: list[Fault] = []
    for node, aggregates in sorted(nova.desired().items()):
        try:
            if aggregates or nova.disputed(node):
                with deadline.within(REQUEST):
                    current[node] = placement.get(node).aggregates
        except exceptions.ProviderNotFound:
            # Without an entry, it is pending in each of its aggregates.
            if not aggregates:
                current[node] = frozenset()
        except exceptions.Retriable as exc:
            # The others would probably fail in the same way.
            unread.append(_unread(_subject(nova, node), exc))
            break
        nodes.append(node)
    missing = [fault for (node, state), uuids in _compare(current, nova)
               if node in nodes
               for fault in _node_faults(nova, placement, node, state, uuids)]
    return missing + unread, current


def _compare(current: source.Memberships, nova: source.Nova
             ) -> abc.Iterable[tuple[tuple[str, State], list[str]]]:
    """Group UUIDs of aggregates by compute node and state."""
    compared = comparison.Comparison(current, nova, {})
    groups: dict[tuple[str, State], list[str]] = {}
    for association in associations.compare(compared):
        groups.setdefault((association.provider, association.state), []
                          ).append(association.aggregate_uuid)
    return groups.items()


def _node_faults(nova: source.Nova, placement: client.Client, node: str,
                 state: State, uuids: abc.Collection[str]
                 ) -> abc.Iterator[Fault]:
    """Describe associations of a node in a state that the wait is for."""
    subject, names = _subject(nova, node), _names(uuids, nova.aggregates)
    if state is State.DISPUTED:
        yield Fault(
            exit_status.NOT_UPDATED, subject, '%s is not changed in %s: %s' % (
                subject, names, comparison.rivalry(nova, node)),
            comparison.RIVALS)
    elif state is State.PENDING:
        fault = result.without_provider(nova.host_names(node), node)
        yield dataclasses.replace(
            fault, remedy='%s, and check that nova uses this placement: %s' % (
                fault.remedy, placement.endpoint()))
    elif state is State.MISSING:
        yield Fault(
            exit_status.DRIFT, subject, '%s is not in %s' % (subject, names),
            'check that an agent is running, or sync the host')


def _subject(nova: source.Nova, node: str) -> str:
    return 'Host %s (provider %s)' % (nova.host_names(node), node)


def _stale(nova_source: source.Source, hosts: frozenset[str],
           current: source.Memberships) -> tuple[str, ...]:
    """Describe associations of these providers that nova does not have."""
    aggregates = frozenset[str]().union(*current.values())
    nova = nova_source.read(hosts, aggregates=aggregates)
    return tuple(
        '%s is also in %s, where nova does not have it; a full sync with '
        '--prune removes that' % (
            _subject(nova, node), _names(uuids, nova.aggregates))
        for (node, state), uuids in _compare(current, nova)
        if state is State.STALE)


def _memberless_error(hosts: abc.Iterable[str]) -> exceptions.UnknownName:
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
