# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections import abc
import contextlib
import errno
from http import server
import io
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
"""Clients at the same time, each with a thread."""
LONGEST_REQUEST = 8192
"""Bytes of a request, whose body is not read."""
INTERVAL = 0.5
"""Seconds between two looks for overdue clients."""


class Server(socketserver.ThreadingTCPServer):
    """Server of ``/metrics`` and ``/healthz``.

    If there are too many clients, the one whose request has been incomplete
    for the longest time is disconnected.

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
        self._lock = threading.Lock()
        self._deadlines: dict[socket.socket, float] = {}
        """Of clients whose request is incomplete, oldest first."""
        try:
            super().__init__((host, port), _Handler)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self.port: int = self.server_address[1]
        # A client may have gone before it is accepted.
        self.socket.setblocking(False)
        threading.Thread(target=self.serve_forever, args=[INTERVAL],
                         daemon=True, name='metrics').start()

    def close(self) -> None:
        self.shutdown()
        with self._lock:
            self._disconnect(len(self._deadlines))
        self.server_close()

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE):
                # The next try would fail at once.
                time.sleep(INTERVAL)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Read and answer a request in a thread, if one is free in time."""
        if not self._slots.acquire(blocking=False):
            with self._lock:
                self._disconnect(1)
            if not self._slots.acquire(timeout=self._client_timeout):
                # This class's own method would free a slot.
                super().shutdown_request(request)
                return
        with self._lock:
            self._deadlines[request] = time.monotonic() + self._client_timeout
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Disconnect overdue clients."""
        now = time.monotonic()
        with self._lock:
            late = sum(limit < now for limit in self._deadlines.values())
            self._disconnect(late)

    def _disconnect(self, count: int) -> None:
        """End the reads of the oldest clients; the caller has the lock."""
        for connection in [*self._deadlines][:count]:
            del self._deadlines[connection]
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def begin_answer(self, connection: socket.socket) -> None:
        """Stop the time for the request, and limit that for the answer."""
        with self._lock:
            self._deadlines.pop(connection, None)
        # It limits the head and the body of an answer, each as a whole.
        connection.settimeout(self._client_timeout)

    def shutdown_request(self, request: Any) -> None:
        # The thread calls this when it ends, or the server without a thread.
        with self._lock:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)
        self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.exception('A request for metrics or health failed')


class _Handler(server.BaseHTTPRequestHandler):
    server: Server

    def handle(self) -> None:
        # A client that disconnects would log a traceback.
        with contextlib.suppress(OSError):
            self.rfile.close()
            self.rfile = io.BytesIO(self._read())
            self.server.begin_answer(self.request)
            super().handle()

    def _read(self) -> bytes:
        """Read a request without its body; return nothing if too long."""
        text = b''
        while len(text) <= LONGEST_REQUEST:
            part: bytes = self.request.recv(LONGEST_REQUEST)
            text += part
            # A client that sends no more may leave out the empty line.
            if not part or b'\n\r\n' in text or b'\n\n' in text:
                return text
        return b''

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition('?')[0]
        if path == '/metrics':
            # The format that each scraper reads, whatever it prefers.
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
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)
