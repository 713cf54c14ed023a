# SPDX-License-Identifier: Apache-2.0
"""Requests to the compute API for the entries of a list."""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import TypeVar

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.source import api_responses

T = TypeVar('T')


class Api:
    """Reads from nova-api.

    :param nova: a client of python-novaclient
    :param timeout: seconds per request
    """

    def __init__(self, nova: Any, timeout: float) -> None:
        self._client = nova.client
        self._timeout = timeout

    def entries(self, path: str, what: str,
                parse: Callable[[errors.Call, dict[str, Any]], T],
                microversion: str = '') -> list[T]:
        """Read a list.

        :param what: the key of the list in the document
        :param parse: called with the call, for errors, and each entry
        :param microversion: instead of that of the client
        :raises UnexpectedNova: nova does not have the microversion
        """
        call = errors.Call(
            'nova-api', 'GET %s' % path, kind=exceptions.NovaUnavailable,
            selection='region %s, interface %s' % (
                self._client.region_name or 'any', self._client.interface))
        with deadline.within(self._timeout), errors.translated(call):
            # The request parses the token and the catalog, then the body.
            with errors.parsing():
                response, body = self._get(path, microversion)
            call = dataclasses.replace(call, url=response.url or '')
            if response.status_code != 200:
                raise api_responses.refusal(call, response, body)
            entries = body.get(what) if isinstance(body, dict) else None
            if not isinstance(entries, list) or not all(
                    isinstance(entry, dict) for entry in entries):
                raise call.malformed('no list of %s' % what)
            return [parse(call, entry) for entry in entries]

    def _get(self, path: str, microversion: str) -> tuple[Any, Any]:
        client = self._client
        if not microversion:
            # The client's managers write a completion cache to the user's
            # home directory.
            response, body = client.get(path, raise_exc=False)
            return response, body
        # The client refuses microversions that are later than itself.
        response = client.session.get(
            path, raise_exc=False, microversion=microversion,
            endpoint_override=client.endpoint_override, endpoint_filter={
                'service_type': client.service_type,
                'interface': client.interface,
                'region_name': client.region_name},
            headers={'Accept': 'application/json'})
        try:
            return response, response.json()
        except ValueError:
            # A status may have a page of a proxy.
            return response, None
