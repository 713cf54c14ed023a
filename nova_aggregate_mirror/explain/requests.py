# SPDX-License-Identifier: Apache-2.0
"""Requests as nova-scheduler gets them: of a server, or a description.

Long because nova-api and nova-conductor prepare a request in many small steps.
"""

from collections import abc
import dataclasses
import json
from typing import Any

from nova import block_device
from nova.compute import utils as compute_utils
from nova.conf import CONF
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import network_requests
from nova_aggregate_mirror.explain import server_record
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import request_spec

CREATE, REBUILD, RESIZE = 'create', 'rebuild', 'resize'
LIVE_MIGRATE, UNSHELVE = 'live-migrate', 'unshelve'
# Operations in which nova leaves out the host of the server.
_LEAVING = ('migrate', LIVE_MIGRATE, 'evacuate', RESIZE)
# The event of a host that builds a server.
BUILD = 'compute__do_build_and_run_instance'
# Image properties about the disks of a server.
_DEVICES = ('block_device_mapping', 'mappings')


@dataclasses.dataclass(frozen=True)
class PreparedRequest:
    """A request, and what is known about it."""

    spec: request_spec.RequestSpec
    about: abc.Mapping[str, str]
    """Its arguments, for display."""
    notes: abc.Sequence[str] = ()
    """Parts of the request that are not explained."""
    record: explanation.ServerRecord | None = None
    """Of the server whose request this is."""


@dataclasses.dataclass(frozen=True)
class ServerDescription:
    """A server that does not exist."""

    flavor: str
    """Name or ID."""
    image: abc.Mapping[str, Any]
    """As nova gets it from glance, or the part of it that is known."""
    from_volume: bool = False
    """Whether its root disk is a volume."""
    project: str = ''
    zone: str = ''
    networks: abc.Sequence[str] = ()
    ports: abc.Sequence[str] = ()
    hints: abc.Mapping[str, abc.Sequence[str]] = dataclasses.field(
        default_factory=dict)
    count: int = 1


def described(context: Any, server: ServerDescription) -> PreparedRequest:
    """Build the request of a server that does not exist.

    :raises UnknownName: when nova has no such flavor, server group or zone
    :raises InvalidConfiguration: an option of nova needs a further argument
    """
    image = _decoded(server.image)
    from_volume = server.from_volume or _boots_from_volume(image)
    _check(server.project, from_volume, image)
    zone, forced = _zone(context, server.zone)
    flavor = _flavor(context, server.flavor)
    meta = objects.ImageMeta.from_dict(image)
    notes = [] if server.zone or not zone else [
        _of_api('default_schedule_zone')]
    spec = objects.RequestSpec.from_components(
        context, uuidutils.generate_uuid(), image, flavor,
        hardware.numa_get_constraints(flavor, meta),
        pci_request.get_pci_requests_from_flavor(flavor),
        {**forced, 'scheduler_hints': {
            name: list(values) for name, values in server.hints.items()}},
        _group(context, server.hints), zone or None, project_id=server.project)
    utils.setup_instance_group(context, spec)
    spec.num_instances = server.count
    spec.is_bfv = from_volume
    network_requests.complete(
        context, spec, None, server.networks, server.ports, notes)
    about = {'flavor': flavor.name, 'image': image.get('name') or '',
             'project': server.project, 'zone': zone,
             **{name.removeprefix('force_').removesuffix('s'): value
                for name, [value] in forced.items()},
             'networks': ', '.join(server.networks),
             'ports': ', '.join(server.ports),
             'hints': ', '.join(
                 '%s=%s' % (name, value)
                 for name, values in sorted(server.hints.items())
                 for value in values)}
    return PreparedRequest(spec, _present(about), notes)


def of_server(context: Any, server: str, operation: str, flavor: str = '',
              networks: abc.Sequence[str] = (), ports: abc.Sequence[str] = ()
              ) -> PreparedRequest:
    """Build the request of a server for an operation.

    :raises UnknownName: when nova has no such server, or no readable request
    """
    spec = _stored(context, server)
    notes: list[str] = []
    record = None
    instance, cell = _instance(context, server)
    about = {'server': server, 'operation': operation}
    if operation != CREATE and (instance is None or (
            not instance.host and operation != UNSHELVE)):
        raise exceptions.UnknownName(
            'server %s is on no host, so that there is nothing to %s; use '
            '--for create to see why it has none' % (server, operation))
    if instance is None:
        notes.append('The server was deleted or is in no cell yet, so that '
                     'its ports are not known and not explained.')
    else:
        # As nova-conductor does: nova 17.0 and earlier did not store it.
        with nova_context.target_cell(context, cell) as target:
            compute_utils.heal_reqspec_is_bfv(target, spec, instance)
            record = server_record.read(target, instance)
        if not instance.host and any(
                entry.event.endswith(BUILD)
                and entry.result != server_record.UNFINISHED
                for entry in record.entries):
            notes.append(
                'Nova-compute built the server on hosts above and gave up. '
                'Nova calls that a success if it tried another host: see the '
                'nova-compute.log of each host for the reason.')
    _defaults(spec)
    if (spec.flavor.extra_specs or {}).get('accel:device_profile'):
        notes.append('Accelerators of the device profile are not explained.')
    if instance is not None:
        about['host'] = instance.host or ''
        spec.ensure_project_and_user_id(instance)
    if utils.request_is_rebuild(spec):
        notes.append('The server was created with the scheduler hint '
                     '_nova_check_type=rebuild, which only nova may set: '
                     'nova-scheduler queries no placement and allocates no '
                     'resources for it.')
    if operation == CREATE:
        notes.append('Nova does not store a host that was requested for the '
                     'creation (API 2.74).')
    else:
        _prepare(spec, instance, cell, operation)
    if operation == RESIZE:
        notes.append(_of_api('allow_resize_to_same_host'))
    if flavor:
        _resize(context, spec, instance, flavor)
    network_requests.complete(
        context, spec, instance, networks, ports, notes)
    spec.generate_request_groups_from_pci_requests()
    utils.setup_instance_group(context, spec)
    about['flavor'] = spec.flavor.name
    about['project'] = spec.project_id or ''
    about['zone'] = spec.availability_zone or ''
    return PreparedRequest(spec, _present(about), notes, record)


def _of_api(option: str) -> str:
    """Name an option that nova-api reads, and the value that was read here."""
    return ('Nova-api decides by its [DEFAULT] %s, which is %s in the '
            'configuration that was read here; give nova-api\'s own with '
            '--config-file if that differs.' % (option, CONF[option]))


def _zone(context: Any, zone: str) -> tuple[str, dict[str, list[str]]]:
    """Return the availability zone, and the host and node that it forces.

    As in nova-api, a zone may be followed by a host and a node, separated by
    colons; with a host, nova does not check that the zone exists.
    """
    name: str = zone or CONF.default_schedule_zone or ''
    forced: dict[str, list[str]] = {}
    if ':' in zone:
        # It takes long to import, and few requests need it.
        from nova.compute import api
        name, host, node = api.API.parse_availability_zone(context, zone)
        forced = {option: [value] for option, value in (
            ('force_hosts', host), ('force_nodes', node)) if value}
        if host is not None:
            return name or '', forced
    zones = {CONF.default_availability_zone} | {
        aggregate.metadata['availability_zone']
        for aggregate in objects.AggregateList.get_by_metadata_key(
            context, 'availability_zone')}
    if name and name not in zones:
        raise exceptions.UnknownName(
            'nova has no availability zone %s%s, and refuses servers for it; '
            'it has %s' % (
                name, '' if zone else ' ([DEFAULT] default_schedule_zone)',
                plurals.some(zones)))
    return name or '', forced


def _decoded(image: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Decode the properties that are JSON in glance, as nova does."""
    return {**image, 'properties': {
        name: json.loads(value) if name in _DEVICES else value
        for name, value in image['properties'].items()}}


def _boots_from_volume(image: abc.Mapping[str, Any]) -> bool:
    """Check whether nova-api creates the root disk of an image as a volume.

    The image is then a snapshot of a server whose root disk was a volume.
    """
    properties = image['properties']
    devices = properties.get('block_device_mapping', [])
    if not properties.get('bdm_v2'):
        devices = block_device.from_legacy_mapping(
            devices, None, block_device.properties_root_device_name(
                properties))
    root = block_device.get_root_bdm(devices)
    return bool(root and root.get('destination_type') == 'volume')


def _check(project: str, from_volume: bool, image: dict[str, Any]) -> None:
    """Check what nova's request filters read of a request."""
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


class _ReadOnly(request_spec.RequestSpec):
    """A request that nova cannot save: reading an old one may do so."""

    def save(self) -> None:
        """Do nothing."""


def _stored(context: Any, server: str) -> request_spec.RequestSpec:
    """Read the request of a server, as nova-scheduler gets it."""
    instead = ('Describe the server with --flavor, --image, --project and '
               '--zone instead')
    try:
        spec: request_spec.RequestSpec = _ReadOnly.get_by_instance_uuid(
            context, server)
    except nova_exception.RequestSpecNotFound as exc:
        raise exceptions.UnknownName(
            'nova has no request of server %s: there is no such server, or '
            '"nova-manage db archive_deleted_rows" has removed it. %s'
            % (server, instead)) from exc
    except request_spec.UNREADABLE as exc:
        raise exceptions.UnknownName(
            'nova cannot read its request of server %s (%s). %s'
            % (server, type(exc).__name__, instead)) from exc
    return spec


def _prepare(spec: Any, instance: Any, cell: Any, operation: str) -> None:
    """Change a request as nova does before it moves or rebuilds a server."""
    if operation == REBUILD:
        spec.requested_destination = objects.Destination(
            host=instance.host, node=instance.node, cell=cell)
        spec.force_hosts, spec.force_nodes = [instance.host], [instance.node]
        spec.scheduler_hints = {**(spec.scheduler_hints or {}),
                                '_nova_check_type': ['rebuild']}
        return
    spec.reset_forced_destinations()
    spec.requested_destination = objects.Destination(cell=cell)
    if operation in _LEAVING and not (
            operation == RESIZE and CONF.allow_resize_to_same_host):
        spec.ignore_hosts = [instance.host]


def _resize(context: Any, spec: Any, instance: Any, name: str) -> None:
    spec.flavor = _flavor(context, name)
    spec.numa_topology = hardware.numa_get_constraints(
        spec.flavor, instance.image_meta)
    requests = pci_request.get_pci_requests_from_flavor(spec.flavor)
    requests.requests += [
        request for request in (
            spec.pci_requests.requests if spec.pci_requests else []) or []
        if request.source == objects.InstancePCIRequest.NEUTRON_PORT]
    spec.pci_requests = requests


def _defaults(spec: Any) -> None:
    """Set the fields that nova does not store, or an old nova had not."""
    for name, value in (
            ('requested_destination', None), ('requested_resources', []),
            ('request_level_params', objects.RequestLevelParams()),
            ('ignore_hosts', None), ('retry', None), ('force_hosts', None),
            ('force_nodes', None), ('limits', None), ('scheduler_hints', {}),
            ('instance_group', None), ('is_bfv', False),
            ('requested_networks', objects.NetworkRequestList(objects=[]))):
        if name not in spec:
            setattr(spec, name, value)
    spec.requested_resources = spec.requested_resources or []
    spec.num_instances = 1


def _instance(context: Any, server: str) -> tuple[Any, Any]:
    """Read a server and its cell; None if nova has it in no cell."""
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, server)
        if mapping.cell_mapping is None:
            return None, None
        with nova_context.target_cell(
                context, mapping.cell_mapping) as target:
            return objects.Instance.get_by_uuid(
                target, server, expected_attrs=[
                    'flavor', 'info_cache', 'pci_requests', 'numa_topology',
                    'system_metadata']), mapping.cell_mapping
    except (nova_exception.InstanceMappingNotFound,
            nova_exception.InstanceNotFound):
        return None, None


def _group(context: Any, hints: abc.Mapping[str, abc.Sequence[str]]) -> Any:
    """Read the server group of a hint."""
    if 'group' not in hints:
        return None
    [uuid] = hints['group'][:1]
    try:
        return objects.InstanceGroup.get_by_uuid(context, uuid)
    except nova_exception.InstanceGroupNotFound as exc:
        raise exceptions.UnknownName(
            'nova has no server group %s; see "openstack server group list '
            '--all-projects"' % uuid) from exc


def _flavor(context: Any, name: str) -> Any:
    for find in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        try:
            return find(context, name)
        except nova_exception.FlavorNotFound:
            continue
    raise exceptions.UnknownName(
        'nova has no flavor with the name or ID %s; see "openstack flavor '
        'list --all"' % name)


def _present(about: abc.Mapping[str, str]) -> abc.Mapping[str, str]:
    return {name: value for name, value in about.items() if value}
