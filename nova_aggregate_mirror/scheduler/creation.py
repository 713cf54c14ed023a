# SPDX-License-Identifier: Apache-2.0
"""What nova-api and nova's request filters require of a new server."""

from collections.abc import Mapping
from typing import Any

from nova.conf import CONF
from nova import objects

from nova_aggregate_mirror import exceptions


def zone(context: Any, given: str) -> str:
    """Return the availability zone that nova-api requests; empty for none.

    :raises UnknownName: nova-api has no such zone, and refuses such servers
    """
    name: str = given or CONF.default_schedule_zone or ''
    zones = {CONF.default_availability_zone} | {
        one.metadata['availability_zone']
        for one in objects.AggregateList.get_by_metadata_key(
            context, 'availability_zone')}
    if name and name not in zones:
        raise exceptions.UnknownName(
            'nova has no availability zone %s%s, and refuses servers for it; '
            'it has %s' % (
                name, '' if given else ' ([DEFAULT] default_schedule_zone)',
                ', '.join(sorted(zones))))
    return name


def check(project: str, from_volume: bool, image: Mapping[str, Any]) -> None:
    """Check what nova's request filters read of a request.

    :param image: as nova gets it from glance, or the part of it that is known
    :raises InvalidConfiguration: names the missing argument
    """
    if CONF.scheduler.limit_tenants_to_placement_aggregate and not project:
        raise exceptions.InvalidConfiguration(
            'with [scheduler] limit_tenants_to_placement_aggregate the hosts '
            'depend on the project: give --project')
    if (CONF.scheduler.query_placement_for_image_type_support
            and not from_volume and not image.get('disk_format')):
        raise exceptions.InvalidConfiguration(
            'with [scheduler] query_placement_for_image_type_support the '
            'hosts depend on the format of the image: give --image, or '
            '--volume for a server that boots from a volume')
