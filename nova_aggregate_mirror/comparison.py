# SPDX-License-Identifier: Apache-2.0
"""Placement beside nova, as both were read: what differs. Pure, no I/O."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plan
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Placement, and then nova; only a hint at what is to be done."""

    current: source.Memberships
    nova: source.Nova
    ledger: frozenset[str]
    only: frozenset[str]
    """UUIDs of the aggregates that were asked for; none of them means all."""

    @property
    def owned(self) -> frozenset[str]:
        return frozenset(self.nova.aggregates) | self.ledger

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

    def strangers(self) -> Mapping[str, frozenset[str]]:
        return {provider: aggregates for provider, aggregates
                in self.current.items()
                if aggregates and provider not in self.nova.nodes}

    def emptied(self) -> tuple[frozenset[str], frozenset[str]]:
        """Ledgered UUIDs that neither nova nor placement has, and others."""
        asked = self.ledger & self.only if self.only else self.ledger
        present = frozenset(self.nova.aggregates).union(
            *self.current.values())
        return asked - present, asked & present


def resolve(asked: frozenset[str], aggregates: Mapping[str, str],
            ledger: frozenset[str]) -> frozenset[str]:
    """UUIDs of the aggregates that were asked for by name or UUID.

    :param aggregates: nova's, UUID to name
    :param ledger: UUIDs that were aggregates once
    :raises UnknownName: when there never was such a one
    """
    uuids = {uuid for uuid, name in aggregates.items() if name in asked}
    uuids |= asked & (aggregates.keys() | ledger)
    unknown = sorted(asked - uuids - set(aggregates.values()))
    if unknown:
        raise exceptions.UnknownName(
            'nova has, and had, no aggregate %s; "openstack aggregate list" '
            'shows those that there are' % ', '.join(unknown))
    return frozenset(uuids)
