# SPDX-License-Identifier: Apache-2.0
"""Requests as nova-scheduler gets them: of a server, or a description.

Long because each kind of request is built from the same parts.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

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
from nova_aggregate_mirror.explain import creation
from nova_aggregate_mirror.explain import network_requests
from nova_aggregate_mirror.scheduler import request_spec

CREATE, REBUILD, RESIZE = 'create', 'rebuild', 'resize'
LIVE_MIGRATE, UNSHELVE = 'live-migrate', 'unshelve'
# Operations in which nova leaves out the host of the server.
_LEAVING = ('migrate', LIVE_MIGRATE, 'evacuate', RESIZE)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A request, and what is known about it."""

    spec: request_spec.RequestSpec
    about: Mapping[str, str]
    """What was asked for, for display."""
    notes: Sequence[str] = ()
    """What the request may have had that is not explained."""


@dataclasses.dataclass(frozen=True)
class Description:
    """A server that does not exist."""

    flavor: str
    """Name or ID."""
    image: Mapping[str, Any]
    """As nova gets it from glance, or the part of it that is known."""
    from_volume: bool = False
    """Whether its root disk is a volume."""
    project: str = ''
    zone: str = ''
    networks: Sequence[str] = ()
    ports: Sequence[str] = ()
    hints: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict)
    count: int = 1


def described(context: Any, one: Description) -> Prepared:
    """Build the request of a server that does not exist.

    :raises UnknownName: when nova has no such flavor, server group or zone
    :raises InvalidConfiguration: an option of nova needs a further argument
    """
    image = creation.decoded(one.image)
    from_volume = one.from_volume or creation.boots_from_volume(image)
    creation.check(one.project, from_volume, image)
    zone = creation.zone(context, one.zone)
    flavor = _flavor(context, one.flavor)
    meta = objects.ImageMeta.from_dict(image)
    notes: list[str] = []
    spec = objects.RequestSpec.from_components(
        context, uuidutils.generate_uuid(), image, flavor,
        hardware.numa_get_constraints(flavor, meta),
        pci_request.get_pci_requests_from_flavor(flavor),
        {'scheduler_hints': {name: list(values)
                             for name, values in one.hints.items()}},
        _group(context, one.hints), zone or None, project_id=one.project)
    utils.setup_instance_group(context, spec)
    spec.num_instances = one.count
    spec.is_bfv = from_volume
    network_requests.complete(
        context, spec, None, one.networks, one.ports, notes)
    about = {'flavor': flavor.name, 'image': image.get('name') or '',
             'project': one.project, 'zone': zone,
             'networks': ', '.join(one.networks),
             'ports': ', '.join(one.ports),
             'hints': ', '.join('%s=%s' % (name, value)
                                for name, values in sorted(one.hints.items())
                                for value in values)}
    return Prepared(spec, _present(about), notes)


def of_server(context: Any, server: str, operation: str, flavor: str = '',
              networks: Sequence[str] = (), ports: Sequence[str] = ()
              ) -> Prepared:
    """Build the request of a server for an operation.

    :param flavor: of a resize, name or ID
    :raises UnknownName: when nova has no such server, or no readable request
    """
    spec = _stored(context, server)
    notes: list[str] = []
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
    if flavor:
        _resize(context, spec, instance, flavor)
    network_requests.complete(
        context, spec, instance, networks, ports, notes)
    spec.generate_request_groups_from_pci_requests()
    utils.setup_instance_group(context, spec)
    about['flavor'] = spec.flavor.name
    about['project'] = spec.project_id or ''
    about['zone'] = spec.availability_zone or ''
    return Prepared(spec, _present(about), notes)


class _ReadOnly(request_spec.RequestSpec):
    """A request that nova cannot save: reading an old one may do so."""

    def save(self) -> None:
        """Do nothing."""


def _stored(context: Any, server: str) -> request_spec.RequestSpec:
    """Read the request of a server, as nova-scheduler gets it.

    :raises UnknownName: when nova has no such server, or no readable request
    """
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
        one for one in (spec.pci_requests.requests if spec.pci_requests
                        else []) or []
        if one.source == objects.InstancePCIRequest.NEUTRON_PORT]
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


def _group(context: Any, hints: Mapping[str, Sequence[str]]) -> Any:
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


def _present(about: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in about.items() if value}
