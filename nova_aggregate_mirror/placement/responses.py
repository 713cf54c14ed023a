# SPDX-License-Identifier: Apache-2.0
"""What placement's answers say, and which of them are not placement's."""

import dataclasses
import json
from typing import Any

from oslo_utils import uuidutils
import requests

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors

_CONCURRENT_UPDATE = 'placement.concurrent_update'


@dataclasses.dataclass(frozen=True)
class Provider:
    """What placement says of one resource provider.

    ``generation`` is the provider's when it was read; a write is accepted
    only if it still is.
    """

    uuid: str
    aggregates: frozenset[str]
    generation: int


def document(doing: str, response: requests.Response,
             provider: str | None) -> dict[str, Any]:
    """Read the JSON object of an answer of status 200.

    :param provider: the UUID of the provider that the request names, if any
    :raises MirrorError: any other answer.
    """
    body = _object(response)
    if response.status_code != 200:
        raise _refusal(doing, response, body, provider)
    if body is None:
        raise _malformed(doing, 'the answer is not a JSON object but %s' %
                         response.headers.get('Content-Type', 'untyped'))
    return body


def providers(doing: str, answer: dict[str, Any]) -> frozenset[str]:
    """Read the UUIDs in a list of resource providers."""
    entries = answer.get('resource_providers')
    if not isinstance(entries, list):
        raise _malformed(doing, 'the answer has no list of providers')
    return _uuids(doing, [entry.get('uuid') if isinstance(entry, dict)
                          else None for entry in entries])


def names(doing: str, answer: dict[str, Any]) -> dict[str, str]:
    """Read a list of resource providers: UUIDs to names."""
    providers(doing, answer)
    found = {entry['uuid']: entry.get('name')
             for entry in answer['resource_providers']}
    if not all(isinstance(name, str) for name in found.values()):
        raise _malformed(doing, 'the answer has a provider without a name')
    return found


def provider(doing: str, answer: dict[str, Any], uuid: str) -> Provider:
    """Read the aggregates and the generation of one provider."""
    aggregates = answer.get('aggregates')
    generation = answer.get('resource_provider_generation')
    if not isinstance(aggregates, list):
        raise _malformed(doing, 'the answer has no list of aggregates')
    if not isinstance(generation, int) or isinstance(generation, bool):
        raise _malformed(doing, 'the answer has no provider generation')
    return Provider(uuid, _uuids(doing, aggregates), generation)


def check_written(doing: str, written: Provider, before: Provider,
                  aggregates: frozenset[str]) -> None:
    """Raise MalformedAnswer unless the answer to a PUT confirms it."""
    if written.aggregates != aggregates:
        raise _malformed(doing, 'the answer does not repeat what was sent')
    if written.generation <= before.generation:
        # Without a step nothing kept another writer out.
        raise _malformed(doing, 'the provider generation did not grow')


def _uuids(doing: str, values: list[Any]) -> frozenset[str]:
    # Kept as they are written: an upper-case UUID is another aggregate to
    # placement, and not ours to rewrite.
    if not all(isinstance(value, str) and uuidutils.is_uuid_like(value)
               for value in values):
        raise _malformed(doing, 'the answer has an entry without a UUID')
    return frozenset(values)


def _object(response: requests.Response) -> dict[str, Any] | None:
    """Parse a body; None if it is not a JSON object."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _refusal(doing: str, response: requests.Response,
             body: dict[str, Any] | None, provider: str | None
             ) -> exceptions.MirrorError:
    status = response.status_code
    said = _error_document(body, status)
    detail = str(said.get('detail', ''))
    kind = errors.meaning_of_status(status)
    if status == 404 and provider and provider in detail:
        # The UUID is not in what placement says of a path it does not know.
        kind = exceptions.ProviderNotFound
    elif said.get('code') == _CONCURRENT_UPDATE and status == 409:
        kind = exceptions.GenerationConflict
    elif kind is exceptions.RequestRejected and not said:
        kind = exceptions.MalformedAnswer
    return errors.error(kind, doing, 'answered %d %s' % (
        status, detail or response.reason or ''))


def _error_document(body: dict[str, Any] | None, status: int
                    ) -> dict[str, Any]:
    """The error in placement's error document; empty if it is none."""
    errors = (body or {}).get('errors')
    if not isinstance(errors, list) or not errors:
        return {}
    first = errors[0]
    if not isinstance(first, dict) or first.get('status') != status:
        return {}
    return first


def _malformed(doing: str, happened: str) -> exceptions.MirrorError:
    return errors.error(exceptions.MalformedAnswer, doing, happened)
