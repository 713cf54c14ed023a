# SPDX-License-Identifier: Apache-2.0
"""Why a provider cannot allocate a resource, and what to do: pure."""

from collections.abc import Mapping

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.placement import candidates

Reason = explanation.Reason
Inventories = Mapping[str, candidates.Inventory]

_SEE_TREE = ('see "openstack resource provider inventory list" and "usage '
             'show" of the host and of the providers below it or shared with '
             'it')


def of_resource(name: str, amount: int, inventories: Inventories | None,
                nested: bool) -> Reason:
    """Return why a provider cannot allocate an amount of a resource.

    :param inventories: those of the provider, if they were read
    :param nested: whether other providers may provide the resource
    """
    fewer = 'have fewer than %d %s free' % (amount, name)
    free = 'delete or move servers, or add hosts'
    if inventories is None:
        return Reason('resources', 'cannot provide %d %s' % (amount, name),
                      '', _SEE_TREE if nested else
                      'see the figures with --host ' + explanation.HOST)
    if name not in inventories:
        return Reason(
            'no_inventory', 'have no %s' % name, '',
            'nova-compute reports it if the host has it; check its '
            'configuration, or use another flavor')
    found = inventories[name]
    detail = 'asked %d, free %d of %d x %g' % (
        amount, found.free, found.total, found.ratio) + (
            ', %d reserved' % found.reserved if found.reserved else '')
    if amount > found.max_unit:
        return Reason(
            'max_unit', 'allow at most %d %s for a server' % (
                found.max_unit, name), detail, 'use a smaller flavor')
    if amount < found.min_unit or amount % found.step_size:
        return Reason(
            'unit', 'do not allocate %d %s to a server' % (amount, name),
            '%s; min_unit %d, step_size %d' % (
                detail, found.min_unit, found.step_size),
            'use a flavor with another amount')
    if amount > found.free:
        return Reason('resources', fewer, detail, free)
    return Reason('resources', fewer, detail + ' now', 'try again')
