# SPDX-License-Identifier: Apache-2.0
"""The brake of a full sync, which refuses too many removals: pure, no I/O."""

from collections import abc

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source

ALWAYS_SAFE = 10


def refusal(changes: abc.Iterable[plan.Change], current: source.Memberships,
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
