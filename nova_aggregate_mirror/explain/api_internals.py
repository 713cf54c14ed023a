# SPDX-License-Identifier: Apache-2.0
"""Internals of nova-api and nova-conductor that an explanation relies on.

They take time to import, and only the requests of servers need them.
"""

from collections import abc
import functools
import types
from typing import Any

from nova.compute import api
from nova.conductor import manager as conductor
from nova.conductor.tasks import live_migrate
from nova import servicegroup

from nova_aggregate_mirror import nova_signatures

PARAMETERS = {
    api.API: {
        '_validate_flavor_image': [
            'self', 'context', 'image_id', 'image', 'flavor', 'root_bdm',
            'validate_numa'],
        '_validate_numa_rebuild': ['instance', 'image', 'flavor'],
    },
    conductor.ComputeTaskManager: {
        '_validate_image_traits_for_rebuild': [
            'self', 'context', 'instance', 'image_ref'],
    },
    live_migrate.LiveMigrationTask: {
        '__init__': [
            'self', 'context', 'instance', 'destination', 'block_migration',
            'disk_over_commit', 'migration', 'compute_rpcapi',
            'servicegroup_api', 'query_client', 'report_client',
            'request_spec'],
        '_check_can_migrate_pci': ['self', 'src_host', 'dest_host'],
        '_check_compatible_with_source_hypervisor': ['self', 'destination'],
        '_check_instance_is_active': ['self'],
        '_get_compute_info': ['self', 'host'],
    },
}

MOVES = ('resize', 'live_migrate', 'evacuate', 'unshelve', 'rebuild')
"""Methods of nova-api whose decorators refuse some servers."""


def checks(method: str) -> abc.Callable[..., None]:
    """Return the decorators of a method of nova-api, without the method.

    :returns: takes context and instance; raises what nova-api does
    """
    layers = _layers(method)

    @functools.wraps(layers[-1])
    def accepted(*_arguments: Any) -> None:
        """Be called if no decorator refuses the server."""

    check: Any = accepted
    for inner, layer in reversed([*zip(layers[1:], layers)]):
        check = types.FunctionType(
            layer.__code__, layer.__globals__, closure=tuple(
                types.CellType(check) if cell.cell_contents is inner else cell
                for cell in layer.__closure__))
    return functools.partial(check, types.SimpleNamespace(
        servicegroup_api=servicegroup.API(), network_api=types.SimpleNamespace(
            # No supported nova-compute is too old for these.
            instance_has_extended_resource_request=lambda _server: False)))


def states(method: str) -> list[str]:
    """Return each ``vm_state`` of a server that a method of nova-api takes."""
    return sorted(
        state for layer in _layers(method)
        for name, cell in zip(layer.__code__.co_freevars,
                              layer.__closure__ or (), strict=True)
        if name == 'vm_state' for state in cell.cell_contents or ())


def check_image(image: abc.Mapping[str, Any], flavor: Any, from_volume: bool
                ) -> None:
    """Check an image as nova-api does; raise its error if it refuses."""
    api.API._validate_flavor_image(
        api.API, types.SimpleNamespace(can=lambda *_policy, **_options: True),
        image.get('id'), {'status': 'active', **image}, flavor,
        types.SimpleNamespace(is_volume=True, volume_size=None)
        if from_volume else None)


def _layers(method: str) -> list[Any]:
    """Return a method and its decorators, the outermost first.

    :returns: empty if it has no decorators of a known form
    """
    layers: list[Any] = [getattr(api.API, method, None)]
    while hasattr(layers[-1], '__wrapped__'):
        inner = layers[-1].__wrapped__
        if all(cell.cell_contents is not inner
               for cell in layers[-1].__closure__ or ()):
            return []
        layers.append(inner)
    return layers if layers[1:] else []


def check() -> None:
    """Check the installed nova against the internals relied on.

    :raises UnexpectedNova: lists all differences
    """
    nova_signatures.check(PARAMETERS, [
        'API.%s has no decorators of a known form' % method
        for method in MOVES if not _layers(method)])
