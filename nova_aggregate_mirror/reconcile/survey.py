# SPDX-License-Identifier: Apache-2.0
"""Reads placement and then nova, for a comparison of all of both."""

from collections.abc import Collection
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True)
class Scope:
    """UUIDs of the aggregates that placement is asked about."""

    present: frozenset[str]
    """Nova has them."""
    absent: frozenset[str]
    """Only the ledger has them."""
    only: frozenset[str]
    """Those that were asked for; none of them means all."""


def scope(context: context.Context,
          asked: frozenset[str] = frozenset()) -> Scope:
    """Find out which aggregates placement is to be asked about.

    :param asked: names or UUIDs; none of them means all
    :raises UnknownName: nova has, and had, no such aggregate
    """
    known = frozenset(context.ledger.entries())
    aggregates = context.nova.aggregates()
    only = comparison.resolve(asked, aggregates, known)
    present, absent = frozenset(aggregates), known - frozenset(aggregates)
    if only:
        present, absent = present & only, absent & only
    return Scope(present, absent, only)


def read(context: context.Context, scope: Scope,
         hosts: frozenset[str] = frozenset()) -> comparison.Comparison:
    """Read placement, then nova.

    :param hosts: those that were asked for; none of them means all
    :raises MirrorError: one of them could not be read, this is another
        placement, or nova has no such host
    """
    context.display.step('Reading placement')
    current = context.placement.memberships(
        scope.present, scope.absent, context.each)
    context.display.step(
        'Reading nova; placement has %d providers' % len(current))
    nova = context.nova.read_all()
    check_placement(context, current.keys(), nova)
    known = frozenset(nova.members) | frozenset(nova.nodes.values())
    unknown = sorted(hosts - known)
    if unknown and not nova.cells_down:
        raise exceptions.UnknownName(
            'nova has no host %s; "openstack compute service list" shows '
            'those that there are' % ', '.join(unknown))
    # A user's deletion is marked before nova forgets the aggregate.
    return comparison.Comparison(
        current, nova, context.ledger.entries(), scope.only, whole=not hosts)


def check_placement(context: context.Context, providers: Collection[str],
                    nova: source.Nova) -> None:
    """Check that this placement is the one that nova uses.

    :raises WrongPlacement: it has no provider of any of nova's compute nodes
    """
    if nova.nodes and not nova.nodes.keys() & providers:
        raise exceptions.WrongPlacement(
            'placement has %d resource providers, and none of them is one '
            'of nova\'s %d compute nodes; is this the right placement? %s'
            % (len(providers), len(nova.nodes), context.placement.endpoint()))
