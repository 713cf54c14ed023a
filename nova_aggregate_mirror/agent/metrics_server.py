# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

from collections import abc
import contextlib
import dataclasses
from http import server
import io
import json
import selectors
import socket
import threading
import time
from typing import Any

from oslo_log import log as logging
from prometheus_client import exposition

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)

CLIENT_TIMEOUT = 5.0
"""Seconds that a client may take for its request, and again for its answer: a
timeout for each read would never end a client that sends a byte at times."""
MOST_CLIENTS = 20
BACKLOG = 1024
"""With fewer, a burst of clients delays Prometheus for seconds."""
LONGEST_REQUEST = 8192
"""Bytes of a request, whose body is not read."""
INTERVAL = 0.5
"""Seconds between two looks for overdue clients."""


@dataclasses.dataclass(eq=False)
class _Client:
    """A client that sends its request, or receives its answer."""

    connection: socket.socket
    deadline: float
    """On the monotonic clock."""
    request: bytes = b''
    answer: bytes | None = None
    """What is left to send; None until the request is complete."""


class Server:
    """Server of ``/metrics`` and ``/healthz``.

    One thread serves all clients, however many of them are idle. If there are
    too many, the longest waiting one without a request is disconnected.

    :param limits: returns loop to the seconds after which it counts as stuck
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, figures: metrics.Metrics, host: str, port: int,
                 limits: abc.Callable[[], abc.Mapping[str, float]],
                 client_timeout: float = CLIENT_TIMEOUT) -> None:
        self.figures = figures
        self.limits = limits
        self._client_timeout = client_timeout
        self._clients: list[_Client] = []
        try:
            self._socket = _listen(host, port)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self.port: int = self._socket.getsockname()[1]
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, daemon=True, name='metrics')
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        for client in [*self._clients]:
            self._disconnect(client)
        self._selector.close()
        self._socket.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            ready = self._selector.select(INTERVAL)
            if self._socket not in self._selector.get_map():
                self._selector.register(self._socket, selectors.EVENT_READ)
            for key, _events in ready:
                if key.fileobj is self._socket:
                    self._accept()
                elif key.data in self._clients:
                    self._proceed(key.data)
            for client in [*self._clients]:
                if client.deadline < time.monotonic():
                    self._disconnect(client)

    def _accept(self) -> None:
        """Accept a client; disconnect another if there are too many."""
        try:
            connection, _address = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            # The client has gone.
            return
        except OSError:
            # No descriptor is left in this process: do not look for further
            # clients before others send something, or the next interval.
            self._selector.unregister(self._socket)
            return
        connection.setblocking(False)
        if len(self._clients) == MOST_CLIENTS:
            # The first that has sent no request, or else the first of all.
            self._disconnect(min(self._clients, key=lambda client: (
                client.answer is not None)))
        client = _Client(connection, time.monotonic() + self._client_timeout)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _proceed(self, client: _Client) -> None:
        """Read what a client has sent, or send more of its answer."""
        try:
            if client.answer is None:
                self._read(client)
            else:
                sent = client.connection.send(client.answer)
                client.answer = client.answer[sent:]
        except BlockingIOError:
            # Nothing has come after all.
            return
        except OSError:
            client.answer = b''
        except Exception:
            # A figure that cannot be collected must not end the server.
            LOG.exception('A request for metrics or health failed')
            client.answer = b''
        if client.answer == b'':
            self._disconnect(client)

    def _read(self, client: _Client) -> None:
        """Read a part of a request; begin to answer if it is complete."""
        part = client.connection.recv(LONGEST_REQUEST)
        client.request += part
        has_headers = b'\n\r\n' in client.request or b'\n\n' in client.request
        # A client that sends no more may leave out the empty line.
        if has_headers or (not part and b'\n' in client.request):
            client.answer = _Handler(client.request, self).answer()
            client.deadline = time.monotonic() + self._client_timeout
            self._selector.modify(
                client.connection, selectors.EVENT_WRITE, client)
        elif not part or len(client.request) > LONGEST_REQUEST:
            client.answer = b''

    def _disconnect(self, client: _Client) -> None:
        self._clients.remove(client)
        self._selector.unregister(client.connection)
        with contextlib.suppress(OSError):
            client.connection.shutdown(socket.SHUT_WR)
        client.connection.close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Not socket.create_server(): it also decides whether ``::`` includes IPv4,
    and its errors repeat the address.

    :raises OSError: when the address cannot be used
    """
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class _Handler(server.BaseHTTPRequestHandler):
    """Handler of a request that was read, and whose answer is not sent yet."""

    def __init__(self, request: bytes, owner: Server) -> None:
        # Not the base class: it would use the connection.
        self._owner = owner
        self.rfile = io.BytesIO(request)

    def answer(self) -> bytes:
        self.wfile = answer = io.BytesIO()
        self.handle_one_request()
        return answer.getvalue()

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition('?')[0]
        if path == '/metrics':
            # The format that each scraper reads, whatever it prefers.
            encode, kind = exposition.choose_encoder('')
            self._answer(200, kind, encode(self._owner.figures.registry))
        elif path == '/healthz':
            late = self._owner.figures.late(self._owner.limits())
            self._answer_json(
                503 if late else 200, status='stuck' if late else 'ok',
                reasons=late, last_sync=self._owner.figures.last_sync)
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
