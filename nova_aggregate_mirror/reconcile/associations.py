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
    """Seconds since full syncs stopped finding an ABSENT one in nova."""

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
    def pair(self) -> tuple[str, str]:
        return self.provider, self.aggregate_uuid


def compare(compared: comparison.Comparison, prune: bool = True
            ) -> list[Association]:
    """List what nova and placement do not have in common.

    :param prune: whether the sync removes what is stale
    """
    nova = compared.nova
    associations: dict[tuple[str, str], Association] = {}

    def add(state: State, provider: str, uuids: abc.Iterable[str]) -> None:
        for uuid in uuids:
            entry = compared.ledger.get(uuid, journal.LedgerEntry())
            associations[provider, uuid] = _association(
                nova, provider, uuid, state,
                in_placement=uuid in compared.current.get(provider, ()),
                absent_for=entry.absent if state is State.ABSENT else 0.0)

    for change in compared.changes:
        add(State.MISSING, change.provider, change.add)
        add(State.STALE if prune else State.STALE_KEPT, change.provider,
            change.remove)
    for node, aggregates in compared.disputes().items():
        add(State.DISPUTED, node, aggregates)
    for node in compared.nodes - compared.current.keys():
        add(State.PENDING, node, compared.in_scope(nova.wanted(node)))
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
    """Return the associations that a sync found different, or changed.

    What this sync changed is listed with its state before the sync, and what
    others have repaired meanwhile is omitted.
    """
    associations: dict[tuple[str, str], Association] = {}
    for association in differences:
        provider, uuid = association.pair
        if association.state in (State.MISSING, State.STALE):
            subjects = (outcome.Subject(outcome.PROVIDER, provider),
                        outcome.Subject(outcome.AGGREGATE, uuid))
            if (provider in result.done
                    and result.failed.keys().isdisjoint(subjects)):
                # If this sync changed it, it is added again below.
                continue
            is_pending = provider in result.pending
            association = dataclasses.replace(
                association,
                state=State.PENDING if is_pending else State.UNKNOWN)
        associations[association.pair] = association

    def add(state: State, provider: str, uuids: abc.Iterable[str]) -> None:
        for uuid in uuids:
            associations[provider, uuid] = _association(
                nova, provider, uuid, state,
                in_placement=state is not State.MISSING)

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
    associations = list(differences)
    pairs = {association.pair for association in associations}
    for node in nova.nodes:
        hosts = nova.hosts_of(node)
        for uuid in nova.wanted(node):
            if (node, uuid) not in pairs:
                is_unknown = not {node, *hosts, uuid}.isdisjoint(unknown)
                state = State.UNKNOWN if is_unknown else State.IN_SYNC
                associations.append(_association(
                    nova, node, uuid, state, in_placement=not is_unknown))
    nodeless = nova.nodeless().difference(unknown)
    hosts_with_node = frozenset().union(*map(nova.hosts_of, nova.nodes))
    for host in nova.members.keys() - hosts_with_node:
        state = State.NO_NODE if host in nodeless else State.UNKNOWN
        associations += [
            Association((host,), '', nova.aggregates.get(uuid, ''), uuid,
                        state) for uuid in nova.members[host]]
    return sorted(associations)


def _association(nova: source.Nova, provider: str, uuid: str, state: State,
                 in_placement: bool, absent_for: float = 0.0) -> Association:
    return Association(
        tuple(sorted(nova.hosts_of(provider))), provider,
        nova.aggregates.get(uuid, ''), uuid, state, in_placement, absent_for)


def changes(added: int, removed: int,
            verbs: tuple[str, str] = ('added', 'removed')) -> str:
    """Return "1 association added, 2 removed", without a part that is 0."""
    texts: list[str] = []
    for number, verb in zip((added, removed), verbs):
        if number:
            # The noun is in the first part only.
            count = plurals.count(number, 'association')
            texts.append('%s %s' % (number if texts else count, verb))
    return ', '.join(texts)
