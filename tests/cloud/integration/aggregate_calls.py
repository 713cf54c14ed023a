# SPDX-License-Identifier: Apache-2.0
"""The requests that users can send about host aggregates, valid and invalid.

Every operation is here, in each situation that nova answers differently; and
so is deleting a compute service, which removes its host from aggregates.
"""

from collections import abc
import dataclasses
import functools
from typing import Any

# Hosts: with one compute node, with three, without any; with a server in a
# zone, and with a server in no zone.
HOST, SEVERAL, BARE, ZONED, BUSY = (
    'compute-3', 'ironic-1', 'compute-bare', 'compute-1', 'compute-2')
# Hosts whose service may be deleted: two with a compute node, one without.
GOING, GOING_FREE, GOING_BARE = (
    'compute-going', 'compute-going-free', 'compute-going-bare')
WITHOUT_NODE = (BARE, GOING_BARE)
ZONE = 'zone-answers'
NOBODY, MEMBER = 'nobody', 'member'


@dataclasses.dataclass(frozen=True)
class Call:
    """A request, and its preconditions.

    :param body: ``NAME`` in it is replaced by a new name each time, and
        ``IMAGE`` by the ID of an image
    :param hosts: the members of its aggregate; None selects the aggregate that
        is a zone with a server
    :param zone: of its aggregate
    :param changes: the host that becomes a member if the request succeeds, or
        stops being one
    :param service: the host whose compute service the request is about
    """

    operation: str
    situation: str
    method: str
    path: str
    body: abc.Mapping[str, Any] | None = None
    hosts: tuple[str, ...] | None = None
    zone: str | None = None
    user: str = ''
    changes: str = ''
    service: str = ''


def _action(operation: str, situation: str, values: abc.Mapping[str, Any],
            path: str = '/os-aggregates/{id}/action', **options: Any) -> Call:
    name = operation.replace(' ', '_')
    return Call(operation, situation, 'POST', path, {name: values}, **options)


def _member(operation: str, situation: str, host: str,
            hosts: tuple[str, ...] | None = (), changes: bool = False) -> Call:
    return _action(operation, situation, {'host': host}, hosts=hosts,
                   changes=host * changes)


def _delete_service(situation: str, host: str, **options: Any) -> Call:
    return Call('delete a service', situation, 'DELETE',
                '/os-services/{service}', service=host, **options)


_add = functools.partial(_member, 'add host')
_remove = functools.partial(_member, 'remove host')
_ALL = '/os-aggregates'
_ONE = '/os-aggregates/{id}'
_NONE = '/os-aggregates/999999'
_IMAGES = {'cache': [{'id': 'IMAGE'}]}
_NEW = {'aggregate': {'name': 'NAME'}}
_TAKEN = {'aggregate': {'name': ZONE}}
_ANOTHER_ZONE = {'availability_zone': 'another'}

CALLS = (
    Call('create', 'a new name', 'POST', _ALL, _NEW),
    Call('create', 'a name that is taken', 'POST', _ALL, _TAKEN),
    Call('create', 'no name', 'POST', _ALL, {'aggregate': {}}),
    Call('create', 'not an administrator', 'POST', _ALL, _NEW, user=MEMBER),
    Call('list', '', 'GET', _ALL),
    Call('list', 'not an administrator', 'GET', _ALL, user=MEMBER),
    # A request without a body: nova would not read a body here, and uwsgi
    # could close the connection before the answer is sent.
    Call('list', 'no token', 'GET', _ALL, user=NOBODY),
    Call('show', '', 'GET', _ONE),
    Call('show', 'no such aggregate', 'GET', _NONE),
    Call('show', 'not an administrator', 'GET', _ONE, user=MEMBER),
    Call('update', 'a new name', 'PUT', _ONE, _NEW, ()),
    Call('update', 'a zone', 'PUT', _ONE, {'aggregate': _ANOTHER_ZONE}, ()),
    Call('update', 'a name that is taken', 'PUT', _ONE, _TAKEN, ()),
    Call('update', 'another zone, with servers', 'PUT', _ONE,
         {'aggregate': _ANOTHER_ZONE}),
    Call('update', 'nothing to update', 'PUT', _ONE, {'aggregate': {}}),
    Call('update', 'no such aggregate', 'PUT', _NONE, _NEW),
    Call('update', 'not an administrator', 'PUT', _ONE, _NEW, user=MEMBER),
    _action('set metadata', 'a key', {'metadata': {'ssd': 'true'}}, hosts=()),
    _action('set metadata', 'another zone, with servers',
            {'metadata': _ANOTHER_ZONE}),
    _action('set metadata', 'no metadata', {}),
    _action('set metadata', 'no such aggregate',
            {'metadata': {'ssd': 'true'}}, _NONE + '/action'),
    _action('set metadata', 'not an administrator',
            {'metadata': {'ssd': 'true'}}, user=MEMBER),
    _add('a host', HOST, changes=True),
    _add('a host with three nodes', SEVERAL, changes=True),
    _add('a service without a node', BARE, changes=True),
    _add('a host that is there', HOST, (HOST,)),
    _action('add host', 'a host of another zone', {'host': ZONED}, hosts=(),
            zone='another'),
    _add('a host with servers, to a zone', BUSY, None),
    _add('an unknown host', 'no-such-host'),
    _action('add host', 'no such aggregate', {'host': HOST},
            _NONE + '/action'),
    _action('add host', 'no host', {}),
    _action('add host', 'not an administrator', {'host': HOST}, user=MEMBER),
    _remove('a host', HOST, (HOST,), changes=True),
    _remove('a host with three nodes', SEVERAL, (SEVERAL,), changes=True),
    _remove('a service without a node', BARE, (BARE,), changes=True),
    _remove('a host that is not there', HOST, ()),
    _remove('such a service that is not there', BARE, ()),
    _remove('the host of a zone, with servers', ZONED, None),
    _remove('an unknown host', 'no-such-host', ()),
    _action('remove host', 'no such aggregate', {'host': HOST},
            _NONE + '/action'),
    _action('remove host', 'no host', {}),
    _action('remove host', 'not an administrator', {'host': HOST},
            user=MEMBER),
    Call('delete', 'an empty one', 'DELETE', _ONE, hosts=()),
    Call('delete', 'one with hosts', 'DELETE', _ONE),
    Call('delete', 'no such aggregate', 'DELETE', _NONE),
    Call('delete', 'not an administrator', 'DELETE', _ONE, user=MEMBER),
    Call('cache images', 'an image', 'POST', _ONE + '/images', _IMAGES),
    Call('cache images', 'no image', 'POST', _ONE + '/images', {'cache': []}),
    Call('cache images', 'no such aggregate', 'POST', _NONE + '/images',
         _IMAGES),
    Call('cache images', 'not an administrator', 'POST', _ONE + '/images',
         _IMAGES, user=MEMBER),
    _delete_service('a host in an aggregate', GOING, hosts=(GOING,),
                    changes=GOING),
    _delete_service('a service without a node', GOING_BARE,
                    hosts=(GOING_BARE,), changes=GOING_BARE),
    _delete_service('a host in no aggregate', GOING_FREE),
    _delete_service('a host with servers', ZONED),
    _delete_service('not an administrator', GOING, user=MEMBER),
    Call('delete a service', 'no such service', 'DELETE',
         '/os-services/00000000-0000-4000-8000-000000000000'))
