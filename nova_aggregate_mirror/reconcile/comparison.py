# SPDX-License-Identifier: Apache-2.0
"""Placement beside nova, as both were read: what differs. Pure, no I/O."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source

FOREIGN_AFTER = 24 * 3600.0
"""Seconds after which an aggregate that vanished from nova is removed from
providers that are no compute nodes: nobody would restore those associations
should nova's database have been restored to an older state by mistake."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Placement, and then nova; only a hint at what is to be done."""

    current: source.Memberships
    nova: source.Nova
    ledger: Mapping[str, journal.Entry]
    only: frozenset[str]
    """UUIDs of the aggregates that were asked for; none of them means all."""
    whole: bool = True
    """Whether all hosts were asked for."""

    @functools.cached_property
    def owned(self) -> frozenset[str]:
        """Aggregates that are a matter of prune and brake."""
        return (frozenset(self.nova.aggregates) | frozenset(self.ledger)
                ) - self.deleted

    @functools.cached_property
    def present(self) -> frozenset[str]:
        """Aggregates that a provider is in."""
        return frozenset().union(*self.current.values())

    @functools.cached_property
    def deleted(self) -> frozenset[str]:
        """Aggregates that users deleted and that a provider still has."""
        return self._left(deleted=True)

    @functools.cached_property
    def expired(self) -> frozenset[str]:
        """Aggregates that vanished from nova long ago.

        They are removed from providers that are no compute nodes, too.
        """
        return frozenset(uuid for uuid in self._left(deleted=False)
                         if self.ledger[uuid].absent >= FOREIGN_AFTER)

    def _left(self, deleted: bool) -> frozenset[str]:
        if not self.whole:
            return frozenset()
        return frozenset(
            uuid for uuid, entry in self.ledger.items()
            if uuid in self.present and uuid not in self.nova.aggregates
            and entry.deleted == deleted)

    def drift(self, changes: Iterable[plan.Change]) -> int:
        """Count the associations that are missing or stale."""
        return sum(len(change.add) + len(change.remove)
                   for change in changes) + sum(
            len(aggregates & self.deleted)
            for aggregates in self.current.values())

    def changes(self, hosts: Collection[str]) -> list[plan.Change]:
        """What differs, on these hosts or on all."""
        desired = {node: aggregates for node, aggregates
                   in self.nova.desired().items()
                   if not hosts or self.nova.nodes[node] in hosts}
        return plan.compute(desired, self.current, self.owned, self.only)

    def narrowed(self, hosts: Collection[str]) -> source.Nova:
        """Nova, with those members only that were asked for."""
        sure = (frozenset(self.nova.members)
                | frozenset(self.nova.nodes.values())) - self.nova.hosts_down
        members = {host: aggregates for host, aggregates
                   in self.nova.members.items()
                   if (not hosts or host in hosts)
                   and (not self.only or aggregates & self.only)}
        return dataclasses.replace(
            self.nova, members=members,
            # A cell that has none of these hosts is not their trouble.
            cells_down={} if hosts and sure.issuperset(hosts)
            else self.nova.cells_down,
            unmapped=self.nova.unmapped & frozenset(members),
            hosts_down=self.nova.hosts_down & frozenset(members))

    def after(self, changes: Iterable[plan.Change]) -> 'Comparison':
        """As placement would be found when these had been made."""
        current = dict(self.current)
        for change in changes:
            if change.provider in current:
                current[change.provider] = change.apply(
                    current[change.provider])
        return dataclasses.replace(self, current=current)

    def dirty(self, nodes: Iterable[str]) -> list[journal.Dirty]:
        """These compute nodes, by their hosts."""
        by_host: dict[str, set[str]] = {}
        for node in nodes:
            by_host.setdefault(self.nova.nodes[node], set()).add(node)
        return [journal.Dirty(host=host, nodes=frozenset(nodes))
                for host, nodes in by_host.items()]

    def foreign(self) -> Mapping[str, frozenset[str]]:
        """Providers that are no compute node, to their aggregates of ours."""
        kept = {provider: aggregates - self.deleted
                for provider, aggregates in self.current.items()
                if provider not in self.nova.nodes} if self.whole else {}
        return {provider: aggregates for provider, aggregates in kept.items()
                if aggregates}

    def empty(self) -> frozenset[str]:
        """Ledgered UUIDs that no provider is in."""
        return frozenset(self.ledger) - self.present


def resolve(asked: frozenset[str], aggregates: Mapping[str, str],
            ledger: Collection[str]) -> frozenset[str]:
    """UUIDs of the aggregates that were asked for by name or UUID.

    :param aggregates: nova's, UUID to name
    :param ledger: UUIDs that were aggregates once
    :raises UnknownName: when there never was such a one
    """
    uuids = {uuid for uuid, name in aggregates.items() if name in asked}
    uuids |= asked & (aggregates.keys() | frozenset(ledger))
    unknown = sorted(asked - uuids - set(aggregates.values()))
    if unknown:
        raise exceptions.UnknownName(
            'nova has, and had, no aggregate %s; "openstack aggregate list" '
            'shows those that there are' % ', '.join(unknown))
    return frozenset(uuids)
