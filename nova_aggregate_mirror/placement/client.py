# SPDX-License-Identifier: Apache-2.0
"""Placement client: read memberships, write the aggregates of a provider.

Long because it also parses and checks what placement answers.
"""

from collections import abc
import contextlib
import contextvars
import dataclasses
import functools
import json
import math
import os
import time
from typing import Any
import urllib.parse
import uuid

from oslo_config import cfg
from oslo_log import log as logging
import requests

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import connection
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import uuids

LOG = logging.getLogger(__name__)
MICROVERSION = '1.36'
# For lists: the first that has member_of, and the fewest links per provider.
LISTS = '1.3'
MANY = 50
"""UUIDs per query: 2 KB of URL; the lowest limits of web servers are 4 KB."""
AGGREGATES = '/resource_providers/%s/aggregates'
SHARING = 'MISC_SHARES_VIA_AGGREGATE'
LONGEST = 200  # Characters of a path in an error message.
_REQUEST_ID: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    'aggregate_mirror_request_id', default=None)
Parse = abc.Callable[[errors.Call, dict[str, Any]], isolation.Result]


@dataclasses.dataclass(frozen=True)
class Provider:
    """Aggregates of a resource provider, as placement returned them."""

    uuid: str
    aggregates: frozenset[str]
    generation: int
    """Placement accepts a write only if it has not changed."""


class Client:
    """Client for the aggregates of placement's resource providers.

    All threads or greenlets of a process and forked children can share it.
    Nothing is loaded and no request is made before the first method that needs
    placement. Each such method raises only ``Retriable`` and ``Permanent``.

    :param conf: nova's configuration, or an access, which forks would share
    :param request_timeout: seconds per method call outside of a deadline;
        defaults to ``[aggregate_mirror] request_timeout``
    :param logs_first_answer: whether to log it, and from where, per process
    :param reads_only: whether any request but GET is an error of the program
    """

    def __init__(self, conf: cfg.ConfigOpts | connection.Access, *,
                 request_timeout: float | None = None,
                 logs_first_answer: bool = False, reads_only: bool = False
                 ) -> None:
        self._open: abc.Callable[[], connection.Access] = lambda: (
            connection.configured(conf) if isinstance(conf, cfg.ConfigOpts)
            else conf)
        # By process id: forked children must not share their parent's sockets.
        self._accesses: dict[int, connection.Access] = {}
        self._timeout = request_timeout
        self._logs_first_answer = logs_first_answer
        self._reads_only = reads_only
        self._limits: dict[str, float] = {}
        """Seconds for an attempt at each kind of request, by the last ones."""
        self.provider_count: float = math.inf
        """When last listed, or a lower bound; infinite while it is unknown."""

    @contextlib.contextmanager
    def request_id(self, global_request_id: str | None) -> abc.Iterator[None]:
        """Send this as X-Openstack-Request-Id with all calls inside."""
        token = _REQUEST_ID.set(global_request_id)
        try:
            yield
        finally:
            _REQUEST_ID.reset(token)

    @property
    def is_connected(self) -> bool:
        """Whether there is a client of the SDK, with a token and endpoint."""
        return self._access.target is not None

    def release(self) -> None:
        """Close the idle connections, but keep the token."""
        if target := self._access.target:
            target.close()

    def providers(self, **query: str) -> frozenset[str]:
        """Read the UUIDs of the resource providers that meet a query.

        :raises RequestRejected: for an unknown trait, or an impossible name
        """
        path = '/resource_providers'
        if query:
            path += '?' + urllib.parse.urlencode(query, safe=':,')
        version = MICROVERSION if query.keys() - {'member_of'} else LISTS
        return self.read(path, parse_list, version=version)

    def probe(self) -> None:
        """Request a provider that cannot exist, to check placement."""
        self.providers(uuid=str(uuid.UUID(int=0)))

    def members(self, *aggregates: str) -> frozenset[str]:
        """Read the UUIDs of the providers in any of the aggregates."""
        providers: frozenset[str] = frozenset()
        for start in range(0, len(aggregates), MANY):
            some = aggregates[start:start + MANY]
            prefix = 'in:' if len(some) > 1 else ''
            providers |= self.providers(member_of=prefix + ','.join(some))
        return providers

    def ask(self, request: abc.Callable[[str], isolation.Result],
            providers: abc.Iterable[str], for_each: isolation.ForEach,
            patience: float = 0.0) -> isolation.Answers[str, isolation.Result]:
        """Send a request about each provider; see ``isolation.ask``."""
        return isolation.ask(
            request, providers, for_each, self.probe, patience)

    def get(self, provider: str) -> Provider:
        """Read the aggregates and the generation of a provider."""
        return self.read(AGGREGATES % provider, functools.partial(
            parse_provider, provider=provider), provider)

    def aggregates(self, provider: str) -> frozenset[str]:
        """Read the aggregates of a provider; empty if it does not exist."""
        try:
            return self.get(provider).aggregates
        except exceptions.ProviderNotFound:
            return frozenset()

    def put(self, provider: Provider, aggregates: frozenset[str]) -> None:
        """Write a provider's aggregates unless its generation has changed.

        :raises GenerationConflict: the generation has changed
        :raises ProviderNotFound: placement does not have the provider
        :raises Retriable: any other failure; the write may have succeeded
        """
        with self._bounded():
            call, answer = self._call(
                'PUT', AGGREGATES % provider.uuid, provider.uuid, json={
                    'aggregates': sorted(aggregates),
                    'resource_provider_generation': provider.generation})
            written = parse_provider(call, answer, provider.uuid)
            if written.aggregates != aggregates:
                raise call.malformed('other aggregates than those written')
            if written.generation <= provider.generation:
                # Without an increment, concurrent writers were not excluded.
                raise call.malformed('a generation that did not increase')

    def endpoint(self) -> str:
        """Describe where placement is, as far as it is known."""
        target = self._access.target
        if target is None:
            return 'endpoint unknown'
        url = errors.without_secrets(target.endpoint or 'unknown')
        return '%s, endpoint %s' % (target.selection, url)

    @property
    def options(self) -> str:
        """The option that selects the endpoint."""
        return self._access.party().selection

    def read(self, path: str, parse: Parse[isolation.Result],
             provider: str | None = None, version: str = MICROVERSION
             ) -> isolation.Result:
        """Send a GET, and parse its answer.

        :param parse: takes the request, for errors, and the JSON object
        :param provider: the UUID of the provider that the path names, if any
        """
        def request() -> isolation.Result:
            return parse(*self._call('GET', path, provider, version))

        with self._bounded():
            return transport.repeating(request)()

    def _call(self, method: str, path: str, provider: str | None = None,
              version: str = MICROVERSION, **body: Any
              ) -> tuple[errors.Call, dict[str, Any]]:
        """Send a request; return it, for errors, and the JSON object."""
        request = '%s %s' % (method, path[:LONGEST])
        if self._reads_only and method != 'GET':
            raise RuntimeError(request + ', but placement is only observed')
        access, target = self._access, None
        call = errors.Call(access.party, request, access.endpoint)
        options = dict(
            body, microversion=version, microversion_service_type='placement',
            global_request_id=_REQUEST_ID.get(), raise_exc=False,
            # Only the deadline limits, even if the session has retries.
            connect_retries=0,
            # The token has been fetched, where waiting is bounded.
            authenticated=False)
        kind = method + path.partition('=')[0].replace(str(provider), '')
        try:
            for _attempt in range(2):
                with errors.translated(call):
                    target, token = access.connect()
                with self._limited(kind), errors.translated(call):
                    # The SDK's own request method looks up the token's project
                    # and may return a cached response.
                    response = target.client.session.request(
                        target.endpoint.rstrip('/') + path, method,
                        headers={**token, 'Accept': 'application/json'},
                        **options)
                if response.status_code != 401 or transport.ATTEMPT.get():
                    break
                # The token was revoked, or keystone has lost its keys; a
                # repetition has a new one, for another backend.
                access.drop(target)
        except exceptions.NotAuthorized:
            if target is None:
                # No token at all: the next client reads the credentials again.
                access.drop(access.target)
            raise
        call = dataclasses.replace(call, url=access.endpoint)
        document = parse_document(call, response, provider)
        if self._logs_first_answer and not access.has_answered:
            access.has_answered = True
            LOG.info('Placement answers: %s', self.endpoint())
        return call, document

    @property
    def _access(self) -> connection.Access:
        access = self._accesses.get(os.getpid())
        return access or self._accesses.setdefault(os.getpid(), self._open())

    @contextlib.contextmanager
    def _limited(self, kind: str) -> abc.Iterator[None]:
        """Limit an attempt: of several backends, one may be silent."""
        began, limit = time.monotonic(), self._limits.get(kind, math.inf)
        limit *= 2.0 ** transport.ATTEMPT.get()
        if deadline.remaining() < limit + isolation.PATIENCE:
            limit = math.inf  # Another attempt would not have enough time.
        try:
            with deadline.within(limit):
                yield
        except exceptions.DeadlineExceeded as exc:
            exc.is_repeatable = time.monotonic() - began >= limit
            raise
        limit = isolation.SLOWER * (time.monotonic() - began)
        self._limits[kind] = max(
            isolation.QUICK, limit, 0.9 * self._limits.get(kind, 0.0))

    @contextlib.contextmanager
    def _bounded(self) -> abc.Iterator[None]:
        """Apply this client's timeout, unless the caller has a deadline."""
        access, seconds = self._access, math.inf
        if deadline.remaining() == math.inf:
            seconds = (access.timeout() if self._timeout is None
                       else self._timeout)
        try:
            with deadline.within(seconds):
                yield
        except exceptions.MirrorError as exc:
            if self.is_connected and exc.may_have_moved:
                # The next request reads the catalog again.
                access.may_have_moved = True
            raise


def parse_document(call: errors.Call, response: requests.Response,
                   provider: str | None) -> dict[str, Any]:
    """Return the JSON object of a response with 200; raise for any other."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    if response.status_code != 200:
        raise _refusal(call, response, body, provider)
    if not isinstance(body, dict):
        raise errors.unexpected(
            call, response, kind=exceptions.MalformedAnswer,
            cause=causes.UNUSABLE)
    return body


def parse_list(call: errors.Call, answer: dict[str, Any]) -> frozenset[str]:
    """Parse the UUIDs in a list of resource providers."""
    entries = answer.get('resource_providers')
    if not isinstance(entries, list):
        raise call.malformed('no list of providers')
    values = [entry.get('uuid') if isinstance(entry, dict) else None
              for entry in entries]
    return frozenset(map(uuids.canonical, _uuids(call, values)))


def parse_provider(call: errors.Call, answer: dict[str, Any], provider: str
                   ) -> Provider:
    """Parse the aggregates and the generation of a provider."""
    aggregates = answer.get('aggregates')
    generation = answer.get('resource_provider_generation')
    if not isinstance(aggregates, list):
        raise call.malformed('no list of aggregates')
    if not isinstance(generation, int) or isinstance(generation, bool):
        raise call.malformed('no provider generation')
    return Provider(provider, _uuids(call, aggregates), generation)


def _uuids(call: errors.Call, values: list[Any]) -> frozenset[str]:
    """Check that all are UUIDs, and return them as they are spelled."""
    if not all(isinstance(value, str) and uuids.is_uuid(value)
               for value in values):
        raise call.malformed('an entry without a UUID')
    return frozenset(values)


def _refusal(call: errors.Call, response: requests.Response,
             body: object, provider: str | None) -> exceptions.MirrorError:
    """Create the error for a status other than 200."""
    error: dict[str, Any] = {}
    status = response.status_code
    match body:
        # An error document of placement itself.
        case {'errors': [{'status': code} as document, *_]} if code == status:
            error = document
    detail = str(error.get('detail', ''))
    cause = None
    kind = library_errors.meaning_of_status(status)
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
