# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts and their requests, as nova stores them."""

import datetime
from typing import Any

from nova import context as nova_context
from nova.network import model
from nova import objects

PROJECT = '0a3f6d2c8b5e47d19c0e4b7a6f1d2e3c'


def create_flavor(name: str = 'm1.small', vcpus: int = 1, **extra_specs: str
                  ) -> objects.Flavor:
    flavor = objects.Flavor(
        nova_context.get_admin_context(), name=name, flavorid=name,
        vcpus=vcpus, memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, disabled=False, is_public=True,
        extra_specs=extra_specs, projects=[])
    flavor.create()
    return flavor


def create_server(nova: Any, flavor: objects.Flavor, host: str,
                  cell: str = 'cell1', zone: str = 'az1',
                  stored: bool = True, name: str = 'web',
                  state: str = 'active') -> str:
    """Create a server on a host, and its request; return its UUID."""
    with nova.in_cell(cell) as context:
        placed = _node(context, host)
        server = objects.Instance(
            context, host=host, **placed, project_id=PROJECT, user_id='user',
            display_name=name, hostname=name, vm_state=state, power_state=0,
            flavor=flavor, availability_zone=zone or None, image_ref='',
            kernel_id='', ramdisk_id='', config_drive='', reservation_id='r-1',
            root_device_name='/dev/vda', launch_index=0, locked=False,
            system_metadata={}, info_cache=objects.InstanceInfoCache(
                network_info=model.NetworkInfo()),
            launched_at=datetime.datetime(
                2026, 1, 1, tzinfo=datetime.timezone.utc))
        server.create()
    everywhere = nova_context.get_admin_context()
    objects.InstanceMapping(
        everywhere, instance_uuid=server.uuid, project_id=PROJECT,
        user_id='user', cell_mapping=nova.cell(cell),
        queued_for_delete=False).create()
    if stored:
        objects.RequestSpec.from_components(
            everywhere, server.uuid, {'properties': {}}, flavor, None, None,
            {}, None, zone or None, project_id=PROJECT).create()
    uuid: str = server.uuid
    return uuid


def _node(context: Any, host: str) -> dict[str, Any]:
    """Return the attributes by which a server refers to its compute node."""
    for node in objects.ComputeNodeList.get_all(context):
        if node.host == host:
            return {'node': node.hypervisor_hostname, 'compute_id': node.id}
    return {}
