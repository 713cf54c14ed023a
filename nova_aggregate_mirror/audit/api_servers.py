# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts, and the zones that nova-api shows of their requests."""

from collections import abc
import datetime
from typing import Any
import urllib.parse

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import api

PINNED = '2.96'
"""The first microversion with ``pinned_availability_zone`` (29.0, Caracal)."""
WITHOUT_PINNED = ('use "%s", or nova 29.0 (Caracal) or later, which shows '
                  'the zone of servers' % commands.AUDIT)
PAGE = 500
"""Servers per request; nova-api may return fewer."""


class ApiServers:
    """Nova's REST API, for all servers."""

    def __init__(self, nova: api.Api) -> None:
        self._api = nova

    def read(self, hosts: abc.Sequence[str] = (), project: str = ''
             ) -> abc.Iterator[auditor.AuditedServer]:
        """Read the servers on hosts, with the zones they are pinned to."""
        # Without a host, nova-api lists the servers of all.
        for host in dict.fromkeys(hosts or ['']):
            marker = ''
            while True:
                query = {'all_tenants': '1', 'limit': str(PAGE), 'host': host,
                         'project_id': project, 'marker': marker}
                parameters = urllib.parse.urlencode({
                    name: text for name, text in query.items() if text})
                page = self._api.entries(
                    '/servers/detail?' + parameters, 'servers', _listed,
                    PINNED, WITHOUT_PINNED)
                if not page:
                    break
                # Filtered exactly: MySQL compares names without case.
                yield from (listed for listed in page if listed.server.host
                            and host in ('', listed.server.host))
                marker = page[-1].server.uuid

    def zones(self) -> frozenset[str]:
        """Read the names of the availability zones that have hosts."""
        return frozenset(self._api.entries(
            '/os-availability-zone', 'availabilityZoneInfo',
            lambda call, zone: api.text(call, zone, 'zoneName')))

    def has(self, microversion: str) -> bool:
        return not exceptions.failure_of(lambda: self._api.entries(
            '/servers?limit=1', 'servers', lambda _call, entry: entry,
            microversion), exceptions.UnexpectedNova)

    def with_move(self, server: audit.PlacedServer) -> audit.PlacedServer:
        """Add the last migration of a server to its host, if there is one."""
        moves = [(at, kind) for host, at, kind in self._api.entries(
            '/os-migrations?instance_uuid=' + server.uuid, 'migrations',
            _move) if host == server.host]
        if not moves:
            return server
        at, kind = max(moves, key=lambda move: move[0])
        return audit.with_move(server, kind, at)


def _move(call: errors.Call, entry: dict[str, Any]) -> tuple[str, float, str]:
    """Return the host that a server arrived on, if any, when, and how."""
    to = str(entry.get('dest_compute') or '')
    if to == entry.get('source_compute') or (
            entry.get('status') not in audit.ARRIVED):
        to = ''
    at = entry.get('updated_at') or entry.get('created_at')
    return (to, _time(call, at) or 0.0,
            str(entry.get('migration_type') or 'migration'))


def _listed(call: errors.Call, entry: dict[str, Any]) -> auditor.AuditedServer:
    """Return a server; its host is empty while it is being resized."""
    uuid = api.uuid(call, entry, 'id')
    if 'OS-EXT-SRV-ATTR:host' not in entry:
        raise exceptions.NovaUnavailable(
            'shows no hosts of the servers', call.party().name, call.occasion,
            step='give the user a role that nova\'s policy '
            'os_compute_api:os-extended-server-attributes allows')
    moving = entry.get('OS-EXT-STS:task_state') in audit.MOVING
    project = api.text(call, entry, 'tenant_id')
    host = '' if moving else str(entry['OS-EXT-SRV-ATTR:host'] or '')
    server = audit.PlacedServer(
        uuid, str(entry.get('name') or ''), host, project,
        api.text(call, entry, 'OS-EXT-STS:vm_state'),
        _time(call, entry.get('OS-SRV-USG:launched_at')))
    zone = str(entry.get('pinned_availability_zone') or '')
    return auditor.AuditedServer(
        server, constraints.ServerRequest(project, '', {}, {}, zone))


def _time(call: errors.Call, text: Any) -> float | None:
    """Parse a time in UTC to seconds since the epoch."""
    if text is None:
        return None
    try:
        at = datetime.datetime.fromisoformat(str(text).removesuffix('Z'))
    except ValueError as exc:
        raise call.malformed(
            '%s, which is not a time' % str(text)[:40]) from exc
    return dates.epoch(at)
