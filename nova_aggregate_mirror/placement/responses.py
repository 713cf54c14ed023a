# SPDX-License-Identifier: Apache-2.0
"""Responses of placement: parsing, validation and error translation."""

import dataclasses
import json
from typing import Any

from oslo_utils import uuidutils
import requests

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror import uuids


@dataclasses.dataclass(frozen=True)
class Provider:
    """Aggregates of a resource provider, as placement returned them."""

    uuid: str
    aggregates: frozenset[str]
    generation: int
    """Placement accepts a write only if it has not changed."""


def document(call: errors.Call, response: requests.Response,
             provider: str | None) -> dict[str, Any]:
    """Parse the JSON object of a response, for any or for one provider."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    if response.status_code != 200:
        raise _refusal(call, response, body, provider)
    if not isinstance(body, dict):
        raise errors.unexpected(call, response, '', exceptions.MalformedAnswer,
                                causes.UNUSABLE)
    return body


def providers(call: errors.Call, answer: dict[str, Any]) -> frozenset[str]:
    """Parse the UUIDs in a list of resource providers."""
    entries = answer.get('resource_providers')
    if not isinstance(entries, list):
        raise call.malformed('no list of providers')
    values = [entry.get('uuid') if isinstance(entry, dict) else None
              for entry in entries]
    return frozenset(map(uuids.canonical, _uuids(call, values)))


def provider(call: errors.Call, answer: dict[str, Any], uuid: str) -> Provider:
    """Parse the aggregates and the generation of a provider."""
    aggregates = answer.get('aggregates')
    generation = answer.get('resource_provider_generation')
    if not isinstance(aggregates, list):
        raise call.malformed('no list of aggregates')
    if not isinstance(generation, int) or isinstance(generation, bool):
        raise call.malformed('no provider generation')
    return Provider(uuid, _uuids(call, aggregates), generation)


def _uuids(call: errors.Call, values: list[Any]) -> frozenset[str]:
    """Check that all are UUIDs, and return them as they are spelled."""
    if not all(isinstance(value, str) and uuidutils.is_uuid_like(value)
               for value in values):
        raise call.malformed('an entry without a UUID')
    return frozenset(values)


def _refusal(call: errors.Call, response: requests.Response,
             body: object, provider: str | None) -> exceptions.MirrorError:
    """Create the error for a status other than 200."""
    status, error = response.status_code, dict[str, Any]()
    match body:
        case {'errors': [{'status': code} as document, *_]} if code == status:
            # An error document of placement itself.
            error = document
    detail = str(error.get('detail', ''))
    kind, cause = library_errors.meaning_of_status(status), None
    if status == 404 and provider and provider in detail:
        # Placement does not quote the UUID in the 404 of an unknown path.
        kind, cause = exceptions.ProviderNotFound, causes.NO_PROVIDER
    elif error.get('code') == 'placement.concurrent_update' and status == 409:
        kind, cause = exceptions.GenerationConflict, causes.CHANGED
    elif kind is exceptions.RequestRejected and not error:
        # Something else than placement has answered.
        kind = exceptions.MalformedAnswer
    refusal = errors.unexpected(call, response, detail, kind, cause)
    # Only placement itself understands the request.
    is_understood = bool(cause) or (status == 400 and bool(error))
    refusal.may_have_moved = not is_understood
    return refusal
