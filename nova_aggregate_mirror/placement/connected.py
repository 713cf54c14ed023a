# SPDX-License-Identifier: Apache-2.0
"""Access to placement through an SDK connection of the caller."""

import openstack

from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror import openstack_options

SERVICE = 'placement'


class Connected:
    """Access through an SDK connection, with clouds.yaml and the catalog.

    :param sdk: the connection; its session is bounded by deadlines from now
        on, for all its users
    :param timeout: seconds per method call outside of a deadline
    """

    party = openstack_options.party(
        SERVICE, 'give your user the role admin, or another that may do this')

    def __init__(self, sdk: openstack.connection.Connection,
                 timeout: float) -> None:
        self._sdk = sdk
        self.timeout = timeout
        adapter.bound(sdk.session)

    def connect(self) -> openstack.connection.Connection:
        return self._sdk
