# SPDX-License-Identifier: Apache-2.0
"""The brake of a full sync, which refuses too many removals: pure, no I/O."""

import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import comparison

ALWAYS_SAFE = 10
"""Removals that the brake always allows."""
UNLIMITED = math.inf
"""A share of removals that no sync exceeds."""
STEP = ('list them by a sync with "--prune --dry-run"; if a host is to stay '
        'in its aggregates, correct [api_database] connection or, if that '
        'names nova\'s database, add the host to the aggregates in nova; only '
        'if each removal is right, run a sync with "--prune --force"')


def refusal(compared: comparison.Comparison, max_removed_share: float | None
            ) -> exceptions.RemovalsRefused | None:
    """Return why nova's database may be damaged or wrong.

    :param max_removed_share: share of the owned associations, between 0 and 1,
        UNLIMITED, or None if nothing will be removed; up to ten removals are
        always allowed
    :returns: the error with the figures; None if nothing indicates that
    """
    if max_removed_share in (None, UNLIMITED):
        return None
    nova = compared.nova
    expired = sum(len(aggregates & compared.expired)
                  for aggregates in compared.other_providers().values())
    removed = expired + sum(len(change.remove) for change in compared.changes)
    if not removed:
        return None
    if not any(map(nova.wanted, nova.nodes)) and not nova.hosts_down:
        # An empty answer from nova looks exactly like "remove everything".
        return exceptions.RemovalsRefused(
            'nova has no compute node in any aggregate; %s would be removed'
            % plurals.count(removed, 'association'), step=STEP)
    # The whole counts what the part counts, so that no share exceeds 1.
    ours = expired
    for node in nova.nodes.keys() & compared.current.keys():
        ours += len(compared.current[node] & compared.owned)
    if removed > ALWAYS_SAFE and removed > max_removed_share * ours:
        figures = 100 * removed / ours, 100 * max_removed_share, removed, ours
        return exceptions.RemovalsRefused(
            '%.2f%% of the associations would be removed, which is over '
            '%.2f%% (%d of %d)' % figures, step=STEP)
    return None
