# SPDX-License-Identifier: Apache-2.0
"""Requests of servers that exist, and nova's record of what failed.

Long because each operation of nova changes a stored request in its own way.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
from typing import Any

from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.conf import CONF
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import utils
from nova.virt import hardware

from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import moving
from nova_aggregate_mirror.scheduler import request_spec

CREATE, UNSHELVE = explanation.CREATE, explanation.UNSHELVE
UNFINISHED = 'not finished'
"""The result of an event that still goes on."""
OPERATIONS = {operation: operation for operation in explanation.OPERATIONS}
OPERATIONS['live-migration'] = OPERATIONS.pop(moving.LIVE)
"""Actions for which nova-scheduler is asked, as an explanation calls them."""
DELETED = ('The server was deleted or is in no cell yet, so that its ports '
           'are not known and not explained.')
UNREAD = '%s; the server is in that cell: this is about its creation'
FAILED = ('The newest operation of the server, %s, failed at %s: this is '
          'about it.')
CHOSEN = ('The newest operation of the server did not fail: this is about %s, '
          'chosen by its state; --for chooses another.')
DONE = ('finished', 'confirming', 'confirmed', 'reverting', 'reverted',
        'completed', 'done')
BUILD = 'compute__do_build_and_run_instance'
KEPT_IMAGE = ('with the image that it has, nova rebuilds the server on its '
              'host; give another one with --image')
ON_ITS_HOST = ('the server is shelved and not offloaded, and nova starts it '
               'on its host')
LOST_HOST = ('nova has no longer host %s, which the evacuation that failed '
             'named; explain one without it: --for evacuate')
SAME_HOST = 'COMPUTE_SAME_HOST_COLD_MIGRATE'


@dataclasses.dataclass(kw_only=True)
class PreparedRequest(requests.SchedulingRequest):
    """A stored request on its way to nova-scheduler."""

    context: Any
    cell_context: Any
    """The same, targeted at the cell of the server, as in nova-conductor."""
    cell: Any
    networks: Any
    """Those that replace the server's, of ``requested_networks``."""
    placement: client.Client
    zone: str
    """The new one of an unshelve."""
    flavor: Any = None
    """The new one of a resize."""
    image: abc.Mapping[str, Any] | None = None
    """The new one of a rebuild, as nova gets it from glance."""
    host: str = ''
    """The host that was named for an evacuation."""
    has_failed: bool = False
    """Whether it was made before: the stored request has image and zone."""


def add_unstored(request: PreparedRequest) -> None:
    """Add what nova does not store: ``schedule_and_build_instances``."""
    if request.instance is not None:
        _fill_in(request)
    _read_port_resources(request)
    utils.setup_instance_group(request.context, request.spec)


def cold_migration(request: PreparedRequest) -> None:
    """Keep the flavor and leave the host: ``API.resize`` without a flavor."""
    request.spec.flavor = request.instance.flavor
    node = objects.ComputeNode.get_by_host_and_nodename(
        request.cell_context, request.instance.host, request.instance.node)
    # A server may move within the cluster of a vCenter, which is one host.
    if node.uuid not in request.placement.providers(required=SAME_HOST):
        leave_host(request)


def new_flavor(request: PreparedRequest) -> None:
    """Set the flavor, and what ``API.resize`` calculates from it."""
    spec = request.spec
    spec.flavor = request.flavor
    spec.numa_topology = hardware.numa_get_constraints(
        spec.flavor, request.instance.image_meta)
    pci_requests = requests.pci_devices(spec.flavor, request.notes)
    pci_requests.instance_uuid = request.instance.uuid
    previous = spec.pci_requests.requests if spec.pci_requests else ()
    of_port = objects.InstancePCIRequest.NEUTRON_PORT
    pci_requests.requests += [pci for pci in previous if pci.source == of_port]
    spec.pci_requests = pci_requests
    request.notes.append(requests.option_note('allow_resize_to_same_host'))
    if not CONF.allow_resize_to_same_host:
        leave_host(request)


def leave_host(request: PreparedRequest) -> None:
    """Leave the host: ``LiveMigrationTask``, ``API.evacuate`` and others."""
    request.spec.ignore_hosts = [request.instance.host]


def new_zone(request: PreparedRequest) -> None:
    """Set the zone: ``API.unshelve`` and ``unshelve_instance``."""
    if request.instance.vm_state == vm_states.SHELVED:
        request.stays = ON_ITS_HOST
    elif request.zone:
        requests.check_zone(request.context, request.zone)
        request.spec.availability_zone = request.zone
        if not CONF.cinder.cross_az_attach:
            note = requests.option_note('cross_az_attach', 'cinder')
            request.notes.append(note)


def new_image(request: PreparedRequest) -> None:
    """Set the new image, and require the host: ``API.rebuild``."""
    spec, instance, image = request.spec, request.instance, request.image
    if request.has_failed:
        # The request has the new image, and the server its former one again.
        is_kept = spec.image and 'id' in spec.image and (
            spec.image.id == instance.image_ref)
    else:
        is_kept = image is None or image.get('id') == instance.image_ref
    if is_kept:
        request.stays = KEPT_IMAGE
        return
    if not request.has_failed:
        spec.image = objects.ImageMeta.from_dict(image)
    spec.force_hosts, spec.force_nodes = [instance.host], [instance.node]
    spec.scheduler_hints = {**(spec.scheduler_hints or {}),
                            '_nova_check_type': ['rebuild']}


def move(request: PreparedRequest) -> None:
    """Reset the destination: ``MigrationTask``, ``LiveMigrationTask``..."""
    request.spec.reset_forced_destinations()
    _read_port_resources(request)
    stay_in_cell(request)


def stay_in_cell(request: PreparedRequest) -> None:
    """Forbid other cells: ``MigrationTask``, ``rebuild_instance``..."""
    # Nova's policy allows moves between cells to nobody, by default.
    request.spec.requested_destination = objects.Destination(
        allow_cross_cell_move=False, cell=request.cell)
    if request.host:
        try:
            nodes = objects.ComputeNodeList.get_all_by_host(
                request.cell_context, request.host)
        except nova_exception.ComputeHostNotFound as exc:
            raise exceptions.UnknownName(LOST_HOST % request.host) from exc
        request.spec.requested_destination.host = request.host
        # As ``API.evacuate``: only hosts of ironic, whose servers it refuses,
        # have several nodes.
        request.spec.requested_destination.node = nodes[0].hypervisor_hostname
    _fill_in(request)
    # The hosts of a server group are those in the cell of the server.
    utils.setup_instance_group(request.cell_context, request.spec)


def _read_port_resources(request: PreparedRequest) -> None:
    spec, server = request.spec, request.instance and request.instance.uuid
    _metadata, spec.requested_resources, spec.request_level_params = (
        requests.port_resources(
            request.context, request.networks, server, request.notes))
    spec.generate_request_groups_from_pci_requests()


def _fill_in(request: PreparedRequest) -> None:
    """Add fields that a release of nova before this one did not store."""
    request.spec.ensure_project_and_user_id(request.instance)
    request.spec.ensure_network_information(request.instance)
    compute_utils.heal_reqspec_is_bfv(
        request.cell_context, request.spec, request.instance)


Step = abc.Callable[[PreparedRequest], None]
PREPARATIONS: abc.Mapping[str, tuple[Step, ...]] = {
    'create': (add_unstored,),
    'migrate': (cold_migration, move),
    'resize': (new_flavor, move),
    'live-migrate': (leave_host, move),
    'evacuate': (leave_host, move),
    'unshelve': (new_zone, move),
    'rebuild': (stay_in_cell, new_image),
}
"""Operation to its steps, in nova's order; what nova refuses is not here."""


def of_server(context: Any, placement: client.Client, server: str,
              operation: str = '', flavor: str = '',
              image: abc.Mapping[str, Any] | None = None, zone: str = '',
              networks: abc.Sequence[str] = (), ports: abc.Sequence[str] = ()
              ) -> requests.SchedulingRequest:
    """Build the request of a server for an operation.

    :param operation: by default the newest one if it failed
    :param flavor: name or ID of the new one of a resize
    :param image: the new one of a rebuild, as nova gets it from glance
    :param networks: IDs; with the ports they replace those of the server
    :raises UnknownName: nova has no such server, or no readable request
    :raises CellUnavailable: its cell did not answer
    """
    spec = _stored(context, server)
    instance, cell, remarks = None, None, list[str]()
    try:
        instance, cell = _instance(context, server, operation)
    except exceptions.CellUnavailable as exc:
        if operation not in ('', CREATE):
            raise
        operation = CREATE
        remarks.append(UNREAD % exc)
    cell_context = nova_context.RequestContext.from_dict(context.to_dict())
    nova_context.set_target_cell(cell_context, cell)
    request = PreparedRequest(
        spec=spec, operation=operation or CREATE, context=context, cell=cell,
        cell_context=cell_context, instance=instance, zone=zone,
        networks=requests.requested_networks(networks, ports), remarks=remarks,
        record=instance and _record(cell_context, instance),
        notes=[] if instance or remarks else [DELETED], placement=placement)
    if instance and not operation:
        _choose(request)
    if request.operation != CREATE and (instance is None or (
            not instance.host and request.operation != UNSHELVE)):
        raise exceptions.UnknownName(
            'server %s is on no host, so that there is nothing to %s; use '
            '--for create to see why it has none' % (
                server, request.operation))
    if flavor:
        request.flavor = requests.find_flavor(context, flavor)
    request.image = image and requests.decoded(image)
    for step in PREPARATIONS[request.operation]:
        step(request)
    if 'is_bfv' not in spec:
        spec.is_bfv = False
    if request.networks:
        spec.requested_networks = request.networks
    request.notes += _notes(request)
    request.about = {
        'server': server, 'operation': request.operation,
        'host': instance and instance.host, 'flavor': spec.flavor.name,
        'project': spec.project_id, 'zone': spec.availability_zone}
    return request


def _choose(request: PreparedRequest) -> None:
    """Choose the newest operation if it failed, else one that nova takes."""
    instance = request.instance
    newest: Any = next((
        action for action in objects.InstanceActionList.get_by_instance_uuid(
            request.cell_context, instance.uuid)
        if action.action in OPERATIONS), None)
    migration = newest and _newest_migration(request.cell_context, newest)
    failed = newest and newest.message == 'Error' and OPERATIONS[newest.action]
    # A server that was shelved since is on no host to be moved from.
    can_repeat = instance.host or failed in (CREATE, UNSHELVE)
    # The action keeps its error if another host took the server in the end.
    is_done = migration and migration.status in DONE
    if failed and can_repeat and not is_done:
        request.operation, request.has_failed = failed, True
        request.remarks.append(FAILED % (
            failed, dates.iso(newest.start_time.timestamp())))
        if failed == 'resize':
            request.flavor = _new_flavor(request.context, migration)
        # Unless it has failed, nova-compute of the new host may set the host.
        if failed == 'evacuate' and migration and migration.status == 'error':
            request.host = migration.dest_compute or ''
        return
    if instance.vm_state in (vm_states.SHELVED, vm_states.SHELVED_OFFLOADED):
        request.operation = UNSHELVE
    elif instance.host:
        request.operation = moving.of_state(instance.vm_state) or moving.COLD
    request.remarks.append(CHOSEN % request.operation)


def _newest_migration(context: Any, action: Any) -> Any:
    """Read the newest migration since an action; None if there is none."""
    # Both times are whole seconds in MySQL, which rounds them.
    start = action.start_time - datetime.timedelta(seconds=1)
    newest = objects.MigrationList.get_by_filters(
        context, {'instance_uuid': action.instance_uuid}, limit=1)
    return next((migration for migration in newest
                 if migration.created_at >= start), None)


def _new_flavor(context: Any, migration: Any) -> Any:
    """Read the new flavor of a resize; the stored request has the old one."""
    if migration:
        with contextlib.suppress(nova_exception.FlavorNotFound):
            return objects.Flavor.get_by_id(
                context, migration.new_instance_type_id)
    raise exceptions.UnknownName(
        'nova has no longer the flavor of the resize that failed; give one '
        'with --for resize FLAVOR')


def _notes(request: PreparedRequest) -> abc.Iterator[str]:
    """Note what of a server is not known, and what misleads."""
    spec, instance = request.spec, request.instance
    if instance and not spec.requested_networks and (
            CONF.scheduler.query_placement_for_routed_network_aggregates):
        yield ('The networks of the server are not known, so that their '
               'segments are not explained: give --network or --port.')
    if request.record and not instance.host and any(
            entry.event.endswith(BUILD) and entry.result != UNFINISHED
            for entry in request.record.entries):
        yield ('Nova-compute built the server on hosts above and gave up. '
               'Nova calls that a success if it tried another host: see the '
               'nova-compute.log of each host for the reason.')
    if request.operation not in ('evacuate', 'rebuild'):
        yield ('Nova does not store a host that was named for the operation; '
               'it does for an evacuation only.')


def _record(context: Any, instance: Any) -> explanation.ServerRecord:
    """Read nova's record of a server in its cell: three queries."""
    stored = list(objects.InstanceFaultList.get_by_instance_uuids(
        context, [instance.uuid]))
    # The latest faults are first; each host that was tried leaves one.
    faults = [explanation.RecordEntry(
        dates.iso(fault.created_at.timestamp()), 'fault', fault.host or '',
        fault.message or '') for fault in stored[:10]]
    entries = faults[::-1]
    for action in objects.InstanceActionList.get_by_instance_uuid(
            context, instance.uuid, limit=1):
        events = list(objects.InstanceActionEventList.get_by_action(
            context, action.id))
        entries += [explanation.RecordEntry(
            dates.iso((event.finish_time or event.start_time).timestamp()),
            '%s: %s' % (action.action, event.event), event.host or '',
            event.result or UNFINISHED) for event in reversed(events)]
    # Times are whole seconds.
    entries.sort(key=lambda entry: entry.time)
    return explanation.ServerRecord(
        instance.vm_state or '', instance.task_state or '',
        faults[0].result if faults else '', entries)


class _ReadOnly(request_spec.RequestSpec):
    """A request that nova cannot save: reading an old one may do so."""

    def save(self) -> None:
        """Do nothing."""


def _stored(context: Any, server: str) -> request_spec.RequestSpec:
    instead = ('Describe the server with --flavor, --image, --project and '
               '--zone instead')
    try:
        spec = _ReadOnly.get_by_instance_uuid(context, server)
    except nova_exception.RequestSpecNotFound as exc:
        raise exceptions.UnknownName(
            'nova has no request of server %s: there is no such server, or '
            '"nova-manage db archive_deleted_rows" has removed it. %s'
            % (server, instead)) from exc
    except request_spec.UNREADABLE as exc:
        raise exceptions.UnknownName(
            'nova cannot read its request of server %s (%s). %s'
            % (server, type(exc).__name__, instead)) from exc
    # Nova does not store these; other fields not stored it reads as empty.
    spec.requested_resources = []
    spec.num_instances = 1
    return spec


def _instance(context: Any, server: str, operation: str) -> tuple[Any, Any]:
    """Read a server and its cell; None if nova has it in no cell."""
    attributes = ['flavor', 'info_cache']
    if operation in ('', 'resize'):
        # For a resize nova reads the image of the server.
        attributes.append('system_metadata')
    with contextlib.suppress(nova_exception.InstanceMappingNotFound,
                             nova_exception.InstanceNotFound):
        cell = objects.InstanceMapping.get_by_instance_uuid(
            context, server).cell_mapping
        if cell:
            with requests.reading(context, cell) as target:
                return objects.Instance.get_by_uuid(
                    target, server, expected_attrs=attributes), cell
    return None, None
