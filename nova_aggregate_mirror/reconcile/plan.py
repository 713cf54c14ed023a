# SPDX-License-Identifier: Apache-2.0
"""What must change in placement for it to mirror nova: pure, no I/O."""

from collections.abc import Iterable
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source

ALWAYS_SAFE = 10
"""So many removals in one sync are never too many."""


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """What one provider's aggregates lack and have too much."""

    provider: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [sign + uuid for sign, uuids in (('+', self.add),
                                                 ('-', self.remove))
                 for uuid in uuids]
        return '%s: %s' % (self.provider, ' '.join(parts) or 'no change')

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def apply(self, aggregates: frozenset[str]) -> frozenset[str]:
        """The aggregates of the provider after this change."""
        return aggregates - frozenset(self.remove) | frozenset(self.add)


def change(provider: str, desired: frozenset[str], current: frozenset[str],
           owned: frozenset[str], only: frozenset[str] = frozenset()
           ) -> Change:
    """What turns ``current`` into ``desired`` for one provider.

    An aggregate outside ``owned`` was put there by someone else and stays.

    :param only: aggregates that may be touched; none of them means all
    """
    add, remove = desired - current, (current & owned) - desired
    if only:
        add, remove = add & only, remove & only
    return Change(provider, tuple(sorted(add)), tuple(sorted(remove)))


def compute(desired: source.Memberships, current: source.Memberships,
            owned: frozenset[str], only: frozenset[str] = frozenset()
            ) -> list[Change]:
    """List the changes that turn ``current`` into ``desired``.

    A provider that is not in ``desired`` is no compute node's and stays as it
    is; one that is not in ``current`` does not exist yet. Changes come in
    provider order, so that two runs log and apply alike.

    :param desired: compute node UUID to the aggregates nova wants it in
    :param current: provider UUID to its aggregates in placement
    :param owned: aggregates that are, or once were, nova host aggregates
    :param only: aggregates that may be touched; none of them means all
    """
    changes = (change(provider, desired[provider], current[provider], owned,
                      only)
               for provider in sorted(desired.keys() & current.keys()))
    return [wanted for wanted in changes if wanted]


def check_safe(changes: Iterable[Change], current: source.Memberships,
               desired: source.Memberships, owned: frozenset[str],
               max_removed_share: float, foreign: int = 0) -> None:
    """Check that a plan does not follow from a damaged or a wrong database.

    :param max_removed_share: of the associations that are ours, between 0 and
        1; up to ten removals are always safe
    :param foreign: associations of providers that are no compute nodes which
        would be removed, too
    :raises RemovalsRefused: with the figures
    """
    removed = sum(len(change.remove) for change in changes) + foreign
    if not removed:
        return
    if not any(desired.values()):
        # An empty answer from nova looks exactly like "remove everything".
        raise exceptions.RemovalsRefused(
            'nova says that no host is in any aggregate; %s would be removed'
            % associations(removed))
    ours = foreign + sum(len(current[provider] & owned)
                         for provider in desired.keys() & current.keys())
    if removed > ALWAYS_SAFE and removed > max_removed_share * ours:
        raise exceptions.RemovalsRefused(
            '%.2f%% of the associations would be removed, which is over '
            '%.2f%% (%d of %d)' % (100 * removed / ours,
                                   100 * max_removed_share, removed, ours))


def associations(count: int) -> str:
    """Count associations in words."""
    return '%d association%s' % (count, '' if count == 1 else 's')


def pending(desired: source.Memberships,
            current: source.Memberships) -> list[str]:
    """Compute nodes with aggregates whose provider does not exist yet."""
    return sorted(node for node, aggregates in desired.items()
                  if aggregates and node not in current)
