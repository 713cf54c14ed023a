# SPDX-License-Identifier: Apache-2.0
"""What nova changes in a stored request before it schedules, by operation."""

from collections import abc
import dataclasses
from typing import Any

from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.conf import CONF
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import utils
from nova.virt import hardware

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.placement import client

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


def read_again(request: PreparedRequest) -> None:
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
    before = spec.pci_requests and spec.pci_requests.requests or ()
    pci_requests.requests += [
        pci for pci in before
        if pci.source == objects.InstancePCIRequest.NEUTRON_PORT]
    spec.pci_requests = pci_requests
    request.notes.append(requests.option_note('allow_resize_to_same_host'))
    if not CONF.allow_resize_to_same_host:
        leave_host(request)


def leave_host(request: PreparedRequest) -> None:
    """Leave the host: ``LiveMigrationTask``, ``API.evacuate`` and others."""
    request.spec.ignore_hosts = [request.instance.host]


def offloaded(request: PreparedRequest) -> None:
    """Set the zone: ``API.unshelve`` and ``unshelve_instance``."""
    if request.instance.vm_state == vm_states.SHELVED:
        request.stays = ON_ITS_HOST
    elif request.zone:
        requests.check_zone(request.context, request.zone)
        request.spec.availability_zone = request.zone
        if not CONF.cinder.cross_az_attach:
            request.notes.append(
                requests.option_note('cross_az_attach', 'cinder'))


def new_image(request: PreparedRequest) -> None:
    """Set the new image, and require the host: ``API.rebuild``."""
    spec, instance, image = request.spec, request.instance, request.image
    if request.has_failed:
        # An image that nova-scheduler refuses is the server's no longer.
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
        # As ``API.evacuate``: only ironic has several, which evacuates none.
        request.spec.requested_destination.node = nodes[0].hypervisor_hostname
    _fill_in(request)
    # The hosts of a server group are those in the cell of the server.
    utils.setup_instance_group(request.cell_context, request.spec)


def _read_port_resources(request: PreparedRequest) -> None:
    spec = request.spec
    _metadata, spec.requested_resources, spec.request_level_params = (
        requests.port_resources(
            request.context, request.networks,
            request.instance and request.instance.uuid, request.notes))
    spec.generate_request_groups_from_pci_requests()


def _fill_in(request: PreparedRequest) -> None:
    request.spec.ensure_project_and_user_id(request.instance)
    request.spec.ensure_network_information(request.instance)
    compute_utils.heal_reqspec_is_bfv(
        request.cell_context, request.spec, request.instance)


Step = abc.Callable[[PreparedRequest], None]
PREPARATIONS: abc.Mapping[str, tuple[Step, ...]] = {
    'create': (read_again,),
    'migrate': (cold_migration, move),
    'resize': (new_flavor, move),
    'live-migrate': (leave_host, move),
    'evacuate': (leave_host, move),
    'unshelve': (offloaded, move),
    'rebuild': (stay_in_cell, new_image),
}
"""Operation to its steps, in nova's order; what nova refuses is not here."""
