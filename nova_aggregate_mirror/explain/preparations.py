# SPDX-License-Identifier: Apache-2.0
"""What nova-api and nova-conductor do to a stored request, by operation.

Each step names the methods of nova that do it. Nova's own methods are called
where they write nothing.

Long because the steps of all operations are here, next to their table.
"""

from collections import abc
import contextlib
import dataclasses
import shlex
import types
from typing import Any

from nova.compute import api
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.conductor import manager as conductor
from nova.conductor.tasks import live_migrate
from nova.conf import CONF
from nova import exception as nova_exception
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova import servicegroup
from nova import utils as nova_utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_aggregate_mirror.explain import api_internals
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import network_requests
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import requests
from nova_aggregate_mirror.placement import client

VOLUME_IMAGE = ('The image of the server\'s volume is not read: with that '
                'image nova rebuilds the server without nova-scheduler; it '
                'refuses another one before API 2.93.')
KEPT_IMAGE = ('With the image that it has, nova rebuilds the server on its '
              'host without nova-scheduler. Give another image with --image.')
ONE_ZONE = ('Nova-api refuses a zone other than that of the server\'s volumes '
            '([cinder] cross_az_attach is False).')
ONLY_COMPUTE = ('Whether processor, disks and networks of a host allow the '
                'live migration, only its nova-compute knows.')
SAME_HOST = 'COMPUTE_SAME_HOST_COLD_MIGRATE'
_OTHER_FLAVOR = 'resize to another flavor'
# By the attribute of a server that nova refuses.
_STATES = {'task_state': 'wait until its task has ended',
           'power_state': 'migrate the server cold'}
ON_ITS_HOST = ('The server is shelved and not offloaded: nova starts it on '
               'its host without nova-scheduler.')


@dataclasses.dataclass(kw_only=True)
class PreparedRequest(requests.SchedulingRequest):
    """A stored request on its way to nova-scheduler."""

    context: Any
    """Nova's context of an administrator."""
    cell_context: Any
    """The same, targeted at the cell of the server, as in nova-conductor."""
    instance: Any
    """None if it is in no cell."""
    cell: Any
    networks: Any
    """Those that replace the server's, of ``network_requests``."""
    placement: client.Client
    flavor: Any
    """The new one of a resize."""
    image: abc.Mapping[str, Any] | None
    """The new one of a rebuild, as nova gets it from glance."""

    @contextlib.contextmanager
    def checked_by(self, service: str, method: str = '') -> abc.Iterator[None]:
        """Note that checks refuse the state of the server, or of its host.

        :param method: of nova-api, for the states that it requires
        """
        host = self.instance.host
        with self.refused_by(service):
            try:
                yield
            except nova_exception.InstanceInvalidState as exc:
                # Its text may name a method that operations have in common.
                attribute, state = exc.kwargs['attr'], exc.kwargs['state']
                self.refuse(
                    service, 'the server is in %s %s' % (attribute, state),
                    _STATES.get(attribute, '') if attribute != 'vm_state' else
                    'nova requires ' + ' or '.join(
                        api_internals.states(method)))
            except nova_exception.ServiceUnavailable:
                down = reasons.of_down(
                    self.service.forced_down).with_host(host)
                self.refuse(
                    service, 'the nova-compute of %s is %s' % (
                        host, down.phrase), '%s; if the host is lost, '
                    'evacuate the server' % down.advice)
            except IndexError:
                # Nova-api fails with this, too.
                self.refuse(service, 'host %s is %s' % (
                    host, reasons.NO_SERVICE.phrase),
                    reasons.NO_SERVICE.advice)

    def stay(self, *notes: str) -> None:
        """Keep the server on its host, without nova-scheduler."""
        self.stays_on = self.instance.host, self.instance.node
        self.notes += notes

    @property
    def service(self) -> Any:
        """The nova-compute of the server's host."""
        return [service for service in self.instance.services
                if service.binary == 'nova-compute'][0]


Step = abc.Callable[[PreparedRequest], None]


def read_again(request: PreparedRequest) -> None:
    """Add what nova does not store: ``schedule_and_build_instances``."""
    if request.instance is not None:
        _fill_in(request)
    _read_port_resources(request)
    utils.setup_instance_group(request.context, request.spec)


def checks(method: str) -> Step:
    """Return the step of the decorators of a method of ``API``."""
    def check(request: PreparedRequest) -> None:
        with request.checked_by('nova-api', method):
            api_internals.checks(method)(request.context, request.instance)

    return check


def cold_migration(request: PreparedRequest) -> None:
    """Keep the flavor and leave the host: ``API.resize`` without a flavor.

    The host of a vCenter is a cluster, within which a server may move.
    """
    request.spec.flavor = request.instance.flavor
    node = source_node(request, 'nova-api')
    if not node or node.uuid not in request.placement.having(SAME_HOST):
        request.spec.ignore_hosts = [request.instance.host]


def new_flavor(request: PreparedRequest) -> None:
    """Set the flavor, and what ``API.resize`` calculates from it."""
    spec = request.spec
    spec.flavor = request.flavor
    with request.refused_by('nova-api', _OTHER_FLAVOR):
        spec.numa_topology = hardware.numa_get_constraints(
            spec.flavor, request.instance.image_meta)
        pci_requests = pci_request.get_pci_requests_from_flavor(spec.flavor)
        pci_requests.instance_uuid = request.instance.uuid
        before = spec.pci_requests and spec.pci_requests.requests or ()
        pci_requests.requests += [
            pci for pci in before
            if pci.source == objects.InstancePCIRequest.NEUTRON_PORT]
        spec.pci_requests = pci_requests
    request.notes.append(
        requests.api_option_note('allow_resize_to_same_host'))
    if not CONF.allow_resize_to_same_host:
        spec.ignore_hosts = [request.instance.host]


def fitting_flavor(request: PreparedRequest) -> None:
    """Refuse a flavor that the server cannot get: ``API.resize``."""
    old, new = request.instance.flavor, request.flavor
    for refused, reason in (
            (new.flavorid == old.flavorid, 'the server has this flavor'),
            (new.disabled, 'the flavor is disabled'),
            ('accel:device_profile' in new.extra_specs,
             'the flavor has accelerators'),
            (not new.root_gb and old.root_gb and not request.spec.is_bfv,
             'the flavor has no root disk, and that of the server is no '
             'volume')):
        if refused:
            request.refuse('nova-api', reason, _OTHER_FLAVOR)
    with request.refused_by('nova-api', _OTHER_FLAVOR):
        api_internals.check_image(
            nova_utils.get_image_from_system_metadata(
                request.instance.system_metadata), new, request.spec.is_bfv)


def source_node(request: PreparedRequest, service: str = 'nova-conductor'
                ) -> Any:
    """Read the node to leave, as ``MigrationTask`` does."""
    with request.refused_by(service, requests.NODE):
        return objects.ComputeNode.get_by_host_and_nodename(
            request.cell_context, request.instance.host,
            request.instance.node)


def live_migration(request: PreparedRequest) -> None:
    """Leave the host, and check what ``LiveMigrationTask`` checks."""
    task = live_migrate.LiveMigrationTask(
        request.cell_context, request.instance, *[None] * 8)
    # Neutron has it since its release 13.
    task.network_api.has_port_binding_extension = lambda _context: True
    request.spec.ignore_hosts = [task.source]
    request.notes.append(ONLY_COMPUTE)
    with request.checked_by('nova-conductor'):
        task._check_instance_is_active()
        # As ``_check_host_is_up`` does, with one query more.
        if not servicegroup.API().service_is_up(request.service):
            raise nova_exception.ServiceUnavailable()
    with request.refused_by('nova-conductor', _STATES['power_state']):
        task._check_can_migrate_pci(task.source, task.source)

    def refuses_host(state: Any, source: Any) -> str:
        task._get_compute_info = {task.source: source, state.host: state}.get
        try:
            task._check_compatible_with_source_hypervisor(state.host)
        except nova_exception.Invalid as exc:
            return str(exc)
        return ''

    request.source, request.refuses_host = task.source, refuses_host


def lost_host(request: PreparedRequest) -> None:
    """Leave the host, whose nova-compute must be down: ``API.evacuate``."""
    host = request.instance.host
    request.spec.ignore_hosts = [host]
    with request.checked_by('nova-api'):
        if servicegroup.API().service_is_up(request.service):
            request.refuse(
                'nova-api', 'the nova-compute of %s is up' % host, 'migrate '
                'the server; only if the host is lost: openstack compute '
                'service set --down %s nova-compute' % shlex.quote(host))


def offloaded(request: PreparedRequest) -> None:
    """Set the zone: ``API.unshelve`` and ``unshelve_instance``."""
    if request.instance.vm_state == vm_states.SHELVED:
        request.stay(*[] if request.zone else [ON_ITS_HOST])
        if request.zone:
            request.refuse('nova-api', 'the server is not offloaded, and '
                           'stays in its zone', 'unshelve it without a zone')
    if request.zone:
        request.spec.availability_zone = request.zone
        if not CONF.cinder.cross_az_attach:
            request.notes.append(ONE_ZONE)


def new_image(request: PreparedRequest) -> None:
    """Set the new image, and require the host: ``API.rebuild``."""
    spec, instance, image = request.spec, request.instance, request.image
    if image is None:
        return request.stay(KEPT_IMAGE)
    replaced = image.get('id') != instance.image_ref
    with request.refused_by('nova-api', 'use another image'):
        api_internals.check_image(image, instance.flavor, spec.is_bfv)
        if replaced:
            api.API._validate_numa_rebuild(instance, image, instance.flavor)
    if not replaced:
        return request.stay(KEPT_IMAGE)
    if spec.is_bfv:
        request.notes.append(VOLUME_IMAGE)
    spec.force_hosts, spec.force_nodes = [instance.host], [instance.node]
    spec.scheduler_hints = {**(spec.scheduler_hints or {}),
                            '_nova_check_type': ['rebuild']}
    spec.image = objects.ImageMeta.from_dict(image)
    required = spec.image.properties.get('traits_required')
    if required:
        with request.refused_by('nova-conductor', 'use an image that does not '
                                'require %s' % ', '.join(required)):
            _check_image_traits(request)


def _check_image_traits(request: PreparedRequest) -> None:
    """Refuse traits that no provider has: ``rebuild_instance``."""
    traits = candidates.CandidateReader(request.placement).traits(
        request.instance.uuid)
    # Nova's own client would create a provider that placement lacks.
    tree = types.SimpleNamespace(data=lambda provider: types.SimpleNamespace(
        traits=traits[provider]))
    task = types.SimpleNamespace(
        image_api=types.SimpleNamespace(get=lambda *_image: request.image),
        report_client=types.SimpleNamespace(
            get_allocations_for_consumer=lambda *_server: traits,
            get_provider_tree_and_ensure_root=lambda *_provider: tree))
    conductor.ComputeTaskManager._validate_image_traits_for_rebuild(
        task, request.cell_context, request.instance,
        uuidutils.generate_uuid())


def move(request: PreparedRequest) -> None:
    """Reset the destination: ``MigrationTask``, ``LiveMigrationTask``..."""
    request.spec.reset_forced_destinations()
    _read_port_resources(request)
    stay_in_cell(request)


def stay_in_cell(request: PreparedRequest) -> None:
    """Forbid other cells: ``MigrationTask``, ``rebuild_instance`` and others.

    Nova's policy allows moves between cells to nobody, by default. The hosts
    of a server group are those in the cell of the server.
    """
    request.spec.requested_destination = objects.Destination(
        allow_cross_cell_move=False, cell=request.cell)
    _fill_in(request)
    utils.setup_instance_group(request.cell_context, request.spec)


def _read_port_resources(request: PreparedRequest) -> None:
    spec = request.spec
    spec.requested_resources, spec.request_level_params = (
        network_requests.port_resources(
            request.context, request.networks,
            request.instance and request.instance.uuid, request.notes))
    spec.generate_request_groups_from_pci_requests()


def _fill_in(request: PreparedRequest) -> None:
    request.spec.ensure_project_and_user_id(request.instance)
    request.spec.ensure_network_information(request.instance)
    compute_utils.heal_reqspec_is_bfv(
        request.cell_context, request.spec, request.instance)


PREPARATIONS: abc.Mapping[str, tuple[Step, ...]] = {
    'create': (read_again,),
    'migrate': (checks('resize'), cold_migration, move),
    'resize': (checks('resize'), new_flavor, move, fitting_flavor,
               source_node),
    'live-migrate': (checks('live_migrate'), move, live_migration),
    'evacuate': (checks('evacuate'), lost_host, move),
    'unshelve': (checks('unshelve'), offloaded, move),
    'rebuild': (checks('rebuild'), stay_in_cell, new_image),
}
"""Operation to its steps, in nova's order."""
