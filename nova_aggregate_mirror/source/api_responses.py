# SPDX-License-Identifier: Apache-2.0
"""Responses of nova-api: validation and error translation."""

import dataclasses
from typing import Any

from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors

MICROVERSION = '2.69'
"""The first that names the hosts of a cell that is down (19.0, Stein). From
2.88 on, nova-api asks each nova-compute for its uptime."""

_ROLE = ('give the user a role that nova\'s policy allows for os-aggregates, '
         'os-hypervisors and os-services, such as the admin role')


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate as nova-api shows it."""

    id: int
    uuid: str
    name: str
    hosts: frozenset[str]
    zone: str = ''
    """Empty if it is no availability zone."""


def aggregate(call: errors.Call, entry: dict[str, Any]) -> Aggregate:
    hosts, number = entry.get('hosts'), entry.get('id')
    zone = entry.get('availability_zone') or ''
    if not isinstance(hosts, list) or not isinstance(number, int):
        raise call.malformed('an aggregate without an id or hosts')
    if not isinstance(zone, str):
        raise call.malformed('an aggregate whose zone is not a text')
    return Aggregate(
        number, uuid(call, entry, 'uuid'), text(call, entry, 'name'),
        frozenset(text(call, {'host': host}, 'host') for host in hosts),
        zone)


def node(call: errors.Call, entry: dict[str, Any]) -> tuple[str, str]:
    service = entry.get('service')
    if not isinstance(service, dict):
        raise call.malformed('a hypervisor without a service')
    return uuid(call, entry, 'id'), text(call, service, 'host')


def service(call: errors.Call, entry: dict[str, Any]) -> tuple[str, str]:
    return text(call, entry, 'host'), text(call, entry, 'status')


def uuid(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not uuidutils.is_uuid_like(value):
        raise call.malformed('an entry whose %s is not a UUID' % key)
    return value


def text(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise call.malformed('an entry without %s' % key)
    return value


def refusal(call: errors.Call, response: Any, body: Any
            ) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200."""
    if response.status_code == 406:
        call = dataclasses.replace(
            call, kind=exceptions.UnexpectedNova,
            step='use nova 19.0 (Stein) or later')
    if response.status_code in (401, 403):
        call = dataclasses.replace(call, step=_ROLE)
    # Nova's error document is {"forbidden": {"message": ..., "code": 403}}.
    return errors.unexpected(call, response, ' '.join(
        error['message'] for error in (
            body.values() if isinstance(body, dict) else ())
        if isinstance(error, dict) and isinstance(error.get('message'), str)))
