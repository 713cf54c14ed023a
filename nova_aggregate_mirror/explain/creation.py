# SPDX-License-Identifier: Apache-2.0
"""What nova-api and nova's request filters require of a new server."""

from collections.abc import Mapping
import json
from typing import Any

from nova import block_device
from nova.conf import CONF
from nova import objects

from nova_aggregate_mirror import exceptions

# Image properties about the disks of a server.
_DEVICES = ('block_device_mapping', 'mappings')


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


def decoded(image: Mapping[str, Any]) -> dict[str, Any]:
    """Decode the properties that are JSON in glance, as nova does.

    :raises ValueError: one is not JSON
    """
    return {**image, 'properties': {
        name: json.loads(value) if name in _DEVICES else value
        for name, value in image['properties'].items()}}


def boots_from_volume(image: Mapping[str, Any]) -> bool:
    """Check whether nova-api creates the root disk of an image as a volume.

    The image is then a snapshot of a server whose root disk was a volume.

    :param image: with the devices decoded
    """
    properties = image['properties']
    devices = properties.get('block_device_mapping', [])
    if not properties.get('bdm_v2'):
        devices = block_device.from_legacy_mapping(
            devices, None, block_device.properties_root_device_name(
                properties))
    root = block_device.get_root_bdm(devices)
    return bool(root and root.get('destination_type') == 'volume')


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
