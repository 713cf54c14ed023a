# SPDX-License-Identifier: Apache-2.0
"""Requests of servers that do not exist, by a description, as of nova-api."""

import argparse
from collections import abc
from typing import Any

from nova import availability_zones
from nova import block_device
from nova.conf import CONF
from nova import objects
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import request as requests


def of_description(context: Any, args: argparse.Namespace,
                   image: abc.Mapping[str, Any]) -> requests.SchedulingRequest:
    """Build the request of a server that does not exist.

    :param args: those of ``cmd/explain``, with IDs instead of names
    :param image: as nova gets it from glance, or the part of it that is known
    :raises UnknownName: nova has no such flavor
    :raises InvalidConfiguration: an option of nova needs a further argument
    """
    image, hints = requests.decoded(image), args.hints
    # A snapshot of a server whose root disk was a volume has one, too.
    root = block_device.get_root_bdm(
        image['properties'].get('block_device_mapping', [])) or {}
    from_volume = args.volume or root.get('destination_type') == 'volume'
    _require_inputs(args.project, from_volume, image)
    zone, host, node = _zone(context, args.zone)
    if host is None:
        # Nova-api checks no other.
        requests.check_zone(context, zone)
    flavor = requests.flavor(context, args.flavor)
    notes = list[str]()
    if zone and not args.zone:
        notes.append(requests.option_note('default_schedule_zone'))
    if from_volume and not zone and not CONF.cinder.cross_az_attach:
        notes.append(
            'Nova-api requests the zone of a volume that exists already: give '
            'it with --zone. ' + requests.option_note(
                'cross_az_attach', 'cinder'))
    requested = requests.requested_networks(args.networks, args.ports)
    image_meta = objects.ImageMeta.from_dict(image)
    affinity = hardware.get_pci_numa_policy_constraint(flavor, image_meta)
    pci_requests = requests.pci_requests(flavor, notes, affinity)
    metadata, resources, parameters = requests.port_resources(
        context, requested, None, notes, pci_requests, affinity)
    group = None
    if 'group' in hints:
        group = objects.InstanceGroup.get_by_uuid(context, hints['group'][0])
    spec = objects.RequestSpec.from_components(
        context, uuidutils.generate_uuid(), image, flavor,
        hardware.numa_get_constraints(flavor, image_meta), pci_requests,
        utils.build_filter_properties(hints, host, node, flavor),
        group, zone or None, project_id=args.project,
        port_resource_requests=resources, request_level_params=parameters)
    utils.setup_instance_group(context, spec)
    spec.num_instances = args.count
    spec.is_bfv = from_volume
    spec.requested_networks = requested
    if metadata:
        spec.network_metadata = metadata
    values = list[str]()
    for name in sorted(hints):
        values += ['%s=%s' % (name, value) for value in hints[name]]
    return requests.SchedulingRequest(
        spec=spec, operation=explanation.CREATE, notes=notes, about={
            'flavor': flavor.name, 'image': image.get('name'),
            'project': args.tenant or args.project, 'zone': zone, 'host': host,
            'node': node, 'networks': ', '.join(args.networks),
            'ports': ', '.join(args.ports), 'hints': ', '.join(values)})


def _zone(context: Any, zone: str) -> tuple[str, str | None, str | None]:
    """Return the availability zone, and the host and node that it forces."""
    if ':' not in zone:
        return zone or CONF.default_schedule_zone or '', None, None
    from nova.compute import api
    zone, host, node = api.API.parse_availability_zone(context, zone)
    # As nova-api, to which a node alone is in the default zone. Before nova
    # 33, eventlet patches Python if nova-api's own is imported.
    if (host or node) and zone != (
            availability_zones.get_host_availability_zone(context, host)):
        zone = ''
    return zone or '', host, node


def _require_inputs(project: str, from_volume: bool, image: dict[str, Any]
                    ) -> None:
    """Refuse a description that lacks what nova's request filters need."""
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
