# SPDX-License-Identifier: Apache-2.0
"""Clients of nova and placement, configured like the openstack client."""

from collections import abc
import dataclasses
from typing import Any

from nova_aggregate_mirror.audit import api_servers
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror import openstack_options
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import connection
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import api_connection
from nova_aggregate_mirror.source import keyed_aggregates

TIMEOUT = 120.0
"""Seconds per request. Nova-api waits up to 60 seconds for each cell."""
PLACEMENT = openstack_options.party(
    'placement', 'give your user the role admin, or another that may do this')
OVERRIDE = ('placement_endpoint_override of the openstack client, in '
            'clouds.yaml')


class Clients:
    """Clients for the cloud, region and account of an SDK connection."""

    def __init__(self, sdk: Any) -> None:
        config = sdk.config
        self._sdk = sdk
        self.placement = client.Client(placement_access(sdk))
        nova = api_connection.Api(
            sdk.session, TIMEOUT, config.get_region_name('compute'),
            config.get_interface('compute') or 'public',
            config.get_endpoint('compute'))
        self.nova = api.ApiSource(nova)
        self.servers = api_servers.ApiServers(nova)

    def project(self, name: str) -> str:
        keystone = openstack_options.party(resources.PROJECT.service)
        return lookup.resource(lambda: self._sdk.identity, lambda: keystone,
                               resources.PROJECT, name, TIMEOUT)

    def aggregates(self, names: abc.Collection[str]) -> frozenset[str]:
        """Return the UUIDs of aggregates given by name, UUID or ID.

        :raises UnknownName: when no aggregate matches, or several match, or
            it has no UUID
        """
        aggregates = self.nova.all_aggregates() if names else []
        return frozenset(_uuid(name, aggregates) for name in names)


def placement_access(sdk: Any, timeout: float = TIMEOUT) -> connection.Access:
    """Return the access to placement with clouds.yaml and the catalog.

    :param sdk: the connection; its session is bounded by deadlines from now
        on, for all its users
    """
    adapter.bound(sdk.session)
    party = PLACEMENT
    if sdk.config.get_endpoint('placement'):
        # The catalog, and what selects from it, has no effect.
        party = dataclasses.replace(
            party, address=OVERRIDE, selection=OVERRIDE)
    return lambda: connection.Slot(
        lambda: sdk, lambda: party, lambda: timeout)


def _uuid(name: str, aggregates: abc.Iterable[api_connection.ListedAggregate]
          ) -> str:
    matching = {
        aggregate.key: aggregate for aggregate in aggregates
        if name in (aggregate.name, aggregate.uuid, str(aggregate.id))}
    key = lookup.single('nova', 'aggregate', name, sorted(matching),
                        'openstack aggregate list')
    if not keyed_aggregates.has_uuid(key):
        invalid = matching[key]
        raise exceptions.UnknownName(invalid.problem, step=invalid.step)
    return key
