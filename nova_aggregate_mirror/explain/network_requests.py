# SPDX-License-Identifier: Apache-2.0
"""Networks and ports of a request, and the resources that ports request."""

from collections import abc
import contextlib
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception
from nova.network import neutron
from nova import objects

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors


def complete(context: Any, spec: Any, instance: Any,
             networks: abc.Sequence[str], ports: abc.Sequence[str],
             notes: list[str]) -> None:
    """Add what nova does not store: networks, and resources of ports.

    :param networks: IDs that replace the networks of the server
    :param ports: IDs that replace its ports
    """
    if networks or ports or instance is None:
        spec.requested_networks = objects.NetworkRequestList(objects=[
            *(objects.NetworkRequest(network_id=uuid) for uuid in networks),
            *(objects.NetworkRequest(port_id=uuid) for uuid in ports)])
        _add_ports(context, spec, ports, notes)
        return
    spec.ensure_network_information(instance)
    resources = _ask_neutron(
        lambda: neutron.API().get_requested_resource_for_instance(
            context, instance.uuid), notes)
    if resources:
        spec.requested_resources, spec.request_level_params = resources
    if not instance.host and not spec.requested_resources:
        notes.append('Neutron does not know the ports of a server that was '
                     'on no host: give those that request resources, such as '
                     'bandwidth, with --port.')
    if not spec.requested_networks and (
            CONF.scheduler.query_placement_for_routed_network_aggregates
    ):
        notes.append('The networks of the server are not known, so that '
                     'their segments are not explained: give --network or '
                     '--port.')


def _add_ports(context: Any, spec: Any, ports: abc.Iterable[str],
               notes: list[str]) -> None:
    """Add the resources that ports request, such as bandwidth."""
    for port in ports:
        document = _ask_neutron(
            lambda: neutron.API().show_port(context, port), notes)
        request = (document or {}).get('port', {}).get('resource_request')
        if request:
            spec.request_level_params.extend_with(
                objects.RequestLevelParams.from_port_request(request))
            spec.requested_resources += (
                objects.RequestGroup.from_extended_port_request(
                    context, request) if 'request_groups' in request else [
                        objects.RequestGroup.from_port_request(
                            context, port, request)])


@contextlib.contextmanager
def translated(occasion: str) -> abc.Iterator[None]:
    """Translate errors of neutron and keystone to a MirrorError."""
    call = errors.Call('neutron', occasion)
    try:
        with errors.translated(call):
            yield
    except neutron.neutron_client_exc.NeutronException as exc:
        raise call.error(
            exceptions.ServiceFailed, 'failed: %s' % exc) from exc


def _ask_neutron(ask: abc.Callable[[], Any], notes: list[str]) -> Any:
    """Return neutron's answer, or None after a note."""
    try:
        with translated('reading ports'):
            return ask()
    except (nova_exception.NovaException, exceptions.MirrorError) as exc:
        text = ('The resources of ports are not explained: %s'
                % ' '.join(errors.without_secrets(str(exc)).split()))
        if text not in notes:
            notes.append(text)
        return None
