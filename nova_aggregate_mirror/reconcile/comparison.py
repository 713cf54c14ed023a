# SPDX-License-Identifier: Apache-2.0
"""Differences between nova and placement as read: pure, no I/O."""

from collections import abc
import dataclasses
import functools
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source

FOREIGN_AFTER = 24 * 3600.0
"""Seconds after which an aggregate that vanished from nova is removed from
providers that are no compute nodes. If an older database had been restored by
mistake, no service would restore these associations."""
ALWAYS_SAFE = 10
"""Removals that the brake always allows."""
UNLIMITED = math.inf
"""A share of removals that no sync exceeds."""
REVIEW = ('list them by a sync with "--prune --dry-run"; if a host is to stay '
          'in its aggregates, correct [api_database] connection or, if that '
          'names nova\'s database, add the host to the aggregates in nova; '
          'only if each removal is right, run a sync with "--prune --force"')
RIVALS = ('if both run nova-compute, the file compute_id of one is a copy: '
          'choose one, move its servers away, stop nova-compute there, and '
          'delete that file; run "openstack compute service delete" for the '
          'host that does not run nova-compute now, which removes it from its '
          'aggregates; restart nova-compute on the other, which creates the '
          'provider again unless servers have kept it')
"""With the compute service, nova-api also deletes the provider."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Placement and then nova, as read; only a hint at what has to change."""

    current: source.Memberships
    nova: source.Nova
    ledger: abc.Mapping[str, journal.LedgerEntry]
    only: frozenset[str] = frozenset()
    """UUIDs of the requested aggregates; empty means all."""
    hosts: frozenset[str] = frozenset()
    """The requested hosts; empty means all."""
    unread_aggregates: outcome.Errors = dataclasses.field(default_factory=dict)
    """Aggregates whose providers are not known, to the reason."""
    unread_providers: outcome.Errors = dataclasses.field(default_factory=dict)
    """Providers whose aggregates are not known, to the reason."""

    @functools.cached_property
    def nodes(self) -> frozenset[str]:
        """The compute nodes of the requested hosts that could be read."""
        nodes = (self.nova.nodes_of(self.hosts) if self.hosts
                 else frozenset(self.nova.nodes))
        return nodes - self.unread_providers.keys()

    @functools.cached_property
    def owned(self) -> frozenset[str]:
        """Owned aggregates, to which prune and the brake apply."""
        return frozenset((*self.nova.aggregates, *self.ledger)) - self.deleted

    @functools.cached_property
    def present(self) -> frozenset[str]:
        """Aggregates that have at least one provider."""
        return frozenset().union(*self.current.values())

    @functools.cached_property
    def deleted(self) -> frozenset[str]:
        """Aggregates that users deleted and that still have a provider."""
        return self._absent(deleted=True)

    @functools.cached_property
    def expired(self) -> frozenset[str]:
        """Aggregates that vanished from nova at least FOREIGN_AFTER ago.

        They are also removed from providers that are not compute nodes. While
        nova has an aggregate without a UUID, each of them may be that one.
        """
        if self.nova.invalid_aggregates:
            return frozenset()
        return frozenset(uuid for uuid in self._absent(deleted=False)
                         if self.ledger[uuid].absent >= FOREIGN_AFTER)

    def _absent(self, deleted: bool) -> frozenset[str]:
        """Return aggregates only in placement: deleted, or all others."""
        if self.hosts:
            # A sync of some hosts removes no whole aggregate.
            return frozenset()
        absent = self.present & self.ledger.keys() - self.nova.aggregates
        return frozenset(uuid for uuid in absent
                         if self.ledger[uuid].deleted == deleted)

    @functools.cached_property
    def changes(self) -> list[outcome.Change]:
        """The changes that placement needs, by provider.

        A compute node that is not in ``current`` has no provider yet.
        """
        changes = []
        for node in sorted(self.nodes & self.current.keys()):
            change = outcome.Change.of(self.nova, node, self.current[node],
                                       self.owned, self.only)
            # Which providers are in an unread aggregate is not known.
            change = change.without(self.unread_aggregates)
            if change:
                changes.append(change)
        return changes

    def disputed_providers(self) -> abc.Mapping[str, exceptions.Contradiction]:
        """Describe the providers whose hosts are in different aggregates."""
        contradictions = {}
        for node, uuids in self.disputes().items():
            hosts = map(str, self.nova.shared[node])
            claims = sorted(self._claim(node, uuid) for uuid in uuids)
            contradictions[node] = exceptions.Contradiction(
                'nova has the compute node on %s' % ' and on '.join(hosts),
                consequence='; '.join(claims), step=RIVALS)
        return contradictions

    def _claim(self, node: str, uuid: str) -> str:
        members = [host for host in sorted(self.nova.hosts_of(node))
                   if uuid in self.nova.members.get(host, ())]
        return 'only %s is in aggregate %s (%s), which is not changed' % (
            ', '.join(members), self.nova.aggregates[uuid], uuid)

    def disputes(self) -> source.Memberships:
        """Map providers to the requested aggregates that are disputed."""
        nodes = self.nova.shared.keys() & self.nodes & self.current.keys()
        disputes = {node: self.in_scope(self.nova.disputed(node))
                    for node in nodes}
        return {node: uuids for node, uuids in disputes.items() if uuids}

    def in_scope(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return those of the aggregates that were requested, and read."""
        aggregates = aggregates.difference(self.unread_aggregates)
        return aggregates & self.only if self.only else aggregates

    def requested_nova(self) -> source.Nova:
        """Return nova without the members that were not requested.

        A member is a requested host in at least one requested aggregate.
        """
        nova, hosts = self.nova, self.hosts
        members = {
            host: aggregates for host, aggregates in nova.members.items()
            if (not hosts or host in hosts) and self.in_scope(aggregates)}
        invalid, cells_down = nova.invalid_aggregates, nova.cells_down
        if hosts:
            invalid = frozenset(aggregate for aggregate in invalid
                                if not hosts.isdisjoint(aggregate.hosts))
            # Hosts that none of the cells without an answer can have.
            located = frozenset(nova.members).union(
                *map(nova.hosts_of, nova.nodes)) - nova.hosts_down.keys()
            if hosts <= located:
                cells_down = {}
        hosts_down = {host: cells for host, cells in nova.hosts_down.items()
                      if host in members}
        return dataclasses.replace(
            nova, members=members, cells_down=cells_down,
            hosts_down=hosts_down, invalid_aggregates=invalid,
            unmapped=nova.unmapped & frozenset(members))

    def after(self, changes: abc.Iterable[outcome.Change]) -> 'Comparison':
        """Return the comparison as it would be after these changes."""
        later = dict(self.current)
        for change in changes:
            if change.provider in later:
                later[change.provider] = change.apply(later[change.provider])
        return dataclasses.replace(self, current=later)

    def dirty(self, nodes: abc.Iterable[str]) -> list[journal.Dirty]:
        """Group compute nodes by host; a shared one is in several groups."""
        by_host: dict[str, set[str]] = {}
        for node in nodes:
            for host in self.nova.hosts_of(node):
                by_host.setdefault(host, set()).add(node)
        return [journal.Dirty(host, frozenset(group))
                for host, group in by_host.items()]

    def other_providers(self) -> abc.Mapping[str, frozenset[str]]:
        """Map providers that are not compute nodes to owned aggregates.

        Empty in a sync of some hosts, which changes no such provider.
        """
        if self.hosts:
            return {}
        compute_nodes = self.nova.compute_nodes()
        return {provider: aggregates - self.deleted
                for provider, aggregates in self.current.items()
                if provider not in compute_nodes and aggregates - self.deleted}

    def without_provider(self) -> frozenset[str]:
        """Return the UUIDs in the ledger that have no provider."""
        return (frozenset(self.ledger) - self.present
                - self.unread_aggregates.keys())

    def refusal(self, max_removed_share: float | None
                ) -> exceptions.RemovalsRefused | None:
        """Return why nova's database may be damaged or wrong: the brake.

        :param max_removed_share: share of the owned associations, between 0
            and 1, UNLIMITED, or None if nothing will be removed; up to ten
            removals are always allowed
        :returns: the error with the figures; None if nothing indicates that
        """
        if max_removed_share in (None, UNLIMITED):
            return None
        nova = self.nova
        expired = sum(len(aggregates & self.expired)
                      for aggregates in self.other_providers().values())
        removed = expired + sum(len(change.remove) for change in self.changes)
        if not removed:
            return None
        if not any(map(nova.wanted, nova.nodes)) and not nova.hosts_down:
            # An empty answer from nova looks exactly like "remove everything".
            return exceptions.RemovalsRefused(
                'nova has no compute node in any aggregate; %s would be '
                'removed' % plurals.count(removed, 'association'), step=REVIEW)
        # The total has each of the removals, so that no share exceeds 1.
        total = expired
        for node in nova.nodes.keys() & self.current.keys():
            total += len(self.current[node] & self.owned)
        if removed <= max(ALWAYS_SAFE, max_removed_share * total):
            return None
        return exceptions.RemovalsRefused(
            '%.2f%% of the associations would be removed, which is over %.2f%%'
            ' (%d of %d)' % (100 * removed / total, 100 * max_removed_share,
                             removed, total), step=REVIEW)
