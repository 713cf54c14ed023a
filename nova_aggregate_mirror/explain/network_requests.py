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


class RequestedNetworks:
    """The networks and ports of a request: given, or those of the server.

    :param networks: IDs
    :param ports: IDs
    """

    def __init__(self, networks: abc.Sequence[str], ports: abc.Sequence[str],
                 notes: list[str]) -> None:
        self._networks = networks
        self._ports = ports
        self._notes = notes

    def get_requested_resource_for_instance(
            self, context: Any, server: str | None) -> tuple[Any, Any]:
        """Read the resources that ports request, as nova's method does.

        :param server: None if it has no ports yet
        """
        if self._networks or self._ports or server is None:
            ports = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(port_id=uuid) for uuid in self._ports])
            # Without a port, nova asks nothing.
            answer = _ask_neutron(
                lambda: neutron.API().create_resource_requests(
                    context, ports, objects.InstancePCIRequests(requests=[])
                )[1:], self._notes)
        else:
            answer = _ask_neutron(
                lambda: neutron.API().get_requested_resource_for_instance(
                    context, server), self._notes)
        groups, parameters = answer or ([], None)
        return groups, parameters or objects.RequestLevelParams()

    def has_port_binding_extension(self, _context: Any) -> bool:
        """Assume that neutron has it, as since its release 13."""
        return True

    def replace(self, spec: Any) -> None:
        """Request the networks and ports that were given, if any."""
        if self._networks or self._ports:
            spec.requested_networks = objects.NetworkRequestList(objects=[
                *(objects.NetworkRequest(network_id=uuid)
                  for uuid in self._networks),
                *(objects.NetworkRequest(port_id=uuid)
                  for uuid in self._ports)])

    def note(self, spec: Any, instance: Any) -> None:
        """Note what is not known of a server."""
        if self._networks or self._ports or instance is None:
            return
        # An offloaded server, which was launched once, keeps its ports.
        if not (instance.host or instance.launched_at
                or spec.requested_resources):
            self._notes.append(
                'Neutron does not know the ports of a server that was on no '
                'host: give those that request resources, such as bandwidth, '
                'with --port.')
        if not spec.requested_networks and (
                CONF.scheduler.query_placement_for_routed_network_aggregates):
            self._notes.append(
                'The networks of the server are not known, so that their '
                'segments are not explained: give --network or --port.')


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
