# SPDX-License-Identifier: Apache-2.0
"""Requests to the compute API for the entries of a list, validated."""

from collections import abc
import contextlib
import dataclasses
from typing import Any
from typing import TypeVar

from oslo_utils import uuidutils

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import keyed_aggregates

T = TypeVar('T')

MICROVERSION = '2.69'
"""The first that names the hosts of a cell that is down (19.0, Stein). From
2.88 on, nova-api asks each nova-compute for its uptime."""

PARTY = causes.openstack_client(
    'nova-api', 'give the user a role that nova\'s policy allows for '
    'os-aggregates, os-hypervisors and os-services, such as the admin role')
GONE = causes.Cause('not_found', '%s', step='run this again')
"""What was listed before has been deleted."""


@dataclasses.dataclass(frozen=True)
class Api:
    """Requests to nova-api."""

    session: Any
    """Keystoneauth's."""
    timeout: float
    """Seconds per method call."""
    region_name: str | None = None
    interface: str = 'public'
    endpoint_override: str | None = None

    def entries(self, path: str, key: str,
                parse: abc.Callable[[errors.Call, dict[str, Any]], T],
                microversion: str = MICROVERSION,
                step: str = '') -> list[T]:
        """Read a list.

        :param parse: called with the call, for errors, and each entry
        :param step: the next step if nova does not have the microversion
        :raises UnexpectedNova: nova does not have the microversion
        """
        with deadline.within(self.timeout):
            call, entries = self._read(path, key, microversion, step)
            return [parse(call, entry) for entry in entries]

    def update(self, path: str, body: dict[str, str]) -> None:
        """Send a PUT, once."""
        with deadline.within(self.timeout):
            self._request('PUT', path, MICROVERSION, json=body)

    @transport.repeating
    def _read(self, path: str, key: str, microversion: str, step: str
              ) -> tuple[errors.Call, list[Any]]:
        """Send a request; return it, for errors, and the entries."""
        call, body = self._request('GET', path, microversion, step)
        entries = body.get(key) if isinstance(body, dict) else None
        if not isinstance(entries, list) or not all(
                isinstance(entry, dict) for entry in entries):
            raise call.malformed('no list of %s' % key)
        return call, entries

    def _request(self, method: str, path: str, microversion: str,
                 step: str = '', **options: Any) -> tuple[errors.Call, Any]:
        """Send a request; return it, for errors, and the body."""
        call = errors.Call(
            lambda: PARTY, '%s %s' % (method, path),
            kind=exceptions.NovaUnavailable)
        body = None
        with errors.translated(call), errors.parsing(), (
                library_errors.looking_up(
                    self.session, 'compute', self.region_name,
                    self.interface)):
            # The request parses the token and the catalog, then the body.
            response = self.session.request(
                path, method, raise_exc=False, microversion=microversion,
                endpoint_override=self.endpoint_override, endpoint_filter={
                    'service_type': 'compute', 'interface': self.interface,
                    'region_name': self.region_name},
                headers={'Accept': 'application/json'}, **options)
            # A status may have a page of a proxy.
            with contextlib.suppress(ValueError):
                body = response.json()
        call = dataclasses.replace(call, url=response.url or '')
        if response.status_code != 200:
            raise _refusal(call, response, body, step)
        return call, body


@dataclasses.dataclass(frozen=True)
class ListedAggregate(source.HostAggregate):
    """A host aggregate as nova-api shows it."""

    zone: str = ''
    """Empty if it is no availability zone."""

    @property
    def key(self) -> str:
        return keyed_aggregates.key_of(self.id, self.uuid)


@dataclasses.dataclass(frozen=True)
class ListedService:
    """A compute service as nova-api shows it."""

    host: str
    status: str
    """``UNKNOWN`` in a cell that is down, without what follows."""
    id: str = ''
    disabled_reason: str = ''


def aggregate(call: errors.Call, entry: dict[str, Any]) -> ListedAggregate:
    hosts, number = entry.get('hosts'), entry.get('id')
    zone = entry.get('availability_zone') or ''
    if not isinstance(hosts, list) or not isinstance(number, int):
        raise call.malformed('an aggregate without an id or hosts')
    if not isinstance(zone, str):
        raise call.malformed('an aggregate with a zone that is no text')
    host_names = (string(call, {'host': host}, 'host') for host in hosts)
    return ListedAggregate(
        id=number, uuid=string(call, entry, 'uuid'),
        name=string(call, entry, 'name') or source.UNNAMED,
        hosts=frozenset(filter(None, host_names)),
        zone=zone)


def node(call: errors.Call, entry: dict[str, Any]) -> tuple[str, str, str]:
    """Return UUID, host and name of a hypervisor, as nova has them."""
    service = entry.get('service')
    if not isinstance(service, dict):
        raise call.malformed('a hypervisor without a service')
    # Nova's column of the name is nullable.
    return (string(call, entry, 'id'), string(call, service, 'host'),
            str(entry.get('hypervisor_hostname') or ''))


def service(call: errors.Call, entry: dict[str, Any]) -> ListedService:
    return ListedService(
        string(call, entry, 'host'), text(call, entry, 'status'),
        str(entry.get('id') or ''), str(entry.get('disabled_reason') or ''))


def uuid(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not uuidutils.is_uuid_like(value):
        raise call.malformed('an entry whose %s is not a UUID' % key)
    return value


def text(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    """Return a text that is not empty, unlike ``string``."""
    if not entry.get(key):
        raise call.malformed('an entry without %s' % key)
    return string(call, entry, key)


def string(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    """Return a text of nova's database, which may be empty."""
    value = entry.get(key)
    if not isinstance(value, str):
        raise call.malformed('an entry without %s' % key)
    return value


def _refusal(call: errors.Call, response: Any, body: Any, step: str
             ) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200."""
    if response.status_code == 406:
        call = dataclasses.replace(
            call, kind=exceptions.UnexpectedNova,
            step=step or 'use nova 19.0 (Stein) or later')
    # Nova's error document is {"forbidden": {"message": ..., "code": 403}}.
    details = body.values() if isinstance(body, dict) else ()
    messages = [
        error['message'] for error in details
        if isinstance(error, dict) and isinstance(error.get('message'), str)]
    # What nova itself does not find is not at another address.
    is_absent = isinstance(body, dict) and 'itemNotFound' in body
    return errors.unexpected(call, response, ' '.join(messages),
                             cause=GONE if is_absent else None)
