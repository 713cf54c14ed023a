# SPDX-License-Identifier: Apache-2.0
"""HTTP server for the metrics and the health of the agent."""

import asyncio
from collections import abc
from http import server
import io
import json
import socket
import threading
import typing
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
"""Requests that are not answered yet, and answers, at the same time."""
LONGEST_REQUEST = 8192
"""Bytes of a request, whose body is not read."""
QUEUE = 1024
"""Clients that wait to be accepted. With a shorter queue, a burst of them
delays Prometheus for seconds."""


class Server:
    """Server of ``/metrics`` and ``/healthz``, with one thread for all.

    :param limits: returns loop to the seconds after which it counts as stuck
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, figures: metrics.Metrics, host: str, port: int,
                 limits: abc.Callable[[], abc.Mapping[str, float]],
                 client_timeout: float = CLIENT_TIMEOUT) -> None:
        self.figures = figures
        self.limits = limits
        self._client_timeout = client_timeout
        self._slots = asyncio.Semaphore(MOST_CLIENTS)
        self._requests: list[asyncio.Task[None]] = []
        """Those that are not answered yet, oldest first."""
        self._loop = asyncio.new_event_loop()
        try:
            listener = socket.socket(
                socket.AF_INET6 if ':' in host else socket.AF_INET)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            # Clients are accepted one by one: each may replace an idle one,
            # so that a burst of them does not take all descriptors.
            serve = asyncio.start_server(
                self._serve, sock=listener, limit=LONGEST_REQUEST, backlog=1)
            self._server = self._loop.run_until_complete(serve)
            listener.listen(QUEUE)
        except OSError as exc:
            raise exceptions.InvalidConfiguration(
                'metrics cannot be served at %s port %d: %s; change '
                '[aggregate_mirror] metrics_host or metrics_port'
                % (host, port, exc.strerror or exc)) from exc
        self.port: int = listener.getsockname()[1]
        self._ended = threading.Event()
        threading.Thread(
            target=self._run, daemon=True, name='metrics').start()

    def close(self) -> None:
        if not self._ended.is_set():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
        self._ended.wait()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.close()
        finally:
            # Otherwise a defect here would keep the process from its end.
            self._ended.set()

    async def _stop(self) -> None:
        self._server.close()
        clients = asyncio.all_tasks() - {asyncio.current_task()}
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        self._loop.stop()

    async def _serve(self, reader: asyncio.StreamReader,
                     writer: asyncio.StreamWriter) -> None:
        """Answer a client; disconnect the slowest if there are too many."""
        client = typing.cast(asyncio.Task[None], asyncio.current_task())
        if len(self._requests) == MOST_CLIENTS:
            self._requests.pop(0).cancel()
        self._requests.append(client)
        try:
            async with asyncio.timeout(self._client_timeout) as deadline:
                request = await _read(reader)
                async with self._slots:
                    self._requests.remove(client)
                    deadline.reschedule(
                        self._loop.time() + self._client_timeout)
                    if request:
                        # Until nothing of the answer is left to be sent.
                        writer.transport.set_write_buffer_limits(0)
                        writer.write(_Handler(request, self).answer)
                        await writer.drain()
        except OSError:
            # The client is too slow, or has gone.
            pass
        except Exception:
            # What collects the metrics is not ours.
            LOG.exception('A request for metrics or health failed')
        finally:
            if client in self._requests:
                self._requests.remove(client)
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read a request; return nothing if it is too long, or incomplete."""
    text = b''
    while part := await reader.read(LONGEST_REQUEST):
        text += part
        if b'\n\r\n' in text or b'\n\n' in text:
            return text
        if len(text) > LONGEST_REQUEST:
            return b''
    # A client that sends no more may leave out the empty line.
    return text if b'\n' in text else b''


class _Handler(server.BaseHTTPRequestHandler):
    """Handler of a request that was read; ``answer`` has all of the answer."""

    def __init__(self, request: bytes, owner: Server) -> None:
        self._owner = owner
        out = io.BytesIO()
        self.rfile, self.wfile = io.BytesIO(request), out
        self.handle()
        self.answer = out.getvalue()

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition('?')[0]
        if path == '/metrics':
            # The format that each scraper reads, whatever it prefers.
            encode, content_type = exposition.choose_encoder('')
            self._answer(200, content_type,
                         encode(self._owner.figures.registry))
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
