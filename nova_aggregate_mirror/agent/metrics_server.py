# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections import abc
import contextlib
from http import server
import io
import json
import selectors
import socket
import socketserver
import threading
import time
from typing import Any
from typing import NamedTuple

from oslo_log import log as logging
from prometheus_client import exposition

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)

CLIENT_TIMEOUT = 5.0
"""Seconds that a client may take for its request, and again for its answer: a
timeout for each read would never end a client that sends a byte at times."""
MOST_CLIENTS = 20
"""Incomplete requests at the same time, and answers, each with a thread."""
LONGEST_REQUEST = 8192
"""Bytes of a request, whose body is not read."""
INTERVAL = 0.5
"""Seconds between two looks for overdue clients."""


class _PartialRequest(NamedTuple):
    """A request that is being read."""

    deadline: float
    """On the monotonic clock."""
    text: bytearray


class Server(socketserver.ThreadingTCPServer):
    """Server of ``/metrics`` and ``/healthz``.

    One thread reads all requests: a client costs a thread of its own only
    when its request is complete, however many others are idle.

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
        self._requests: dict[socket.socket, _PartialRequest] = {}
        """Incomplete requests, oldest first."""
        try:
            super().__init__((host, port), _Handler)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self.port: int = self.server_address[1]
        self.socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.socket, selectors.EVENT_READ)
        self._closing, self._ended = threading.Event(), threading.Event()
        threading.Thread(
            target=self._serve, daemon=True, name='metrics').start()

    def close(self) -> None:
        self._closing.set()
        self._ended.wait()
        for connection in [*self._requests]:
            self._disconnect(connection)
        self._selector.close()
        self.server_close()

    def _serve(self) -> None:
        """Accept clients, and read their requests, until the server closes."""
        try:
            while not self._closing.is_set():
                for key, _events in self._selector.select(INTERVAL):
                    if key.fileobj is self.socket:
                        self._accept()
                    elif key.data in self._requests:
                        self._read(key.data)
                self._disconnect_overdue()
        finally:
            # Otherwise a defect here would keep the process from its end.
            self._ended.set()

    def _accept(self) -> None:
        """Accept a client; disconnect the slowest if there are too many."""
        try:
            connection, _address = self.get_request()
        except (BlockingIOError, ConnectionError):
            # The client has gone.
            return
        except OSError:
            # No descriptor is left in this process.
            self._closing.wait(INTERVAL)
            return
        if len(self._requests) == MOST_CLIENTS:
            self._disconnect(next(iter(self._requests)))
        self._requests[connection] = _PartialRequest(
            time.monotonic() + self._client_timeout, bytearray())
        self._selector.register(connection, selectors.EVENT_READ, connection)

    def _read(self, connection: socket.socket) -> None:
        """Read what a client has sent; answer if the request is complete."""
        text = self._requests[connection].text
        try:
            part = connection.recv(LONGEST_REQUEST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            # Nothing has come after all.
            return
        except OSError:
            part = b''
        text.extend(part)
        has_ended = not part
        has_headers = b'\n\r\n' in text or b'\n\n' in text
        # A client that sends no more may leave out the empty line.
        if has_headers or (has_ended and b'\n' in text):
            self._answer(connection)
        elif has_ended or len(text) > LONGEST_REQUEST:
            self._disconnect(connection)

    def _answer(self, connection: socket.socket) -> None:
        """Answer a request in a thread, if one is free in time."""
        text = self._forget(connection).text
        if not self._slots.acquire(timeout=self._client_timeout):
            # This class's own method would free a slot.
            super().shutdown_request(connection)
            return
        # It limits the head and the body of an answer, each as a whole.
        connection.settimeout(self._client_timeout)
        try:
            self.process_request(connection, text)
        except RuntimeError:
            # No thread can be started.
            self.handle_error(connection, text)
            self.shutdown_request(connection)

    def _disconnect_overdue(self) -> None:
        now = time.monotonic()
        for connection, request in [*self._requests.items()]:
            if request.deadline > now:
                # The later ones have even more time.
                break
            self._disconnect(connection)

    def _disconnect(self, connection: socket.socket) -> None:
        self._forget(connection)
        self.close_request(connection)

    def _forget(self, connection: socket.socket) -> _PartialRequest:
        self._selector.unregister(connection)
        return self._requests.pop(connection)

    def shutdown_request(self, request: Any) -> None:
        # The thread of an answer calls this when it ends.
        super().shutdown_request(request)
        self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.exception('A request for metrics or health failed')


class _Handler(server.BaseHTTPRequestHandler):
    server: Server
    client_address: Any
    """The text of the request: the server has read it already."""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BytesIO(self.client_address)

    def handle(self) -> None:
        # A client that disconnects would log a traceback.
        with contextlib.suppress(OSError):
            super().handle()

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
