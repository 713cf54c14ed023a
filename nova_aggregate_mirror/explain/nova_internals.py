# SPDX-License-Identifier: Apache-2.0
"""Internals of nova-scheduler that an explanation relies on."""

import contextlib

from nova.objects import request_spec as objects
from nova.scheduler import host_manager
from nova.scheduler import manager

from nova_aggregate_mirror import nova_signatures
from nova_aggregate_mirror.scheduler import free_addresses
from nova_aggregate_mirror.scheduler import request_spec

# Methods that are called or overridden and are not public in nova.
PARAMETERS = {
    host_manager.HostManager: {
        '_get_computes_for_cells': [
            'self', 'context', 'cells', 'compute_uuids'],
        '_get_host_states': ['self', 'context', 'compute_nodes', 'services'],
        '_get_instance_info': ['self', 'context', 'compute'],
        '_init_instance_info': ['self', 'computes_by_cell'],
    },
    manager.SchedulerManager: {
        '_consume_selected_host': [
            'selected_host', 'spec_obj', 'instance_uuid'],
    },
}


def check() -> None:
    """Check the installed nova against the internals relied on.

    :raises UnexpectedNova: lists all differences
    """
    spec = objects.RequestSpec()
    with contextlib.suppress(AttributeError):
        request_spec.set_addresses(spec, free_addresses.FreeAddresses(()))
    nova_signatures.check(
        PARAMETERS, [] if request_spec.get_addresses(spec) else [
            'RequestSpec keeps no attribute of a filter'])
