# SPDX-License-Identifier: Apache-2.0
"""Networks and ports of a request, and the resources that ports request."""

from collections import abc
import contextlib
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception
from nova.network import neutron
from nova import objects

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources


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
    # Of other networks nova reads the physical one: not looked at.
    ports = [port for port in networks if port.port_id]
    try:
        with translated('reading ports'):
            if networks or server is None:
                metadata, groups, parameters = (
                    neutron.API().create_resource_requests(
                        context, objects.NetworkRequestList(objects=ports),
                        pci_requests or objects.InstancePCIRequests(
                            requests=[]), affinity_policy=affinity))
            else:
                groups, parameters = (
                    neutron.API().get_requested_resource_for_instance(
                        context, server))
    except (nova_exception.NovaException, exceptions.MirrorError) as exc:
        reason = ' '.join(errors.without_secrets(str(exc)).split())
        notes.append('The resources of ports are not explained: ' + reason)
    return metadata, groups, parameters or objects.RequestLevelParams()


@contextlib.contextmanager
def translated(occasion: str) -> abc.Iterator[None]:
    """Translate errors of neutron and keystone to a MirrorError."""
    call = errors.Call(resources.party(CONF, resources.NETWORK), occasion)
    try:
        with errors.translated(call):
            yield
    except neutron.neutron_client_exc.NeutronException as exc:
        raise call.error(
            exceptions.ServiceFailed,
            causes.FAILED.with_detail(exc)) from exc
