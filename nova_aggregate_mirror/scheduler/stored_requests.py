# SPDX-License-Identifier: Apache-2.0
"""Requests that nova has stored.

Nothing is written: a request is read into an object that cannot be saved.
"""

import dataclasses
import functools
import json
from typing import Any

from nova import exception as nova_exception
from nova import objects
from oslo_versionedobjects import exception as object_exception

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_spec

UNREADABLE = (
    # RuntimeError includes those of too many brackets and of a later version.
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
    RuntimeError, nova_exception.NovaException,
    object_exception.VersionedObjectsException)
"""Exceptions of nova's objects for a text that they cannot read."""

KEPT, LONGEST = 2048, 16384
"""Number and length of the texts that are kept. Nova writes ASCII: 32 MB."""
_SERVER = '"instance_uuid": "%s"'
_ANY = _SERVER % '00000000-0000-0000-0000-000000000000'


class Unreadable(Exception):
    """Nova cannot read the request, with the reason."""


@dataclasses.dataclass(frozen=True)
class Stored:
    """A request, and whether it names its host."""

    request: constraints.Request
    forced: bool


class _ReadOnly(request_spec.RequestSpec):
    """A request that nova cannot save: reading an old one may do so."""

    def save(self) -> None:
        """Do nothing."""


def read(context: Any, server: str) -> request_spec.RequestSpec:
    """Read the request of a server, as nova-scheduler gets it.

    :raises UnknownName: when nova has no such server, or no readable request
    """
    instead = ('Describe the server with --flavor, --image, --project and '
               '--zone instead')
    try:
        spec: request_spec.RequestSpec = _ReadOnly.get_by_instance_uuid(
            context, server)
    except nova_exception.RequestSpecNotFound as exc:
        raise exceptions.UnknownName(
            'nova has no request of server %s: there is no such server, or '
            '"nova-manage db archive_deleted_rows" has removed it. %s'
            % (server, instead)) from exc
    except UNREADABLE as exc:
        raise exceptions.UnknownName(
            'nova cannot read its request of server %s (%s). %s'
            % (server, type(exc).__name__, instead)) from exc
    return spec


def parse(text: str) -> Stored:
    """Parse the JSON of a RequestSpec, as far as aggregates restrict it.

    Nova's objects have to be registered.

    :raises Unreadable: it is of a later nova, or damaged
    """
    if not text:
        raise Unreadable('nova has none')
    try:
        spec = objects.RequestSpec.obj_from_primitive(json.loads(text))
        return Stored(
            request_spec.request(spec), request_spec.names_host(spec))
    except UNREADABLE as exc:
        raise Unreadable('%s: %s' % (type(exc).__name__, exc)) from exc


class Requests:
    """Requests of many servers, most of which differ in the server only."""

    def __init__(self) -> None:
        self._kept = functools.lru_cache(KEPT)(parse)

    def parse(self, text: str, server: str) -> Stored:
        """Parse the JSON of a RequestSpec as if it were of any server.

        :param server: UUID of its server
        :raises Unreadable: it is of a later nova, or damaged
        """
        text = text.replace(_SERVER % server, _ANY)
        return self._kept(text) if len(text) <= LONGEST else parse(text)
