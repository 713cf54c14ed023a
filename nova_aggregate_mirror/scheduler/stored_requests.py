# SPDX-License-Identifier: Apache-2.0
"""Requests that nova has stored, as far as host aggregates restrict them."""

import dataclasses
import json

from nova import exception as nova_exception
from nova import objects
from oslo_versionedobjects import exception as object_exception

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_spec


class Unreadable(Exception):
    """Nova cannot read the request, with the reason."""


@dataclasses.dataclass(frozen=True)
class Stored:
    """A request, and whether it names its host."""

    request: constraints.Request
    forced: bool


def parse(text: str) -> Stored:
    """Parse the JSON of a RequestSpec, as nova does.

    Nova's objects have to be registered.

    :raises Unreadable: it is of a later nova, or damaged
    """
    if not text:
        raise Unreadable('nova has none')
    try:
        spec = objects.RequestSpec.obj_from_primitive(json.loads(text))
        return Stored(
            request_spec.request(spec), request_spec.names_host(spec))
    except (ValueError, TypeError, LookupError, AttributeError,
            NotImplementedError, nova_exception.NovaException,
            object_exception.VersionedObjectsException) as exc:
        raise Unreadable('%s: %s' % (type(exc).__name__, exc)) from exc
