# SPDX-License-Identifier: Apache-2.0
"""Requests to the compute API for the entries of a list."""

from collections.abc import Callable
from typing import Any
from typing import TypeVar

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
                parse: Callable[[str, dict[str, Any]], T],
                microversion: str = '') -> list[T]:
        """Read a list.

        :param what: the key of the list in the document
        :param parse: called with the request, for messages, and each entry
        :param microversion: instead of that of the client
        :raises UnexpectedNova: nova does not have the microversion
        """
        doing = 'GET %s from nova-api' % path
        with deadline.within(self._timeout), api_responses.translated(doing):
            # The request parses the token and the catalog, then the body.
            with errors.parsing(doing):
                status, body = self._get(path, microversion)
            if status != 200:
                raise api_responses.refusal(doing, status, body)
            entries = body.get(what) if isinstance(body, dict) else None
            if not isinstance(entries, list) or not all(
                    isinstance(entry, dict) for entry in entries):
                raise api_responses.malformed(
                    doing, 'the response has no list of %s' % what)
            return [parse(doing, entry) for entry in entries]

    def _get(self, path: str, microversion: str) -> tuple[int, Any]:
        client = self._client
        if not microversion:
            # The client's managers write a completion cache to the user's
            # home directory.
            response, body = client.get(path, raise_exc=False)
            return response.status_code, body
        # The client refuses microversions that are later than itself.
        response = client.session.get(
            path, raise_exc=False, microversion=microversion,
            endpoint_override=client.endpoint_override, endpoint_filter={
                'service_type': client.service_type,
                'interface': client.interface,
                'region_name': client.region_name},
            headers={'Accept': 'application/json'})
        try:
            return response.status_code, response.json()
        except ValueError:
            # A status may have a page of a proxy.
            return response.status_code, None
