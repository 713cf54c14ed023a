# SPDX-License-Identifier: Apache-2.0
"""HTTP transport that bounds requests by the deadline, and repeats reads.

A socket timeout bounds a single read, and never a body that comes byte by
byte. Here the time left bounds all but name resolution. It is long because
each layer of the libraries has waits of its own.
"""

from collections import abc
import contextvars
import functools
import http.client
import io
import math
import socket
import time
from typing import Any
from typing import cast
from typing import TypeVar
import urllib.parse

from keystoneauth1 import session
import requests
import urllib3

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline

REPEATS = 2  # Further attempts at a read that fails.
ATTEMPT: contextvars.ContextVar[float] = contextvars.ContextVar(
    'aggregate_mirror_attempt', default=0)
"""How many attempts there were at the request; infinite for a last one."""
Read = TypeVar('Read', bound=abc.Callable[..., Any])
KEPT_CONNECTIONS = 64  # Further threads open one each time.
LONGEST_BODY = 128 * 2 ** 20
"""Bytes of a body, after decompression; placement's longest answer, 20,000
allocation candidates with 100 traits each, takes 59 MiB."""
PART = 8 * 2 ** 10  # Bytes to decompress at once; gzip expands 1032 times.
ENCODINGS = 'gzip', 'deflate'  # Others, or several, expand a part much more.


class _Reader(io.RawIOBase):
    """Raw reader of a response; bounds each read by the deadline."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        super().__init__()
        self._raw, self._sock = raw, sock
        self._ceiling = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(deadline.allowance(self._ceiling))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        # The socket counts its readers, and is closed with the last of them.
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """Response with status, headers and body read through a _Reader."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Reader(self.fp.detach(), sock))


class _BoundedConnection:
    """Mix-in that makes a connection class of urllib3 bounded."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]
        # Bound the TLS handshake that may follow by the time left.
        sock.settimeout(deadline.allowance(sock.gettimeout()))
        return sock


class _FreshPool:
    """Mix-in for pools of urllib3; a repetition uses no kept connection."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        if ATTEMPT.get():
            connection.close()  # The next request on it connects again.
        return connection


@functools.cache
def _bounded_pool(pool: Any) -> Any:
    """Derive a class of connection pools with bounded connections."""
    bases = _BoundedConnection, pool.ConnectionCls
    attributes = {'ConnectionCls': type('BoundedConnection', bases, {})}
    return type('BoundedPool', (_FreshPool, pool), attributes)


def _bound_pools(manager: urllib3.PoolManager) -> None:
    """Bound a manager's pools; a SOCKS proxy has pool classes of its own."""
    manager.pool_classes_by_scheme = {
        scheme: _bounded_pool(pool)
        for scheme, pool in manager.pool_classes_by_scheme.items()}


class Adapter(session.TCPKeepAliveAdapter):
    """Transport adapter for requests that bounds responses by the deadline.

    A shorter timeout of the caller still applies. A request without a deadline
    raises ``RuntimeError``, a body that is too long ``UnreadableBody``.

    :param is_shared: whether other code sends requests, which have no deadline
    :param auth_url: URL of keystone, where a 401 is changed to 403: after a
        401 in a discovery before a token request, keystoneauth waits forever
        for the lock that it holds to fetch that token
    """

    def __init__(self, *args: Any, auth_url: str = '',
                 is_shared: bool = False, **kwargs: Any) -> None:
        self._is_shared = is_shared
        self._auth_url = auth_url.rstrip('/') + '/'
        super().__init__(*args, **kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _bound_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        exists = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not exists:
            _bound_pools(manager)
        return manager

    def send(self, request: requests.PreparedRequest, stream: bool = False,
             timeout: Any = None, *args: Any, **kwargs: Any
             ) -> requests.Response:
        if not self._is_shared and deadline.remaining() == math.inf:
            raise RuntimeError('a request was made without a deadline')
        request.headers['Accept-Encoding'] = ', '.join(ENCODINGS)
        url = request.url or ''
        is_below = (url + '/').startswith(self._auth_url)
        # Keystone may redirect a token request out of ``auth_url``.
        is_login = url.endswith('/auth/tokens') or (
            is_below and 'X-Auth-Token' not in request.headers)
        send_unbounded = super().send

        def send_bounded() -> requests.Response:
            response = send_unbounded(
                request, stream, _bounds(request, timeout), *args, **kwargs)
            if not stream:
                _read_body(response)
            return response

        response = errors.observe(send_bounded, request, is_login)
        if response.is_redirect:
            # RFC 9110 allows a relative URL here, keystoneauth does not.
            response.headers['Location'] = urllib.parse.urljoin(
                url, response.headers['Location'])
        if (response.status_code == 401 and request.method == 'GET'
                and url.rstrip('/') + '/' == self._auth_url):
            response.status_code = 403
        return response


def _bounds(request: requests.PreparedRequest, timeout: Any) -> Any:
    """Return the timeouts for connect and read, bounded by the deadline."""
    try:
        seconds = deadline.allowance(None)
    except TimeoutError as exc:
        raise requests.exceptions.ConnectTimeout(exc, request=request) from exc
    if seconds is None:
        return timeout
    ceiling = timeout or seconds
    # A name may have two addresses, each with this timeout for a connection.
    return min(ceiling, seconds / 2), min(ceiling, seconds)


def _read_body(response: requests.Response) -> None:
    """Read the body as requests would do, at most ``LONGEST_BODY``."""
    encoding = response.headers.get('Content-Encoding', '')
    if encoding.lower() not in ('', 'identity', *ENCODINGS):
        response.close()
        raise library_errors.UnreadableBody(
            'a body with the encoding %s, which was not requested' % encoding)
    body = io.BytesIO()
    for part in response.iter_content(PART):
        body.write(part)
        if body.tell() > LONGEST_BODY:
            response.close()
            raise library_errors.UnreadableBody(
                'a body longer than %d bytes' % LONGEST_BODY)
    # Requests keeps a body there, and has no method to set it.
    response._content = body.getvalue()


def bound(existing: session.Session, is_shared: bool = True) -> None:
    """Mount bounded adapters in a session; see ``Adapter``."""
    # Sessions of older keystoneauth have no TLS options.
    tls = {name: getattr(existing, name)
           for name in ('tls_ciphers', 'tls_min_version')
           if getattr(existing, name, None)}
    for scheme in list(existing.session.adapters):
        existing.session.mount(scheme, Adapter(
            pool_maxsize=KEPT_CONNECTIONS, is_shared=is_shared,
            auth_url=getattr(existing.auth, 'auth_url', None) or '', **tls))


def repeating(read: Read) -> Read:
    """Let a function that reads do so again, if new connections may help.

    One of several backends behind an address may be silent, answer 5xx, 429 or
    with a page that is not the service's, and a kept connection leads to the
    same one, or is closed while the request is on its way. The deadline of the
    caller bounds all of it, and a ``Retry-After`` that does not fit in it ends
    the repetition. The error is that of the last attempt that had time.
    """
    @functools.wraps(read)
    def call(*args: Any, **kwargs: Any) -> Any:
        earlier: list[exceptions.MirrorError] = []
        left = REPEATS
        while True:
            token = ATTEMPT.set(len(earlier))
            try:
                return read(*args, **kwargs)
            except exceptions.MirrorError as exc:
                if exc.failure.kind == causes.OUT_OF_TIME.kind:
                    # What took the time is the cause. It is taken out, because
                    # its traceback will refer to this frame.
                    raise earlier.pop() if earlier else exc from None
                pause = exc.retry_after
                if not left:
                    # The caller need not pause for a Retry-After once more.
                    exc.retry_after = 0.0
                    raise
                if not exc.is_repeatable or pause >= deadline.remaining():
                    raise
                left -= not isinstance(exc, exceptions.DeadlineExceeded)
                earlier.append(exc.with_traceback(None))
            finally:
                ATTEMPT.reset(token)
            time.sleep(pause)

    return cast(Read, call)
