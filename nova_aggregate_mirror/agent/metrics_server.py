# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import json
import socket
import socketserver
import threading
from typing import Any
from wsgiref import simple_server

import prometheus_client

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

# Seconds after which a silent client is disconnected and its thread freed.
CLIENT_TIMEOUT = 10


class Server:
    """Server of ``/metrics`` and ``/healthz``.

    :param port: 0 for any free port
    :param limits: returns loop to the seconds after which it counts as stuck
    :param client_timeout: seconds to wait for data from a client
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, metrics: metrics.Metrics, host: str, port: int,
                 limits: Callable[[], Mapping[str, float]],
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
        threading.Thread(target=self._server.serve_forever, daemon=True,
                         name='metrics').start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _HTTPServer(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    # With a shorter queue, a burst of clients delays Prometheus for seconds.
    request_queue_size = 128

    def __init__(self, host: str, port: int, client_timeout: float) -> None:
        self.address_family = (socket.AF_INET6 if ':' in host
                               else socket.AF_INET)
        self.client_timeout = client_timeout
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Skip the look-up of this host's name, which may be slow.
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()


class _Handler(simple_server.WSGIRequestHandler):
    server: _HTTPServer

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.client_timeout)

    def handle(self) -> None:
        # A client that disconnects or times out would log a traceback.
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, *args: Any) -> None:
        pass


class _Application:
    def __init__(self, metrics: metrics.Metrics,
                 limits: Callable[[], Mapping[str, float]]) -> None:
        self._metrics = metrics
        self._limits = limits
        self._figures = prometheus_client.make_wsgi_app(metrics.registry)

    def __call__(self, environ: dict[str, Any],
                 start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        # The server would also send a body in response to HEAD.
        start_response(status, [*headers, ('Content-Length', str(len(body)))])
        return [] if environ['REQUEST_METHOD'] == 'HEAD' else [body]

    def _answer(self, environ: dict[str, Any]
                ) -> tuple[str, list[tuple[str, str]], bytes]:
        """Return status, headers and body of the answer to a GET."""
        path = environ['PATH_INFO']
        if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
            return _json('405 Method Not Allowed', ('Allow', 'GET, HEAD'),
                         error='only GET and HEAD are allowed')
        if path == '/metrics':
            start: list[Any] = []
            body = b''.join(self._figures(
                {**environ, 'REQUEST_METHOD': 'GET'},
                lambda *line: start.extend(line)))
            return start[0], start[1], body
        if path == '/healthz':
            late = self._metrics.late(self._limits())
            return _json('503 Service Unavailable' if late else '200 OK',
                         status='stuck' if late else 'ok', reasons=late)
        return _json('404 Not Found', error='use /metrics or /healthz')


def _json(status: str, /, *headers: tuple[str, str], **body: Any
          ) -> tuple[str, list[tuple[str, str]], bytes]:
    return (status, [('Content-Type', 'application/json'), *headers],
            json.dumps(body).encode() + b'\n')
