# SPDX-License-Identifier: Apache-2.0
"""Requests that nova has stored, as far as aggregates restrict them."""

import functools
import json

from nova import objects

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_spec

CACHE_SIZE, MAX_LENGTH = 2048, 16384
"""Number and length of the texts in the cache. Nova writes ASCII: 32 MB."""
_SERVER = '"instance_uuid": "%s"'
_ANY = _SERVER % '00000000-0000-0000-0000-000000000000'


class Unreadable(Exception):
    """Nova cannot read the request, with the reason."""


StoredRequest = tuple[constraints.ServerRequest, bool]
"""A request, and whether it names its host."""


def parse(text: str) -> StoredRequest:
    """Parse the JSON of a RequestSpec, as far as aggregates restrict it.

    Nova's objects have to be registered.

    :raises Unreadable: it is of a later nova, or damaged
    """
    if not text:
        raise Unreadable('nova has none')
    try:
        spec = objects.RequestSpec.obj_from_primitive(json.loads(text))
        return request_spec.request(spec), request_spec.names_host(spec)
    except request_spec.UNREADABLE as exc:
        raise Unreadable('%s: %s' % (type(exc).__name__, exc)) from exc


class RequestCache:
    """Requests of many servers, most of which differ in the server only."""

    def __init__(self) -> None:
        self._parsed = functools.lru_cache(CACHE_SIZE)(parse)

    def parse(self, text: str, server: str) -> StoredRequest:
        """Parse equal requests once, after replacing the server's UUID."""
        text = text.replace(_SERVER % server, _ANY)
        return self._parsed(text) if len(text) <= MAX_LENGTH else parse(text)
