# SPDX-License-Identifier: Apache-2.0
"""Read of placement and then nova, for their comparison."""

from collections.abc import Collection
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import wording
from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True)
class Scope:
    """UUIDs of the aggregates to query in placement."""

    present: frozenset[str]
    """Aggregates that nova has."""
    absent: frozenset[str]
    """Aggregates that only the ledger has."""
    only: frozenset[str]
    """Requested aggregates; empty means all."""


def scope(context: context.Context,
          asked: frozenset[str] = frozenset()) -> Scope:
    """Return the aggregates to query in placement.

    :param asked: names or UUIDs; empty means all
    :raises UnknownName: no such aggregate exists or existed in nova
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

    :param hosts: requested hosts; empty means all
    :raises MirrorError: placement or nova could not be read, the placement
        belongs to another nova, or nova has no such host
    """
    context.display.step('Reading placement')
    current = context.placement.memberships(
        scope.present, scope.absent, context.each)
    context.display.step(
        'Reading nova; placement has %s'
        % wording.count(len(current), 'provider'))
    nova = context.nova.read_all()
    check_placement(context, current.keys(), nova)
    known = frozenset(nova.members) | nova.hosts()
    unknown = sorted(hosts - known)
    if unknown and not nova.cells_down:
        raise exceptions.UnknownName(
            'nova has no host %s; "openstack compute service list" lists '
            'the hosts' % ', '.join(unknown))
    # The ledger is read last: a deletion is marked before nova deletes.
    return comparison.Comparison(
        current, nova, context.ledger.entries(), scope.only, whole=not hosts)


def check_placement(context: context.Context, providers: Collection[str],
                    nova: source.Nova) -> None:
    """Check that nova uses this placement.

    :raises WrongPlacement: it has no provider of any of nova's compute nodes
    """
    nodes = nova.compute_nodes()
    if nodes and nodes.isdisjoint(providers):
        raise exceptions.WrongPlacement(
            'placement has %s and nova has %s, with no UUID in common; is '
            'this the right placement? %s' % (
                wording.count(len(providers), 'resource provider'),
                wording.count(len(nodes), 'compute node'),
                context.placement.endpoint()))
