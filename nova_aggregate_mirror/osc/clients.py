# SPDX-License-Identifier: Apache-2.0
"""Nova and placement, as clouds.yaml, the options and the catalog say."""

from collections.abc import Collection
from collections.abc import Iterable
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import connection
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import api_responses

TIMEOUT = 120.0
"""Seconds for one request. Nova-api gives each cell 60 to answer."""

ADVICE = {
    exceptions.PlacementUnreachable:
        'Check that placement runs, that the catalog has its endpoint, and '
        'region, interface, endpoint and CA in clouds.yaml or in the options.',
    exceptions.NotAuthorized:
        'It takes the admin role, or whatever placement\'s policy wants. '
        'Check the user and the project.',
    exceptions.MissingCredentials:
        'Complete clouds.yaml, the environment or the options.',
    exceptions.InvalidConfiguration:
        'Correct clouds.yaml, the options, or the endpoint in the catalog.',
}
"""What to do about errors of placement, to somebody without nova.conf."""


class Clients:
    """The clients of one command.

    :param sdk: a connection of openstacksdk
    """

    def __init__(self, sdk: Any) -> None:
        config = sdk.config
        self.placement = client.Client(connection.Connected(sdk, TIMEOUT))
        self.nova = api.ApiSource(api.connect(
            session=sdk.session, service_type='compute',
            region_name=config.get_region_name('compute'),
            endpoint_type=config.get_interface('compute') or 'public',
            endpoint_override=config.get_endpoint('compute')), TIMEOUT)

    def find(self, names: Collection[str]) -> frozenset[str]:
        """UUIDs of the aggregates of these names, UUIDs or IDs.

        :raises UnknownName: when there is none, or more than one of a name
        """
        aggregates = self.nova.all_aggregates() if names else []
        return frozenset(_find(name, aggregates) for name in names)


def _find(name: str, aggregates: Iterable[api_responses.Aggregate]) -> str:
    found = sorted(one.uuid for one in aggregates
                   if name in (one.name, one.uuid, str(one.id)))
    if not found:
        raise exceptions.UnknownName(
            'nova has no aggregate %s; "openstack aggregate list" shows those '
            'that there are' % name)
    if found[1:]:
        raise exceptions.UnknownName(
            'more than one aggregate is called %s, by name or by ID: give the '
            'UUID, which is one of %s' % (name, ', '.join(found)))
    return found[0]
