# SPDX-License-Identifier: Apache-2.0
"""What nova-api shows of the request for a server, and of the services."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import api_connection
from nova_aggregate_mirror.source import api_responses

PINNED = '2.96'
"""The first microversion with ``pinned_availability_zone`` (29.0, Caracal)."""

UP, DISABLED = 'up', 'disabled'


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor, or the one that a server was created with."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap_mb: int
    extra_specs: Mapping[str, str]
    id: str = ''
    """Empty for that of a server."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server, with what it has asked for."""

    id: str
    flavor: Flavor
    image: str
    """ID; empty if the server was booted from a volume."""
    project: str
    zone: str
    """That it has asked for, or was pinned to; empty if none."""
    zone_visible: bool
    """Whether nova-api shows that zone."""


@dataclasses.dataclass(frozen=True)
class Service:
    """The nova-compute of a host."""

    host: str
    disabled: bool
    reason: str
    """Why it was disabled; may be empty."""
    up: bool
    forced_down: bool


class Requests:
    """Nova's REST API, for what concerns a single server.

    :param nova: a client of python-novaclient
    :param timeout: seconds per request
    """

    def __init__(self, nova: Any, timeout: float) -> None:
        self._api = api_connection.Api(nova, timeout)

    def server(self, server: str) -> Server:
        """Read a server.

        :raises UnknownName: nova has no such server
        """
        missing = ('nova has no server %s; see "openstack server list '
                   '--all-projects"' % server)
        path = '/servers/' + server
        try:
            return self._api.document(
                path, 'server', _server, missing, PINNED)
        except exceptions.UnexpectedNova:
            return self._api.document(path, 'server', _server, missing)

    def flavor(self, name: str) -> Flavor:
        """Read a flavor by its ID or its name; nova prefers the ID.

        :raises UnknownName: nova has no such flavor
        """
        flavors = self._flavors()
        found = [one for one in flavors if one.id == name] or [
            one for one in flavors if one.name == name]
        if not found:
            raise exceptions.UnknownName(
                'nova has no flavor with the name or ID %s; see "openstack '
                'flavor list --all"' % name)
        return found[0]

    def services(self) -> Mapping[str, Service]:
        """Read the nova-compute of each host."""
        found = self._api.entries(
            '/os-services?binary=nova-compute', 'services', _service)
        return {one.host: one for one in found}

    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Read the metadata of each aggregate, by UUID."""
        return dict(self._api.entries(
            '/os-aggregates', 'aggregates', _metadata))

    def zones(self) -> frozenset[str]:
        """Read the names of the availability zones that have hosts."""
        return frozenset(self._api.entries(
            '/os-availability-zone', 'availabilityZoneInfo',
            lambda doing, one: api_responses.text(doing, one, 'zoneName')))

    def _flavors(self) -> list[Flavor]:
        found: dict[str, Flavor] = {}
        marker = ''
        while True:
            page = {one.id: one for one in self._api.entries(
                '/flavors/detail?is_public=None' + marker, 'flavors',
                _flavor)}
            if page.keys() <= found.keys():
                return list(found.values())
            found.update(page)
            marker = '&marker=' + list(page)[-1]


def _server(doing: str, one: dict[str, Any]) -> Server:
    flavor, image = one.get('flavor'), one.get('image')
    if not isinstance(flavor, dict):
        raise api_responses.malformed(doing, 'the server has no flavor')
    pinned = one.get('pinned_availability_zone')
    if pinned is not None and not isinstance(pinned, str):
        raise api_responses.malformed(doing, 'the zone is not a text')
    return Server(
        api_responses.uuid(doing, one, 'id'), _make_flavor(
            doing, flavor, 'original_name', 'ephemeral'),
        api_responses.text(doing, image, 'id')
        if isinstance(image, dict) else '',
        api_responses.text(doing, one, 'tenant_id'), pinned or '',
        'pinned_availability_zone' in one)


def _flavor(doing: str, one: dict[str, Any]) -> Flavor:
    return dataclasses.replace(
        _make_flavor(doing, one, 'name', 'OS-FLV-EXT-DATA:ephemeral'),
        id=api_responses.text(doing, one, 'id'))


def _make_flavor(doing: str, one: dict[str, Any], name: str, ephemeral: str
                 ) -> Flavor:
    if 'extra_specs' not in one:
        # Nova-api omits them if its policy says so.
        raise exceptions.NovaUnavailable(
            '%s: the flavor has no extra specs. The user needs a role that '
            'nova\'s policy os_compute_api:os-flavor-extra-specs:index allows.'
            % doing)
    return Flavor(
        name=api_responses.text(doing, one, name),
        vcpus=_number(doing, one, 'vcpus'),
        memory_mb=_number(doing, one, 'ram'),
        root_gb=_number(doing, one, 'disk'),
        ephemeral_gb=_number(doing, one, ephemeral),
        swap_mb=_number(doing, one, 'swap'),
        extra_specs=texts(doing, one, 'extra_specs'))


def _service(doing: str, one: dict[str, Any]) -> Service:
    # A service of a cell that is down has a host and a status only.
    return Service(
        api_responses.text(doing, one, 'host'),
        api_responses.text(doing, one, 'status') == DISABLED,
        str(one.get('disabled_reason') or ''), one.get('state') == UP,
        one.get('forced_down') is True)


def _metadata(doing: str, one: dict[str, Any]
              ) -> tuple[str, Mapping[str, str]]:
    return (api_responses.uuid(doing, one, 'uuid'),
            texts(doing, one, 'metadata'))


def _number(doing: str, one: dict[str, Any], key: str) -> int:
    # Before microversion 2.75 no swap is an empty text.
    value = one.get(key) or 0
    if isinstance(value, int):
        return value
    raise api_responses.malformed(doing, '%s is not a number' % key)


def texts(doing: str, one: dict[str, Any], key: str) -> Mapping[str, str]:
    found = one.get(key)
    if not isinstance(found, dict) or not all(
            isinstance(value, str) for value in found.values()):
        raise api_responses.malformed(
            doing, 'an entry has no %s, or not as texts' % key)
    return found
