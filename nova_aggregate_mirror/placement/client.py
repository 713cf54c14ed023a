# SPDX-License-Identifier: Apache-2.0
"""Placement as the mirror sees it: read memberships, write one provider."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import contextvars
import math
import os
from typing import Any
import urllib.parse
import uuid

from openstack import proxy
from oslo_config import cfg
import requests

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import connection
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.placement import responses

MICROVERSION = '1.36'
# UUIDs in one query: 2 KB, where servers' limits begin at 4.
MANY = 50
_REQUEST_ID: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    'aggregate_mirror_request_id', default=None)

Provider = responses.Provider


class Client:
    """Reads and writes the aggregates of placement's resource providers.

    One object serves all threads or greenlets of a process and the children
    that it forks. Nothing is loaded and nobody is called before the first
    method that needs placement. Each such method raises a ``Retriable`` or
    ``Permanent`` error of this package and nothing else.

    :param conf: nova's configuration with ``[placement]`` registered, or
        another way to reach placement.
    :param request_timeout: seconds for one method outside of ``deadline``;
        ``[aggregate_mirror] request_timeout`` unless given.
    """

    def __init__(self, conf: cfg.ConfigOpts | connection.Access, *,
                 request_timeout: float | None = None) -> None:
        self._access = (connection.Configured(conf)
                        if isinstance(conf, cfg.ConfigOpts) else conf)
        self._timeout = request_timeout
        # By process id: a forked child must not share its parent's sockets.
        self._slots: dict[int, connection.Slot] = {}

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Let all calls inside share so many seconds, token included."""
        with deadline.within(seconds):
            yield

    @contextlib.contextmanager
    def request_id(self, global_request_id: str | None) -> Iterator[None]:
        """Send this as X-Openstack-Request-Id with all calls inside."""
        token = _REQUEST_ID.set(global_request_id)
        try:
            yield
        finally:
            _REQUEST_ID.reset(token)

    def check_credentials(self) -> None:
        """Raise MissingCredentials if [placement] lacks some; no network."""
        self._access.check()

    def providers(self) -> frozenset[str]:
        """Read the UUIDs of all resource providers."""
        return responses.providers(*self._call('GET', '/resource_providers'))

    def probe(self) -> None:
        """Ask for a provider that nobody has: does placement answer?

        :raises MirrorError: it does not.
        """
        responses.providers(*self._call(
            'GET', '/resource_providers?uuid=' + str(uuid.UUID(int=0))))

    def sharing(self) -> Mapping[str, str]:
        """Read the providers that share what they have: UUIDs to names."""
        return responses.names(*self._call(
            'GET', '/resource_providers?required=MISC_SHARES_VIA_AGGREGATE'))

    def members(self, *aggregates: str) -> frozenset[str]:
        """Read the UUIDs of the providers that are in any of these.

        :param aggregates: one at least, and not more than ``MANY``
        """
        which = aggregates[0] if len(aggregates) == 1 else (
            'in:' + ','.join(aggregates))
        query = urllib.parse.urlencode({'member_of': which}, safe=':,')
        return responses.providers(
            *self._call('GET', '/resource_providers?' + query))

    def memberships(self, aggregates: Iterable[str],
                    unlikely: Iterable[str] = (),
                    each: parallel.Each = parallel.Workers().each
                    ) -> Mapping[str, frozenset[str]]:
        """Read which of these aggregates each provider is in.

        :param unlikely: more of them, of which it is expected that no
            provider is in any, so that many are asked for at once
        :param each: how the requests are made
        :returns: every provider, also those that are in none of them
        """
        likely, rare = sorted(set(aggregates)), sorted(set(unlikely))
        chunks = [rare[start:start + MANY]
                  for start in range(0, len(rare), MANY)]
        everyone, *some = each(
            lambda some: self.members(*some) if some else self.providers(),
            # The list of all takes longest and begins first.
            [[], *([aggregate] for aggregate in likely), *chunks])
        rare = [aggregate for chunk, members
                in zip(chunks, some[len(likely):]) if members
                for aggregate in chunk]
        members_of = {**dict(zip(likely, some)),
                      **dict(zip(rare, each(self.members, rare)))}
        found: dict[str, set[str]] = {provider: set() for provider in everyone}
        for aggregate, members in members_of.items():
            for provider in members:
                # One that was created since the list was read.
                found.setdefault(provider, set()).add(aggregate)
        return {provider: frozenset(found[provider])
                for provider in sorted(found)}

    def get(self, provider: str) -> Provider:
        """Read one provider's aggregates and generation.

        :raises ProviderNotFound: placement itself says that it has none.
        """
        return responses.provider(
            *self._call('GET', _path(provider), provider), provider)

    def put(self, provider: Provider, aggregates: frozenset[str]) -> Provider:
        """Write a provider's aggregates, if it is as it was when read.

        :returns: the provider as written, with its new generation
        :raises GenerationConflict: it is not; nothing was written.
        :raises ProviderNotFound: placement itself says that it has none.
        :raises Retriable: otherwise it is not known whether it was written.
        """
        doing, answer = self._call(
            'PUT', _path(provider.uuid), provider.uuid, json={
                'aggregates': sorted(aggregates),
                'resource_provider_generation': provider.generation})
        written = responses.provider(doing, answer, provider.uuid)
        responses.check_written(doing, written, provider, aggregates)
        return written

    def endpoint(self) -> str:
        """Describe where placement is looked for; raises nothing."""
        region, interfaces, url = self._access.place()
        slot = self._slot()
        if slot.client is not None:
            url = slot.endpoint or url
        return 'region %s, interface %s, endpoint %s' % (
            region or 'not set', interfaces,
            errors.without_secrets(url or 'not known'))

    def _call(self, method: str, path: str, provider: str | None = None,
              **body: Any) -> tuple[str, dict[str, Any]]:
        """Get placement's answer of status 200, and what an error names."""
        doing = '%s %s' % (method, path)
        slot = self._slot()
        client = None
        try:
            with self._bounded(), errors.translated(doing):
                for _attempt in range(2):
                    client, token = self._client(slot, doing)
                    response = _send(client, slot.endpoint.rstrip('/') + path,
                                     token, method, body)
                    if response.status_code != 401:
                        break
                    # The token was revoked, or keystone lost its keys.
                    slot.drop(client)
            return doing, responses.document(doing, response, provider)
        except exceptions.STALE_ENDPOINT:
            # Without one, it was the token of the client there that failed.
            slot.drop(client or slot.client)
            raise
        except exceptions.DeadlineExceeded:
            # Placement may have left this address without a refusal. Whoever
            # waited for a token in vain has no client.
            slot.drop(client)
            raise

    def _slot(self) -> connection.Slot:
        return self._slots.setdefault(os.getpid(), connection.Slot())

    def _bounded(self) -> contextlib.AbstractContextManager[None]:
        seconds = self._timeout
        if deadline.remaining() < math.inf:
            seconds = math.inf
        elif seconds is None:
            seconds = self._access.timeout
        return deadline.within(seconds)

    def _client(self, slot: connection.Slot, doing: str
                ) -> tuple[proxy.Proxy, Mapping[str, str]]:
        """Return a client that has the endpoint, and the token's headers."""
        # Keystoneauth has locks of its own around tokens, but without limit.
        if not slot.lock.acquire(timeout=deadline.remaining()):
            raise TimeoutError('another request is still waiting for a token')
        try:
            client = slot.client
            if client is None:
                client = self._access.client()
                # Asked for once: it is looked up in the whole catalog.
                # Without one keystoneauth refuses the request.
                with errors.parsing(doing):
                    slot.endpoint = client.get_endpoint() or ''
                slot.client = client
            with errors.parsing(doing):
                return client, client.session.get_auth_headers() or {}
        finally:
            slot.lock.release()


def _send(client: proxy.Proxy, url: str, token: Mapping[str, str],
          method: str, body: dict[str, Any]) -> requests.Response:
    # The SDK's own request asks for the token's project, and may answer from
    # a cache.
    return client.session.request(
        url, method, microversion=MICROVERSION,
        microversion_service_type='placement',
        headers={**token, 'Accept': 'application/json'}, raise_exc=False,
        # Whatever the session says of retries, the deadline is the limit.
        connect_retries=0,
        # A token is fetched where waiting for it has a limit.
        authenticated=False,
        global_request_id=_REQUEST_ID.get(), **body)


def _path(provider: str) -> str:
    return '/resource_providers/%s/aggregates' % provider
