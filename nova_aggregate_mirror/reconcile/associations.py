# SPDX-License-Identifier: Apache-2.0
"""Associations of nova and placement, each with its state: pure, no I/O."""

from collections import abc
import dataclasses
import enum

from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source

Pair = tuple[str, str]


class State(str, enum.Enum):
    """State of an association; the most important comes first."""

    MISSING = 'missing'
    """Only in nova; a sync adds it."""
    STALE = 'stale'
    """Owned, and only in placement; a sync that prunes removes it."""
    STALE_KEPT = 'stale_kept'
    """Stale, and the sync did not prune."""
    DISPUTED = 'disputed'
    """Only some hosts of the compute node are in the aggregate."""
    UNKNOWN = 'unknown'
    """In nova; could not be compared, or not reconciled."""
    NO_NODE = 'without_compute_node'
    """In nova; the host has no compute node."""
    PENDING = 'pending'
    """In nova; the compute node has no provider yet."""
    ABSENT = 'absent'
    """On a provider that is no compute node; nova lacks the aggregate now."""
    FOREIGN_AGGREGATE = 'foreign_aggregate'
    """On a compute node, with an aggregate that was never nova's."""
    FOREIGN_PROVIDER = 'foreign_provider'
    """With an aggregate of nova, on a provider that is not a compute node."""
    UNKNOWN_PROVIDER = 'unknown_provider'
    """On a provider that may be a compute node which could not be read."""
    IN_SYNC = 'in_sync'

    @property
    def word(self) -> str:
        """The state in an output, where a list says what is kept."""
        return self.value.removesuffix('_kept')


DRIFT = (State.MISSING, State.STALE, State.STALE_KEPT)
"""States that break the promise."""


@dataclasses.dataclass(frozen=True, order=True)
class Association:
    """A provider in an aggregate, or a member host without a provider."""

    hosts: tuple[str, ...]
    """All hosts of the compute node; empty for any other provider."""
    provider: str
    """Empty for a host without a compute node."""
    aggregate: str
    """Name; empty for an aggregate that nova does not have."""
    aggregate_uuid: str
    state: State
    in_placement: bool = False
    absent_for: float = 0.0
    """Seconds since nova has not had the aggregate any more."""

    def __str__(self) -> str:
        return 'host %s (provider %s): aggregate %s (%s)' % (
            ', '.join(self.hosts) or '-', self.provider,
            self.aggregate or 'deleted', self.aggregate_uuid)

    @property
    def host(self) -> str:
        """The hosts as one field of a table: separated by commas alone."""
        return ','.join(self.hosts)

    @property
    def in_nova(self) -> bool:
        """Check whether nova, or some hosts of the compute node, want it."""
        return self.state in (State.MISSING, State.DISPUTED, State.UNKNOWN,
                              State.NO_NODE, State.PENDING, State.IN_SYNC)

    @property
    def pair(self) -> Pair:
        return self.provider, self.aggregate_uuid


def compare(compared: comparison.Comparison, prune: bool = True
            ) -> list[Association]:
    """List what nova and placement do not have in common.

    :param prune: whether the sync removes what is stale
    """
    nova = compared.nova
    associations: dict[Pair, Association] = {}

    def add(state: State, provider: str, uuids: abc.Iterable[str]) -> None:
        for uuid in uuids:
            entry = compared.ledger.get(uuid, journal.LedgerEntry())
            associations[provider, uuid] = dataclasses.replace(
                _association(nova, provider, uuid, state),
                in_placement=uuid in compared.current.get(provider, ()),
                absent_for=entry.absent if state is State.ABSENT else 0.0)

    for change in compared.changes:
        add(State.MISSING, change.provider, change.add)
        add(State.STALE if prune else State.STALE_KEPT, change.provider,
            change.remove)
    for node, aggregates in compared.disputes().items():
        add(State.DISPUTED, node, aggregates)
    for node in compared.nodes - compared.current.keys():
        add(State.PENDING, node, compared.requested(nova.wanted(node)))
    for provider, uuids in compared.other_providers().items():
        if nova.unread:
            # A cell or host that was not read may have it as compute node.
            add(State.UNKNOWN_PROVIDER, provider, uuids)
            continue
        add(State.FOREIGN_PROVIDER, provider, uuids & nova.aggregates.keys())
        add(State.ABSENT, provider, uuids - nova.aggregates.keys())
    for provider, aggregates in compared.current.items():
        add(State.STALE, provider, aggregates & compared.deleted)
    return sorted(associations.values())


def after_sync(differences: abc.Iterable[Association], result: outcome.Outcome,
               nova: source.Nova) -> list[Association]:
    """Return the associations, each with its state after a sync.

    What was changed keeps its former state; what is in sync now is omitted.
    """
    associations: dict[Pair, Association] = {}
    for association in differences:
        provider, uuid = association.pair
        if association.state in (State.MISSING, State.STALE):
            subjects = (outcome.Subject(outcome.PROVIDER, provider),
                        outcome.Subject(outcome.AGGREGATE, uuid))
            if (provider in result.done
                    and result.failed.keys().isdisjoint(subjects)):
                # If this sync changed it, it is added again below.
                continue
            association = dataclasses.replace(
                association, state=State.PENDING
                if provider in result.pending else State.UNKNOWN)
        associations[association.pair] = association

    def add(state: State, provider: str, uuids: abc.Iterable[str]) -> None:
        for uuid in uuids:
            associations[provider, uuid] = _association(
                nova, provider, uuid, state)

    for provider, aggregates in result.kept.items():
        add(State.FOREIGN_AGGREGATE, provider, aggregates)
    for change in result.changes:
        add(State.MISSING, change.provider, change.add)
        add(State.STALE, change.provider, change.remove)
    return sorted(associations.values())


def counts(result: outcome.Outcome) -> tuple[int, int]:
    """Count the associations that were added and removed."""
    return (sum(len(change.add) for change in result.changes),
            sum(len(change.remove) for change in result.changes))


def complete(nova: source.Nova, differences: abc.Iterable[Association],
             unknown: abc.Collection[str] = ()) -> list[Association]:
    """Add what nova and placement have in common, and what is unknown.

    :param unknown: nodes, hosts and aggregates that could not be compared
    """
    associations, unknown = list(differences), frozenset(unknown)
    pairs = {association.pair for association in associations}
    for node in nova.nodes:
        names = {node, *nova.hosts_of(node)}
        for uuid in nova.wanted(node):
            if (node, uuid) not in pairs:
                state = (State.IN_SYNC if unknown.isdisjoint({*names, uuid})
                         else State.UNKNOWN)
                associations.append(_association(nova, node, uuid, state))
    nodeless = nova.nodeless() - unknown
    hosts_with_node = frozenset().union(*map(nova.hosts_of, nova.nodes))
    for host in nova.members.keys() - hosts_with_node:
        state = State.NO_NODE if host in nodeless else State.UNKNOWN
        associations += [
            Association((host,), '', nova.aggregates.get(uuid, ''), uuid,
                        state) for uuid in nova.members[host]]
    return sorted(associations)


def _association(nova: source.Nova, provider: str, uuid: str, state: State
                 ) -> Association:
    return Association(
        tuple(sorted(nova.hosts_of(provider))), provider,
        nova.aggregates.get(uuid, ''), uuid, state,
        in_placement=state in (
            State.STALE, State.IN_SYNC, State.FOREIGN_AGGREGATE))


def changes(added: int, removed: int, add: str = 'added',
            remove: str = 'removed') -> str:
    """Return "1 association added, 2 removed", without a part that is 0."""
    texts: list[str] = []
    for number, verb in (added, add), (removed, remove):
        if number:
            text = '%d' % number if texts else plurals.count(
                number, 'association')
            texts.append('%s %s' % (text, verb))
    return ', '.join(texts)
