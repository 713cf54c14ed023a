# SPDX-License-Identifier: Apache-2.0
"""Aggregates of compute nodes that are not nova's: one GET per provider."""

from collections import abc

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import outcome


def find(context: context.Context, compared: comparison.Comparison,
         hosts: abc.Collection[str], result: outcome.Outcome
         ) -> frozenset[str]:
    """Add the aggregates of compute nodes that neither nova nor ledger has.

    :param hosts: requested hosts; empty means all
    :returns: those that have no provider but compute nodes, and none that
        shares: others may connect hosts to their storage
    """
    nodes = sorted(compared.nova.nodes_of(hosts) if hosts
                   else compared.nova.nodes)
    context.display.step('Reading the aggregates of %s'
                         % plurals.count(len(nodes), 'provider'))
    context.display.expect(len(nodes))

    def read(node: str) -> None:
        try:
            foreign = (context.placement.get(node).aggregates
                       - compared.owned - compared.deleted)
        except exceptions.ProviderNotFound:
            return
        except exceptions.MirrorError as exc:
            result.failed[outcome.Subject(outcome.PROVIDER, node)] = exc
            if isinstance(exc, exceptions.OUTAGE):
                raise
            return
        context.display.advance()
        if foreign:
            result.kept[node] = foreign

    try:
        context.each(read, nodes)
        others = context.placement.sharing().keys()
        return frozenset(
            uuid for uuid in frozenset().union(*result.kept.values())
            if not context.placement.members(uuid)
            - (compared.nova.compute_nodes() - others))
    except exceptions.MirrorError:
        # It is in the result, or only the advice depends on it.
        return frozenset()
