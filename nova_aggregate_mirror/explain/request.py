# SPDX-License-Identifier: Apache-2.0
"""Requests on their way to nova-scheduler, and those of described servers.

Long because both kinds of requests, described and stored, share its parts.
"""

import argparse
from collections import abc
import contextlib
import dataclasses
import json
from typing import Any

from nova.api.openstack import api_version_request as compute_api
from nova import availability_zones
from nova import block_device
from nova.conf import CONF
from nova import context as nova_context
from nova import exception as nova_exception
from nova.network import neutron
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import moving
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import connections


@dataclasses.dataclass(kw_only=True)
class SchedulingRequest:
    """A request, and what is known about it."""

    spec: request_spec.RequestSpec
    operation: str
    """One of ``explanation.OPERATIONS``."""
    about: abc.Mapping[str, str | None] = dataclasses.field(
        default_factory=dict)
    """Its arguments, for display; those without a value are not shown."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Parts of the request that are not explained."""
    remarks: list[str] = dataclasses.field(default_factory=list)
    record: explanation.ServerRecord | None = None
    instance: Any = None
    """None if the server does not exist, or is in no cell."""
    stays: str = ''
    """Why it does not leave its host, so that nova-scheduler is not asked."""


@contextlib.contextmanager
def reading(context: Any, cell: Any) -> abc.Iterator[Any]:
    """Target a context at a cell; raise CellUnavailable if the cell fails."""
    try:
        with nova_context.target_cell(context, cell) as target:
            yield target
    except connections.ERRORS as exc:
        raise exceptions.CellUnavailable.of(
            driver_failures.of_database(exc),
            causes.cell(cells.full_name(cell))) from exc


def find_flavor(context: Any, name: str) -> Any:
    """Read a flavor by ID or name; raise UnknownName if there is none."""
    for find in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        with contextlib.suppress(nova_exception.FlavorNotFound):
            return find(context, name)
    raise exceptions.UnknownName('nova has no flavor with the name or ID %s; '
                                 'see "openstack flavor list --all"' % name)


def decoded(image: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Decode the properties about disks: JSON in glance, as nova does."""
    disks = 'block_device_mapping', 'mappings'
    return {**image, 'properties': {
        name: json.loads(value) if name in disks else value
        for name, value in image['properties'].items()}}


def can_unpin() -> bool:
    """Check whether the compute API changes the zone of a server."""
    return bool(compute_api.max_api_version() >= compute_api.APIVersionRequest(
        moving.UNPIN_VERSION))


def unpin(request: SchedulingRequest) -> str:
    """Return what unpins a server that exists from its zone."""
    if request.operation == explanation.CREATE or not request.record:
        return ''
    command = moving.unpin(
        str(request.about['server']), request.record.state, can_unpin())
    return 'unpin the server from its zone: ' + command if command else ''


def check_zone(context: Any, zone: str) -> None:
    """Raise UnknownName if nova has no such zone; an empty one is any."""
    names = {aggregate.metadata['availability_zone'] for aggregate
             in objects.AggregateList.get_by_metadata_key(
                 context, 'availability_zone')}
    # The second is the zone of nova's other services.
    names |= {CONF.default_availability_zone,
              CONF.internal_service_availability_zone}
    if zone and zone not in names:
        option = (' ([DEFAULT] default_schedule_zone)'
                  if zone == CONF.default_schedule_zone else '')
        raise exceptions.UnknownName(
            'nova has no availability zone %s%s, and refuses servers for it; '
            'it has %s' % (zone, option, plurals.some(names)))


def requested_networks(networks: abc.Iterable[str], ports: abc.Iterable[str]
                       ) -> Any:
    """Return nova's list of requested networks and ports, given by ID."""
    requested = [objects.NetworkRequest(network_id=uuid) for uuid in networks]
    requested += [objects.NetworkRequest(port_id=uuid) for uuid in ports]
    return objects.NetworkRequestList(objects=requested)


def port_resources(context: Any, networks: Any, server: str | None,
                   notes: list[str], pci_requests: Any = None,
                   affinity: str | None = None) -> tuple[Any, Any, Any]:
    """Read the resources that ports request; add a note if neutron fails.

    :param networks: requested networks and ports, instead of the server's
    :param pci_requests: those of a new server, to which nova adds the ports'
    :returns: the physical networks, a group for each port, and parameters of
        the whole request
    """
    metadata, groups, parameters = None, [], None
    # Of the others nova reads the physical network, not looked at here.
    ports = [port for port in networks if port.port_id]
    try:
        with neutron_translated('reading ports'):
            api = neutron.API()
            if networks or server is None:
                metadata, groups, parameters = api.create_resource_requests(
                    context, objects.NetworkRequestList(objects=ports),
                    pci_requests or objects.InstancePCIRequests(requests=[]),
                    affinity_policy=affinity)
            else:
                groups, parameters = api.get_requested_resource_for_instance(
                    context, server)
    except (nova_exception.NovaException, exceptions.MirrorError) as exc:
        reason = ' '.join(errors.without_secrets(str(exc)).split())
        notes.append('The resources of ports are not explained: ' + reason)
    return metadata, groups, parameters or objects.RequestLevelParams()


@contextlib.contextmanager
def neutron_translated(occasion: str) -> abc.Iterator[None]:
    """Translate errors of neutron and keystone to a MirrorError."""
    call = errors.Call(resources.party(CONF, resources.NETWORK), occasion)
    try:
        with errors.translated(call):
            yield
    except neutron.neutron_client_exc.NeutronException as exc:
        raise call.error(
            exceptions.ServiceFailed, causes.FAILED.with_detail(exc)) from exc


def pci_devices(flavor: Any, notes: list[str], affinity: str | None = None
                ) -> Any:
    """Return the PCI devices of a flavor; note the option that defines them.

    :raises InvalidConfiguration: an alias is not defined
    """
    note = option_note('alias', 'pci')
    try:
        requested = pci_request.get_pci_requests_from_flavor(
            flavor, affinity_policy=affinity)
    except nova_exception.PciRequestAliasNotDefined as exc:
        raise exceptions.InvalidConfiguration(
            'nova cannot build this request: %s' % exc, step=note) from exc
    if requested.requests:
        notes.append(note)
    return requested


def option_note(name: str, group: str | None = None) -> str:
    """Return a note on an option of nova-api that makes the request."""
    location = CONF.get_location(name, group)
    value = CONF[group][name] if group else CONF[name]
    return ('Nova-api decides by its [%s] %s, here %s (%s). If nova-api\'s '
            'file differs, give it with a further --config-file.' % (
                group or 'DEFAULT', name, value, location.detail
                if location and location.location.is_user_controlled
                else 'the default, which no file that was read changes'))


def of_description(context: Any, args: argparse.Namespace,
                   image: abc.Mapping[str, Any]) -> SchedulingRequest:
    """Build the request of a server that does not exist.

    :param args: those of ``cmd/explain``, with IDs instead of names
    :param image: as nova gets it from glance, or the part of it that is known
    :raises UnknownName: nova has no such flavor
    :raises InvalidConfiguration: an option of nova needs a further argument
    """
    image, hints = decoded(image), args.hints
    # A snapshot of a server that booted from a volume has a volume, too.
    root = block_device.get_root_bdm(
        image['properties'].get('block_device_mapping', [])) or {}
    from_volume = args.volume or root.get('destination_type') == 'volume'
    _require_inputs(args.project, from_volume, image)
    zone, host, node = _zone(context, args.zone)
    if host is None:
        # Nova-api checks no zone that is given with a host.
        check_zone(context, zone)
    flavor, notes = find_flavor(context, args.flavor), list[str]()
    if zone and not args.zone:
        notes.append(option_note('default_schedule_zone'))
    if from_volume and not zone and not CONF.cinder.cross_az_attach:
        notes.append(
            'Nova-api requests the zone of a volume that exists already: give '
            'it with --zone. ' + option_note('cross_az_attach', 'cinder'))
    requested = requested_networks(args.networks, args.ports)
    image_meta = objects.ImageMeta.from_dict(image)
    affinity = hardware.get_pci_numa_policy_constraint(flavor, image_meta)
    pci_requests = pci_devices(flavor, notes, affinity)
    metadata, groups, parameters = port_resources(
        context, requested, None, notes, pci_requests, affinity)
    group = None
    if 'group' in hints:
        group = objects.InstanceGroup.get_by_uuid(context, hints['group'][0])
    spec = objects.RequestSpec.from_components(
        context, uuidutils.generate_uuid(), image, flavor,
        hardware.numa_get_constraints(flavor, image_meta), pci_requests,
        utils.build_filter_properties(hints, host, node, flavor),
        group, zone or None, project_id=args.project,
        port_resource_requests=groups, request_level_params=parameters)
    utils.setup_instance_group(context, spec)
    spec.num_instances = args.count
    spec.is_bfv = from_volume
    spec.requested_networks = requested
    if metadata:
        spec.network_metadata = metadata
    values = list[str]()
    for name in sorted(hints):
        values += ['%s=%s' % (name, value) for value in hints[name]]
    return SchedulingRequest(
        spec=spec, operation=explanation.CREATE, notes=notes, about={
            'flavor': flavor.name, 'image': image.get('name'),
            'project': args.tenant or args.project, 'zone': zone, 'host': host,
            'node': node, 'networks': ', '.join(args.networks),
            'ports': ', '.join(args.ports), 'hints': ', '.join(values)})


def _zone(context: Any, zone: str) -> tuple[str, str | None, str | None]:
    """Return the availability zone, and the host and node that it forces."""
    if ':' not in zone:
        zone = zone or CONF.default_schedule_zone or ''
        return zone, None, None
    from nova.compute import api
    zone, host, node = api.API.parse_availability_zone(context, zone)
    # As nova-api's own check, for which a node without a host is in the
    # default zone. Before nova 33, its import lets eventlet patch Python.
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
