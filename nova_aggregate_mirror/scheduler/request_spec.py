# SPDX-License-Identifier: Apache-2.0
"""Nova's RequestSpec: what is read, conditions added, free addresses kept."""

from collections import abc
import dataclasses
from typing import Any
from typing import TypeAlias

from nova import exception as nova_exception
from nova.objects import base
from nova.objects import request_spec as objects
from nova.scheduler import utils
from oslo_versionedobjects import exception as object_exception

from nova_aggregate_mirror.scheduler import constraints

RequestSpec: TypeAlias = objects.RequestSpec
UNREADABLE = (
    # RuntimeError: JSON nested too deeply, or a type that is not implemented.
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
    RuntimeError, nova_exception.NovaException,
    object_exception.VersionedObjectsException)
"""Exceptions of nova's objects for a text that they cannot read."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """The aggregates of a segment, and the servers it has addresses for.

    :param servers: None if there are enough for all servers
    """

    aggregates: frozenset[str]
    servers: int | None

    def has(self, host: Any) -> bool:
        """Check whether a host state of nova is in the segment."""
        return any(aggregate.uuid in self.aggregates
                   for aggregate in host.aggregates)

    def is_free(self, added: abc.Iterable[tuple[Any, int]]) -> bool:
        """Check whether an address is left after servers were added."""
        servers = sum(count for host, count in added if self.has(host))
        return self.servers is None or servers < self.servers


class FreeAddresses:
    """Free addresses of a request: for each network its segments with any.

    Nova queries placement once for all servers of a request, and then chooses
    a host for each. What earlier servers of the request take is counted here.
    """

    def __init__(self, networks: list[list[Segment]]) -> None:
        self._networks = networks
        self._before: list[tuple[Any, int]] | None = None
        """Each host state with the servers it had before the request."""

    def passing(self, hosts: list[Any]) -> list[Any]:
        """Return the hosts that still have an address for a server.

        Between two calls nova adds a server of the request to a host state.
        """
        if self._before is None:
            self._before = [(host, host.num_instances) for host in hosts]
        added = [(host, host.num_instances - before)
                 for host, before in self._before
                 if host.num_instances > before]
        for segments in self._networks:
            free = [segment for segment in segments if segment.is_free(added)]
            if len(free) < len(segments):
                hosts = [host for host in hosts
                         if any(segment.has(host) for segment in free)]
        return hosts


def request(spec: RequestSpec) -> constraints.ServerRequest:
    """Read the fields that aggregates can restrict; unset fields are empty."""
    flavor = spec.flavor
    return constraints.ServerRequest(
        project=_field(spec, 'project_id'), flavor=flavor.name,
        extra_specs=_field(flavor, 'extra_specs') or {},
        image=_properties(spec), zone=_field(spec, 'availability_zone') or '',
        names_host=names_host(spec))


def ports(spec: RequestSpec) -> tuple[list[str], list[str]]:
    """Return the networks of new ports without an address, and old ports."""
    networks, existing = [], []
    for network in _field(spec, 'requested_networks') or ():
        if _field(network, 'port_id'):
            existing.append(network.port_id)
        elif _field(network, 'network_id') and not _field(network, 'address'):
            networks.append(network.network_id)
    return networks, existing


def count_servers(spec: RequestSpec) -> int:
    """Read the number of servers that are, or were, created together."""
    return _field(spec, 'num_instances') or 1


def set_addresses(spec: RequestSpec, free: list[list[Segment]]) -> None:
    """Keep the free addresses for the host filter of the same request."""
    spec.aggregate_mirror_addresses = FreeAddresses(free)


def get_addresses(spec: RequestSpec) -> FreeAddresses | None:
    free: FreeAddresses | None = getattr(
        spec, 'aggregate_mirror_addresses', None)
    return free


def forced(spec: RequestSpec) -> bool:
    """Check whether nova skips its host filters for the request's hosts."""
    hints = _field(spec, 'scheduler_hints') or {}
    return names_host(spec) and not hints.get('_nova_check_type')


def names_host(spec: RequestSpec) -> bool:
    """Check whether the request has ``force_hosts`` or ``force_nodes``.

    A host in ``requested_destination`` does not count: nova filters it.
    """
    return bool(_field(spec, 'force_hosts') or _field(spec, 'force_nodes'))


def is_rebuild(spec: RequestSpec) -> bool:
    """Check whether nova rebuilds a server on its host, which it then names.

    Nova 29 and 30 accept the hint for it from users, and nova stores it.
    """
    return bool(utils.request_is_rebuild(spec)) and names_host(spec)


def narrowable(spec: RequestSpec) -> bool:
    """Check whether the query can have aggregate conditions.

    Nova puts them into the unsuffixed request group. If the flavor requests
    all resources in other groups, placement rejects such a query.
    """
    resources = utils.ResourceRequest.from_request_spec(spec)
    return bool(resources.get_request_group(None).resources)


def member_of(spec: RequestSpec) -> constraints.MemberOf:
    """Read the aggregate conditions that the query already has."""
    destination = _field(spec, 'requested_destination')
    if not destination:
        return constraints.MemberOf()
    required = [frozenset(group.split(','))
                for group in destination.aggregates or ()]
    return constraints.MemberOf(
        tuple(required), frozenset(destination.forbidden_aggregates or ()))


def add(spec: RequestSpec, added: constraints.MemberOf) -> None:
    """Add aggregate conditions to the query."""
    if not _field(spec, 'requested_destination'):
        spec.requested_destination = objects.Destination()
    for group in added.required:
        spec.requested_destination.require_aggregates(sorted(group))
    if added.forbidden:
        spec.requested_destination.append_forbidden_aggregates(
            set(added.forbidden))


def replace(spec: RequestSpec, old: abc.Set[str], new: abc.Set[str]) -> None:
    """Replace a set of required aggregates by a subset."""
    groups = list(spec.requested_destination.aggregates)
    for number, group in enumerate(groups):
        if old == {*group.split(',')}:
            groups[number] = ','.join(sorted(new))
    spec.requested_destination.aggregates = groups


def _properties(spec: RequestSpec) -> abc.Mapping[str, str]:
    image = _field(spec, 'image')
    properties = _field(image, 'properties') if image else None
    if not properties:
        return {}
    # As in nova's filter: false values are skipped, others compared as text.
    # Asking the object for each of its hundred fields takes ten times as long.
    values = {name: getattr(properties, base.get_attrname(name), None)
              for name in properties.obj_fields}
    return {name: str(value) for name, value in values.items() if value}


def _field(owner: Any, name: str) -> Any:
    """Return a field of a nova object, or None: reading it unset may fail."""
    return getattr(owner, name) if name in owner else None
