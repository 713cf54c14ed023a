# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts and what nova-api shows of their requests."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
from typing import Any
import urllib.parse

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api_connection
from nova_aggregate_mirror.source import api_requests
from nova_aggregate_mirror.source import api_responses

PAGE = 500
"""Servers per request; nova-api may return fewer."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """A server as nova-api shows it."""

    server: source.PlacedServer
    """Its host is empty if it is on none, or being resized."""
    flavor: str
    extra_specs: Mapping[str, str]
    image: str
    """ID; empty if the server was booted from a volume."""
    zone: str
    """That it has asked for, or was pinned to; empty if none."""


class Servers:
    """Nova's REST API, for all servers.

    :param nova: a client of python-novaclient
    :param timeout: seconds per request
    """

    def __init__(self, nova: Any, timeout: float) -> None:
        self._api = api_connection.Api(nova, timeout)

    def pages(self, hosts: Sequence[str] = (), project: str = ''
              ) -> Iterator[list[Shown]]:
        """Read the servers of all projects, page by page.

        :param hosts: hosts whose servers to read; all by default
        :param project: ID of the project whose servers to read
        :raises UnexpectedNova: nova-api does not show the zone
        """
        for host in hosts or ('',):
            marker = ''
            while True:
                wanted = {'all_tenants': '1', 'limit': str(PAGE), 'host': host,
                          'project_id': project, 'marker': marker}
                page = self._page(urllib.parse.urlencode({
                    name: value for name, value in wanted.items() if value}))
                if not page:
                    break
                # Filtered exactly: MySQL compares names without case.
                yield [one for one in page
                       if not host or one.server.host == host]
                marker = page[-1].server.uuid

    def arrived(self, server: source.PlacedServer) -> source.PlacedServer:
        """Add the last migration of a server to its host, if there is one."""
        moves = [one for one in self._api.entries(
            '/os-migrations?instance_uuid=' + server.uuid, 'migrations',
            _migration) if one.to == server.host]
        if not moves:
            return server
        last = max(moves, key=lambda one: one.at)
        return source.placed(server, last.kind, last.at)

    def _page(self, query: str) -> list[Shown]:
        try:
            return self._api.entries(
                '/servers/detail?' + query, 'servers', _shown,
                api_requests.PINNED)
        except exceptions.UnexpectedNova as exc:
            raise exceptions.UnexpectedNova(
                'Compute API microversion %s is required, because it shows '
                'the zone of servers: nova 29.0 (Caracal) or later. Use '
                '"nova-aggregate-mirror-manage placement audit_servers".'
                % api_requests.PINNED) from exc


@dataclasses.dataclass(frozen=True)
class _Migration:
    kind: str
    to: str
    at: float


def _migration(doing: str, one: dict[str, Any]) -> _Migration:
    to = str(one.get('dest_compute') or '')
    if to == one.get('source_compute') or (
            one.get('status') not in source.MOVED):
        to = ''
    at = one.get('updated_at') or one.get('created_at')
    return _Migration(str(one.get('migration_type') or 'migration'), to,
                      _time(doing, at) or 0.0)


def _shown(doing: str, one: dict[str, Any]) -> Shown:
    uuid = api_responses.uuid(doing, one, 'id')
    flavor, image = one.get('flavor'), one.get('image')
    if not isinstance(flavor, dict):
        raise api_responses.malformed(doing, 'a server has no flavor')
    if 'OS-EXT-SRV-ATTR:host' not in one:
        raise exceptions.NovaUnavailable(
            '%s: the servers have no hosts. The user needs a role that '
            'nova\'s policy os_compute_api:os-extended-server-attributes '
            'allows.' % doing)
    moving = one.get('OS-EXT-STS:task_state') in source.MOVING
    return Shown(
        source.PlacedServer(
            uuid, str(one.get('name') or ''),
            '' if moving else str(one['OS-EXT-SRV-ATTR:host'] or ''),
            api_responses.text(doing, one, 'tenant_id'),
            api_responses.text(doing, one, 'OS-EXT-STS:vm_state'),
            _time(doing, one.get('OS-SRV-USG:launched_at'))),
        api_responses.text(doing, flavor, 'original_name'),
        api_requests.texts(doing, flavor, 'extra_specs'),
        api_responses.text(doing, image, 'id')
        if isinstance(image, dict) else '',
        str(one.get('pinned_availability_zone') or ''))


def _time(doing: str, text: Any) -> float | None:
    """Parse a time in UTC to seconds since the epoch."""
    if text is None:
        return None
    try:
        at = datetime.datetime.fromisoformat(str(text).removesuffix('Z'))
    except ValueError as exc:
        raise api_responses.malformed(
            doing, '%s is not a time' % str(text)[:40]) from exc
    return at.replace(tzinfo=datetime.timezone.utc).timestamp()
