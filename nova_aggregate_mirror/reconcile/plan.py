# SPDX-License-Identifier: Apache-2.0
"""Changes that placement needs in order to mirror nova: pure, no I/O."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source

ALWAYS_SAFE = 10
"""Number of removals per sync that the brake always allows."""


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """Aggregates to add to, and to remove from, one provider."""

    provider: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def apply(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return the aggregates of the provider after this change."""
        return aggregates - frozenset(self.remove) | frozenset(self.add)

    def describe(self, names: abc.Mapping[str, str]) -> str:
        """Return the change as text, for a log.

        :param names: aggregates, UUID to name; a deleted aggregate has none
        :returns: "added zone-a (UUID), rack-b (UUID); removed UUID"
        """
        return '; '.join(
            '%s %s' % (verb, ', '.join(
                '%s (%s)' % (names[uuid], uuid) if uuid in names else uuid
                for uuid in uuids))
            for verb, uuids in (('added', self.add), ('removed', self.remove))
            if uuids)


def change(provider: str, desired: frozenset[str], current: frozenset[str],
           owned: frozenset[str], only: frozenset[str] = frozenset()
           ) -> Change:
    """Compute what turns ``current`` into ``desired`` for one provider.

    An aggregate outside ``owned`` is foreign and is kept.

    :param only: aggregates that may be changed; empty means all
    """
    add, remove = desired - current, (current & owned) - desired
    if only:
        add, remove = add & only, remove & only
    return Change(provider, tuple(sorted(add)), tuple(sorted(remove)))


def compute(desired: source.Memberships, current: source.Memberships,
            owned: frozenset[str], only: frozenset[str] = frozenset(),
            disputed: source.Memberships | None = None
            ) -> list[Change]:
    """List the changes that turn ``current`` into ``desired``, by provider.

    A provider that is not in ``desired`` is not a compute node and is left
    unchanged. A provider that is not in ``current`` does not exist yet.

    :param desired: compute node UUID to the aggregates nova wants it in
    :param current: provider UUID to its aggregates in placement
    :param owned: aggregates that are, or once were, nova host aggregates
    :param disputed: compute node UUID to the aggregates of some but not all
        of its hosts, which are foreign for this provider
    """
    foreign = disputed or {}
    changes = (change(provider, desired[provider], current[provider],
                      owned - foreign.get(provider, frozenset()), only)
               for provider in sorted(desired.keys() & current.keys()))
    return [difference for difference in changes if difference]


def refusal(changes: abc.Iterable[Change], current: source.Memberships,
            desired: source.Memberships, owned: frozenset[str],
            max_removed_share: float, foreign: int = 0
            ) -> exceptions.RemovalsRefused | None:
    """Return why a plan may result from a damaged or wrong database.

    :param max_removed_share: share of the owned associations, between 0 and
        1; up to ten removals are always allowed
    :param foreign: number of associations of other providers than compute
        nodes that would also be removed
    :returns: the error with the figures; None if nothing indicates that
    """
    removed = sum(len(change.remove) for change in changes) + foreign
    if not removed:
        return None
    if not any(desired.values()):
        # An empty answer from nova looks exactly like "remove everything".
        return exceptions.RemovalsRefused(
            'nova reports no host in any aggregate; %s would be removed'
            % plurals.count(removed, 'association'))
    ours = foreign + sum(len(current[provider] & owned)
                         for provider in desired.keys() & current.keys())
    if removed > ALWAYS_SAFE and removed > max_removed_share * ours:
        return exceptions.RemovalsRefused(
            '%.2f%% of the associations would be removed, which is over '
            '%.2f%% (%d of %d)' % (100 * removed / ours,
                                   100 * max_removed_share, removed, ours))
    return None
