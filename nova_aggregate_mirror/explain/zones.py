# SPDX-License-Identifier: Apache-2.0
"""Availability zones of hosts, and what of a request nothing enforces."""

from collections import abc

from nova.api.openstack import api_version_request as compute_api
from nova.conf import CONF

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import moving

ZONE = 'availability_zone'
UNENFORCED = ('Nothing enforces zone %s: no aggregate has it%s.%s')


def of_hosts(manager: host_states.HostManager) -> dict[str, str]:
    """Return the hosts of aggregates with a zone, each with that."""
    zones: dict[str, str] = {}
    for aggregate in manager.aggs_by_id.values():
        if ZONE in aggregate.metadata:
            zones |= dict.fromkeys(aggregate.hosts, aggregate.metadata[ZONE])
    return zones


def can_unpin() -> bool:
    """Check whether the compute API changes the zone of a server."""
    return bool(compute_api.max_api_version() >= compute_api.APIVersionRequest(
        moving.UNPIN_VERSION))


def unpin(request: requests.SchedulingRequest) -> str:
    """Return what unpins a server that exists from its zone."""
    if request.operation == explanation.CREATE or not request.record:
        return ''
    command = moving.unpin(
        str(request.about['server']), request.record.state, can_unpin())
    return 'unpin the server from its zone: ' + command if command else ''


def notes(request: requests.SchedulingRequest,
          manager: host_states.HostManager) -> abc.Iterator[str]:
    """Note that the zone of a request is enforced by nothing."""
    zone, default = (request.spec.availability_zone,
                     CONF.default_availability_zone)
    existing = {aggregate.metadata.get(ZONE)
                for aggregate in manager.aggs_by_id.values()}
    if not zone or zone in existing or zone == default and (
            filter_table.enabled(filter_table.DEFAULT_ZONE, CONF)):
        return
    step = unpin(request)
    yield UNENFORCED % (
        zone, ', and %s is not in [aggregate_mirror] request_filters'
        % filter_table.DEFAULT_ZONE if zone == default else '',
        ' To be rid of it, %s' % step if step else '')
