# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

import asyncio
from collections import abc
import contextlib
import functools
from http import server
import io
import json
import socket
import threading
from typing import Any

from oslo_log import log as logging
from prometheus_client import exposition

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)
CLIENT_TIMEOUT = 5.0
"""Seconds that a client may take for its request, and again for its answer: a
timeout for each read would never end a client that trickles bytes."""
MOST_CLIENTS = 20
BACKLOG = 1024
"""With fewer, a burst of clients delays Prometheus for seconds."""
LONGEST_REQUEST = 8192  # Bytes of a request, whose body is not read.
INTERVAL = 0.5
"""Seconds to wait before the next client when no descriptor was left."""


class Server:
    """Server of ``/metrics`` and ``/healthz``.

    One thread serves all clients, however many of them are idle. If there are
    too many, the longest waiting one without a request is disconnected.

    :param limits: returns, per loop, the seconds until it counts as stuck
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, figures: metrics.Metrics, host: str, port: int,
                 limits: abc.Callable[[], abc.Mapping[str, float]]) -> None:
        self.figures, self.limits = figures, limits
        self._clients: dict[socket.socket, asyncio.Task[None]] = {}
        self._complete: set[socket.socket] = set()
        """Clients whose request is complete."""
        try:
            self._socket = socket.create_server(
                (host, port), backlog=BACKLOG, dualstack_ipv6=':' in host,
                family=socket.AF_INET6 if ':' in host else socket.AF_INET)
        except (OSError, ValueError) as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served: %s; change [aggregate_mirror] '
                'metrics_host or metrics_port' % exc) from exc
        self.port: int = self._socket.getsockname()[1]
        self._socket.setblocking(False)
        self._loop = asyncio.new_event_loop()
        self._serving = self._loop.create_task(self._serve())
        # Waiting for a task that is cancelled is no error; running it is one.
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, daemon=True, name='metrics',
            args=(asyncio.wait([self._serving]),))
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join()
        self._loop.close()
        self._socket.close()

    async def _serve(self) -> None:
        """Accept clients; disconnect another if there are too many."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    connection, _ = await self._loop.sock_accept(self._socket)
                except ConnectionError:
                    # The client has gone.
                    continue
                except OSError:
                    # No descriptor is left in this process.
                    await asyncio.sleep(INTERVAL)
                    continue
                if len(self._clients) == MOST_CLIENTS:
                    # The first without a whole request, or the first of all.
                    first = min(self._clients, key=self._complete.__contains__)
                    self._clients[first].cancel()
                    await asyncio.wait([self._clients[first]])
                task = group.create_task(self._answer(connection))
                self._clients[connection] = task
                task.add_done_callback(
                    functools.partial(self._disconnect, connection))

    async def _answer(self, connection: socket.socket) -> None:
        """Read the request of a client, and send the answer."""
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT):
                request = await self._read(connection)
            if request:
                self._complete.add(connection)
                answer = _Handler(request, self).answer.getvalue()
                async with asyncio.timeout(CLIENT_TIMEOUT):
                    await self._loop.sock_sendall(connection, answer)
        except OSError:
            # The client has gone, or is too slow.
            pass
        except Exception:
            # A metric that cannot be collected must not end the server.
            LOG.exception('A request for metrics or health failed')

    async def _read(self, connection: socket.socket) -> bytes:
        """Read a request; empty if it is too long, or ends early."""
        request = b''
        while len(request) <= LONGEST_REQUEST:
            part = await self._loop.sock_recv(connection, LONGEST_REQUEST)
            request += part
            # A client that sends no more may leave out the empty line.
            if b'\n\r\n' in request or b'\n\n' in request or not part:
                return request if b'\n' in request else b''
        return b''

    def _disconnect(self, connection: socket.socket,
                    _task: asyncio.Task[None]) -> None:
        del self._clients[connection]
        self._complete.discard(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        connection.close()


class _Handler(server.BaseHTTPRequestHandler):
    """Handler of a request that was read; the server sends its ``answer``."""

    def __init__(self, request: bytes, owner: Server) -> None:
        # The constructor of the base class would use the connection.
        self._owner = owner
        self.rfile = io.BytesIO(request)
        self.wfile = self.answer = io.BytesIO()
        self.handle_one_request()

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition('?')[0]
        if path == '/metrics':
            # One format for all scrapers, also those that prefer another.
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
