# SPDX-License-Identifier: Apache-2.0
"""Access to placement through an SDK connection of the caller."""

import dataclasses

import openstack

from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror import openstack_options
from nova_aggregate_mirror.placement import connection

_PARTY = openstack_options.party(
    'placement', 'give your user the role admin, or another that may do this')
_OVERRIDE = ('placement_endpoint_override of the openstack client, in '
             'clouds.yaml')


def access(sdk: openstack.connection.Connection, timeout: float
           ) -> connection.Access:
    """Return the access with clouds.yaml and the catalog.

    :param sdk: the connection; its session is bounded by deadlines from now
        on, for all its users
    :param timeout: seconds per method call outside of a deadline
    """
    adapter.bound(sdk.session)
    party = _PARTY
    if sdk.config.get_endpoint('placement'):
        # The catalog, and what selects from it, has no effect.
        party = dataclasses.replace(
            party, address=_OVERRIDE, selection=_OVERRIDE)
    return lambda: connection.Slot(
        lambda: sdk, lambda: party, lambda: timeout)
