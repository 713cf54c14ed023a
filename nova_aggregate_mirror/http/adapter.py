# SPDX-License-Identifier: Apache-2.0
"""An HTTP transport that ends every request, body included, by the deadline.

A socket timeout bounds one read; a server that sends a byte a second never
meets it. Here every connect, handshake and read gets what is left of the
deadline. Name resolution is the one exception: the system's resolver has a
timeout of its own.
"""

import functools
import http.client
import io
import socket
from typing import Any

from keystoneauth1 import session
import requests
import urllib3

from nova_aggregate_mirror.limits import deadline

# More threads than this at once connect anew for each request.
KEPT_CONNECTIONS = 64


class _Reader(io.RawIOBase):
    """The raw end of a response: each read gets what the deadline leaves."""

    def __init__(self, raw: Any, sock: socket.socket) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._ceiling = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        with deadline.noted(TimeoutError):
            self._sock.settimeout(deadline.allowance(self._ceiling))
            count: int | None = self._raw.readinto(buffer)
            return count

    def close(self) -> None:
        # The socket counts its readers and closes with the last one.
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response whose status, headers and body are read by a _Reader."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Reader(self.fp.detach(), sock))

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if amt and not data and self.length:
            # Urllib3 before 2.0 takes a body that is cut for a whole one.
            raise http.client.IncompleteRead(data, self.length)
        return data


class _Connection:
    """What a bounded connection does otherwise than the one it mixes in."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        # The class that this is mixed into has it.
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]
        # A TLS handshake that may follow gets no more than what is left.
        sock.settimeout(deadline.allowance(sock.gettimeout()))
        return sock


@functools.cache
def _bounded(pool: Any) -> Any:
    connection = type('BoundedConnection', (_Connection, pool.ConnectionCls),
                      {'__module__': __name__})
    return type('BoundedPool', (pool,),
                {'__module__': __name__, 'ConnectionCls': connection})


def _bind(manager: urllib3.PoolManager) -> None:
    # Derived from what the manager has, because a SOCKS proxy has its own.
    manager.pool_classes_by_scheme = {
        scheme: _bounded(pool)
        for scheme, pool in manager.pool_classes_by_scheme.items()}


class Adapter(session.TCPKeepAliveAdapter):
    """A transport for requests whose every answer ends by the deadline.

    Mount it for ``http://`` and ``https://``. A shorter timeout of the
    caller is kept. Raises what requests raises: ``Timeout``, or a
    ``ConnectionError`` around a timeout when the body is cut.

    :param auth_url: keystone's, where one refusal would never end. When the
        discovery that precedes a token is answered with 401, keystoneauth
        asks again with a token, and waits for ever for the lock that it holds
        to fetch one. With 403 it goes on without discovery.
    """

    def __init__(self, *args: Any, auth_url: str = '', **kwargs: Any) -> None:
        self._auth_url = auth_url.rstrip('/')
        super().__init__(*args, **kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _bind(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not known:
            _bind(manager)
        return manager

    def send(self, request: requests.PreparedRequest, stream: bool = False,
             timeout: Any = None, *args: Any, **kwargs: Any
             ) -> requests.Response:
        """Send one request, as requests' own adapter does.

        :param timeout: seconds or None, or a pair of them for connecting
            and reading.
        """
        connect, read = (
            timeout if isinstance(timeout, tuple) else (timeout, timeout))
        try:
            left = deadline.allowance(None)
            # A name may have an IPv6 and an IPv4 address that both hang,
            # and each is given the whole time for connecting.
            half = None if left is None else left / 2
            bounds: Any = (_least(connect, half), _least(read, left))
        except TimeoutError as exc:
            raise requests.exceptions.ConnectTimeout(
                exc, request=request) from exc
        with deadline.noted(requests.exceptions.Timeout):
            response = super().send(request, stream, bounds, *args, **kwargs)
        if (response.status_code == 401 and request.method == 'GET'
                and (request.url or '').rstrip('/') == self._auth_url):
            response.status_code = 403
        return response


def bound(given: session.Session) -> None:
    """Let every answer to a session that somebody else made end in time."""
    for scheme, old in list(given.session.adapters.items()):
        tls = {name: getattr(old, name)
               for name in ('tls_ciphers', 'tls_min_version')
               if getattr(old, name, None)}
        given.session.mount(scheme, Adapter(
            pool_maxsize=KEPT_CONNECTIONS,
            auth_url=getattr(given.auth, 'auth_url', None) or '', **tls))


def _least(one: float | None, other: float | None) -> float | None:
    given = [seconds for seconds in (one, other) if seconds is not None]
    return min(given, default=None)
