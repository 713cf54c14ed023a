# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections import abc
import contextlib
import json
import socket
import socketserver
import threading
import time
from typing import Any
from wsgiref import simple_server

import prometheus_client

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

CLIENT_TIMEOUT = 5.0
"""Seconds that a connection may last, from its start to its last byte.

A timeout for each read would never end a client that sends a byte now and
then.
"""
MOST_CLIENTS = 20
"""Connections at the same time, each with a thread and a descriptor."""
INTERVAL = 0.5
"""Seconds between two searches for overdue clients."""


class Server:
    """Server of ``/metrics`` and ``/healthz``.

    :param limits: returns loop to the seconds after which it counts as stuck
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, metrics: metrics.Metrics, host: str, port: int,
                 limits: abc.Callable[[], abc.Mapping[str, float]],
                 client_timeout: float = CLIENT_TIMEOUT) -> None:
        try:
            self._server = _HTTPServer(host, port, client_timeout)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self._server.set_app(_Application(metrics, limits))
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(INTERVAL,),
                         daemon=True, name='metrics').start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _HTTPServer(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    # With a shorter queue, a burst of clients delays Prometheus for seconds.
    request_queue_size = 1024

    def __init__(self, host: str, port: int, client_timeout: float) -> None:
        self.address_family = (socket.AF_INET6 if ':' in host
                               else socket.AF_INET)
        self._client_timeout = client_timeout
        self._slots = threading.Semaphore(MOST_CLIENTS)
        self._waiting: dict[Any, float] = {}
        """Connections without a complete request, oldest first; deadlines."""
        self._answering: dict[Any, float] = {}
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Skip the look-up of this host's name, which may be slow.
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        deadline = time.monotonic() + self._client_timeout
        if not self._slots.acquire(blocking=False):
            # Its thread ends with its next access to the socket.
            for connection in [*self._waiting][:1]:
                _disconnect(connection)
            while not self._slots.acquire(timeout=INTERVAL):
                self.service_actions()
                if deadline <= time.monotonic():
                    super().shutdown_request(request)
                    return
        self._waiting[request] = deadline
        super().process_request(request, client_address)

    def received(self, request: Any) -> None:
        """Keep a client whose request is complete as long as possible."""
        self._answering[request] = self._waiting.pop(request)

    def service_actions(self) -> None:
        """Disconnect overdue clients; called at least every ``INTERVAL``."""
        for connection, deadline in [*self._waiting.items(),
                                     *self._answering.items()]:
            if deadline <= time.monotonic():
                _disconnect(connection)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._waiting.pop(request, None)
        self._answering.pop(request, None)
        self._slots.release()


def _disconnect(connection: socket.socket) -> None:
    # The thread of the connection, which may be waiting for it, closes it.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(simple_server.WSGIRequestHandler):
    server: _HTTPServer

    def handle(self) -> None:
        # A client that disconnects or times out would log a traceback.
        with contextlib.suppress(OSError):
            super().handle()

    def parse_request(self) -> bool:
        complete = super().parse_request()
        self.server.received(self.request)
        return complete

    def log_message(self, *args: Any) -> None:
        pass


class _Application:
    def __init__(self, metrics: metrics.Metrics,
                 limits: abc.Callable[[], abc.Mapping[str, float]]) -> None:
        self._metrics = metrics
        self._limits = limits
        self._figures = prometheus_client.make_wsgi_app(metrics.registry)

    def __call__(self, environ: dict[str, Any],
                 start_response: abc.Callable[..., Any]) -> list[bytes]:
        status, headers, body = self._answer(environ)
        # The server would also send a body in response to HEAD.
        start_response(status, [*headers, ('Content-Length', str(len(body)))])
        return [] if environ['REQUEST_METHOD'] == 'HEAD' else [body]

    def _answer(self, environ: dict[str, Any]
                ) -> tuple[str, list[tuple[str, str]], bytes]:
        """Return status, headers and body, as for a GET."""
        path = environ['PATH_INFO']
        if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
            return _json('405 Method Not Allowed', ('Allow', 'GET, HEAD'),
                         error='only GET and HEAD are allowed')
        if path == '/metrics':
            start: list[Any] = []
            body = b''.join(self._figures(
                # With a query, the client would bypass the registry.
                {**environ, 'REQUEST_METHOD': 'GET', 'QUERY_STRING': ''},
                lambda *line: start.extend(line)))
            status, headers = start[:2]
            return status, headers, body
        if path == '/healthz':
            late = self._metrics.late(self._limits())
            return _json('503 Service Unavailable' if late else '200 OK',
                         status='stuck' if late else 'ok', reasons=late,
                         last_sync=self._metrics.last_sync)
        return _json('404 Not Found', error='use /metrics or /healthz')


def _json(status: str, /, *headers: tuple[str, str], **body: Any
          ) -> tuple[str, list[tuple[str, str]], bytes]:
    return (status, [('Content-Type', 'application/json'), *headers],
            json.dumps(body).encode() + b'\n')
