# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections import abc
import contextlib
from http import server
import json
import socket
import socketserver
import threading
import time
from typing import Any

from oslo_log import log as logging
from prometheus_client import exposition

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)

CLIENT_TIMEOUT = 5.0
"""Seconds that a client may take for its request, and again for its answer.

A timeout for each read would never end a client that sends a byte now and
then.
"""
MOST_CLIENTS = 20
"""Connections at the same time, each with a thread and a descriptor."""
INTERVAL = 0.5
"""Seconds between two looks for overdue clients."""


class Server(socketserver.ThreadingTCPServer):
    """Server of ``/metrics`` and ``/healthz``.

    :param limits: returns loop to the seconds after which it counts as stuck
    :raises InvalidConfiguration: when the address cannot be used
    """

    allow_reuse_address = True
    daemon_threads = True
    # With a shorter queue, a burst of clients delays Prometheus for seconds.
    request_queue_size = 1024

    def __init__(self, figures: metrics.Metrics, host: str, port: int,
                 limits: abc.Callable[[], abc.Mapping[str, float]],
                 client_timeout: float = CLIENT_TIMEOUT) -> None:
        self.address_family = (socket.AF_INET6 if ':' in host
                               else socket.AF_INET)
        self.figures = figures
        self.limits = limits
        self._client_timeout = client_timeout
        self._slots = threading.Semaphore(MOST_CLIENTS)
        self.waiting: dict[socket.socket, float] = {}
        """Connections without a complete request, oldest first: deadlines."""
        try:
            super().__init__((host, port), _Handler)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(INTERVAL,),
                         daemon=True, name='metrics').start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client; disconnect the slowest if there are too many."""
        if not self._slots.acquire(blocking=False):
            # The thread of the slowest ends with its next use of the socket.
            for connection in [*self.waiting][:1]:
                _disconnect(connection)
            if not self._slots.acquire(timeout=self._client_timeout):
                super().shutdown_request(request)
                return
        # This bounds each of the two writes of an answer in all.
        request.settimeout(self._client_timeout)
        self.waiting[request] = time.monotonic() + self._client_timeout
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Disconnect overdue clients; called at least every ``INTERVAL``."""
        for connection, deadline in [*self.waiting.items()]:
            if deadline <= time.monotonic():
                _disconnect(connection)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.waiting.pop(request, None)
        self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.exception('A request for metrics or health failed')


def _disconnect(connection: socket.socket) -> None:
    # The thread of the connection, which may be waiting for it, closes it.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(server.BaseHTTPRequestHandler):
    server: Server

    def handle(self) -> None:
        # A client that disconnects would log a traceback.
        with contextlib.suppress(OSError):
            super().handle()

    def parse_request(self) -> bool:
        is_valid = super().parse_request()
        # A client whose request is complete is not disconnected for others.
        self.server.waiting.pop(self.request)
        if is_valid and self.command not in ('GET', 'HEAD'):
            self._answer_json(405, error='only GET and HEAD are allowed')
            return False
        return is_valid

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition('?')[0]
        if path == '/metrics':
            try:
                encode, content_type = exposition.choose_encoder(
                    self.headers.get('Accept', ''))
            except (TypeError, ValueError):
                # The client asked for a format with a malformed version.
                encode, content_type = exposition.choose_encoder('')
            self._answer(200, content_type,
                         encode(self.server.figures.registry))
        elif path == '/healthz':
            late = self.server.figures.late(self.server.limits())
            self._answer_json(
                503 if late else 200, status='stuck' if late else 'ok',
                reasons=late, last_sync=self.server.figures.last_sync)
        else:
            self._answer_json(404, error='use /metrics or /healthz')

    do_HEAD = do_GET

    def _answer_json(self, status: int, /, **body: Any) -> None:
        self._answer(status, 'application/json',
                     json.dumps(body).encode() + b'\n')

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header('Content-Type', content_type)
        self.send_header('Content-Length', str(len(body)))
        if status == 405:
            self.send_header('Allow', 'GET, HEAD')
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)
