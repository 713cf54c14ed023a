# SPDX-License-Identifier: Apache-2.0
"""Responses of nova-api: validation, error translation and advice."""

from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Any

from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors

MICROVERSION = '2.69'
"""The first that names the hosts of a cell that is down (19.0, Stein). From
2.88 on, nova-api asks each nova-compute for its uptime."""

_ROLE = ('The user needs the admin role, or a role that nova\'s policy allows '
         'for os-aggregates, os-hypervisors and os-services. Check the user '
         'and the project')
_ENDPOINT = ('Check region, interface and endpoint of the compute service in '
             'clouds.yaml, in the options or in the catalog')
_LOGS = 'Check that nova-api is running, and check its log'
_ADVICE = {
    exceptions.NotAuthorized: _ROLE + '.',
    exceptions.ServiceUnreachable: _ENDPOINT + '. ' + _LOGS + '.',
    exceptions.DeadlineExceeded: _LOGS + '.',
    exceptions.ServiceFailed: _LOGS + '.',
    exceptions.MalformedAnswer: _ENDPOINT + '.',
    exceptions.RequestRejected: _LOGS + '.',
    exceptions.MissingCredentials: _ROLE + '.',
    exceptions.InvalidConfiguration: _ENDPOINT + '.',
}


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate as nova-api shows it."""

    id: int
    uuid: str
    name: str
    hosts: frozenset[str]
    zone: str = ''
    """Empty if it is no availability zone."""


def aggregate(doing: str, one: dict[str, Any]) -> Aggregate:
    hosts, number = one.get('hosts'), one.get('id')
    zone = one.get('availability_zone') or ''
    if not isinstance(hosts, list) or not isinstance(number, int):
        raise malformed(doing, 'an aggregate has no id or no hosts')
    if not isinstance(zone, str):
        raise malformed(doing, 'the zone of an aggregate is not a text')
    return Aggregate(
        number, uuid(doing, one, 'uuid'), text(doing, one, 'name'),
        frozenset(text(doing, {'host': host}, 'host') for host in hosts),
        zone)


def node(doing: str, one: dict[str, Any]) -> tuple[str, str]:
    service = one.get('service')
    if not isinstance(service, dict):
        raise malformed(doing, 'a hypervisor has no service')
    return uuid(doing, one, 'id'), text(doing, service, 'host')


def service(doing: str, one: dict[str, Any]) -> tuple[str, str]:
    return text(doing, one, 'host'), text(doing, one, 'status')


def uuid(doing: str, one: dict[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str) or not uuidutils.is_uuid_like(value):
        raise malformed(doing, 'an entry has a %s that is not a UUID' % key)
    return value


def text(doing: str, one: dict[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str) or not value:
        raise malformed(doing, 'an entry has no %s' % key)
    return value


def malformed(doing: str, happened: str) -> exceptions.MirrorError:
    return errors.error(exceptions.MalformedAnswer, doing, happened)


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    try:
        with errors.advising(_ADVICE), errors.translated(doing):
            yield
    except (exceptions.NovaUnavailable, exceptions.UnexpectedNova):
        raise
    except exceptions.MirrorError as exc:
        raise exceptions.NovaUnavailable(str(exc)) from exc


def refusal(doing: str, status: int, body: Any) -> exceptions.MirrorError:
    kind: type[exceptions.MirrorError] = exceptions.NovaUnavailable
    advice = _LOGS
    if status in (401, 403):
        advice = _ROLE
    elif status == 400:
        advice = 'Run the command again'
    elif status == 404:
        advice = _ENDPOINT
    elif status == 406:
        kind, advice = exceptions.UnexpectedNova, (
            'Compute API microversion %s is required: nova 19.0 (Stein) or '
            'later' % MICROVERSION)
    # Nova's error document is {"forbidden": {"message": ..., "code": 403}}.
    said = ' '.join(one['message'] for one in (
        body.values() if isinstance(body, dict) else ())
        if isinstance(one, dict) and isinstance(one.get('message'), str))
    said = ' '.join(errors.without_secrets(said).split())
    return kind('%s: returned %s %s. %s.' % (
        doing, status, said.rstrip('. '), advice))
