# SPDX-License-Identifier: Apache-2.0
"""The agent's figures for Prometheus, and whether it is alive."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import importlib.metadata
import json
import socket
import socketserver
import threading
import time
from typing import Any
from wsgiref import simple_server

import prometheus_client

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal

PREFIX = 'nova_aggregate_mirror_'
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
# A client that sends nothing holds its thread so long.
CLIENT_TIMEOUT = 10


class Metrics:
    """What an agent tells of itself; its loops may call from any thread.

    :param now: seconds since the epoch
    :param beating: seconds since the start, for which no clock is set back
    """

    def __init__(self, now: Callable[[], float] = time.time,
                 beating: Callable[[], float] = time.monotonic) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._now = now
        self._beating = beating
        self._beats: dict[str, float] = {}
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.Info(
            PREFIX + 'build', 'The release of the agent.',
            registry=self.registry).info({
                'version': importlib.metadata.version(
                    'nova-aggregate-mirror')})
        self._pending = self._gauge(
            'journal_pending_rows',
            'Operations that placement may not show yet.')
        self._waiting = self._gauge(
            'journal_waiting_rows',
            'Operations that are mirrored, and stay in the journal until they '
            'are old enough to have ended.')
        self._oldest = self._gauge(
            'journal_oldest_pending_seconds',
            'For how long this agent has seen the oldest pending operation.')
        self._converge = self._histogram(
            'converge_duration_seconds',
            'How long a batch of the journal took.')
        self._sync = self._histogram(
            'sync_duration_seconds', 'How long a full sync took.')
        self._added = self._counter(
            'associations_added', 'Providers put into an aggregate.')
        self._removed = self._counter(
            'associations_removed', 'Providers taken out of an aggregate.')
        self._drift = self._gauge(
            'drift_associations',
            'Associations that the last full sync found missing or stale.')
        self._brake = self._gauge(
            'brake_tripped',
            '1 when so much was stale at the last full sync that it removed '
            'nothing.')
        self._success = prometheus_client.Gauge(
            PREFIX + 'last_success_timestamp_seconds',
            'When a loop last did all that it wanted to.', ['loop'],
            registry=self.registry)
        self._leader = self._gauge(
            'leader', '1 on the agent that drains the journal and syncs.')

    def backlog(self, backlog: journal.Backlog) -> None:
        """How much is left in the journal."""
        self._pending.set(backlog.pending)
        self._waiting.set(backlog.waiting)
        self._oldest.set(backlog.oldest)
        if not backlog.pending:
            self._succeeded('drain')

    def drained(self, result: str, seconds: float, added: int,
                removed: int) -> None:
        """One batch of the journal was worked on.

        :param result: ``success``, ``failure`` or ``unavailable``
        """
        self._converge.labels(result).observe(seconds)
        self._changed('drain', added, removed)
        if result == 'success':
            self._succeeded('drain')

    def synced(self, result: str, seconds: float, added: int = 0,
               removed: int = 0, drift: int | None = None,
               refused: bool = False) -> None:
        """One full sync ended.

        :param result: ``success`` or ``failure``
        :param drift: None when it could not be compared
        """
        self._sync.labels(result).observe(seconds)
        self._changed('sync', added, removed)
        if drift is not None:
            self._drift.set(drift)
            self._brake.set(refused)
        if result == 'success' and not refused:
            self._succeeded('sync')

    def leading(self, leads: bool) -> None:
        """Whether this agent is the one that works.

        What it found before is out of date when another one leads.
        """
        self._leader.set(leads)
        if not leads:
            for gauge in (self._drift, self._brake, self._pending,
                          self._waiting, self._oldest):
                gauge.set(0)

    def beat(self, loop: str) -> None:
        """This loop is alive."""
        self._beats[loop] = self._beating()

    def late(self, limits: Mapping[str, float]) -> list[str]:
        """Which loops have not beaten for longer than they may.

        :param limits: loop to seconds
        """
        # A loop may begin while it is looked at.
        now, beats = self._beating(), dict(self._beats)
        return ['the %s loop was last heard of %d seconds ago'
                % (loop, now - beats[loop]) if loop in beats
                else 'the %s loop has not begun' % loop
                for loop, limit in sorted(limits.items())
                if loop not in beats or now - beats[loop] > limit]

    def _changed(self, loop: str, added: int, removed: int) -> None:
        self._added.labels(loop).inc(added)
        self._removed.labels(loop).inc(removed)

    def _succeeded(self, loop: str) -> None:
        self._success.labels(loop).set(self._now())

    def _gauge(self, name: str, text: str) -> prometheus_client.Gauge:
        return prometheus_client.Gauge(
            PREFIX + name, text, registry=self.registry)

    def _counter(self, name: str, text: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(
            PREFIX + name, text, ['loop'], registry=self.registry)

    def _histogram(self, name: str, text: str) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(
            PREFIX + name, text, ['result'], buckets=BUCKETS,
            registry=self.registry)


class Server:
    """Serves ``/metrics`` and ``/healthz`` until it is closed.

    :param port: 0 for any that is free
    :param limits: for each loop, the seconds after which it counts as stuck
    :param client_timeout: seconds to wait for what a client sends
    :raises InvalidConfiguration: when the address cannot be used
    """

    def __init__(self, metrics: Metrics, host: str, port: int,
                 limits: Mapping[str, float],
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
    # With less, a burst of clients makes Prometheus wait for seconds.
    request_queue_size = 128

    def __init__(self, host: str, port: int, client_timeout: float) -> None:
        self.address_family = (socket.AF_INET6 if ':' in host
                               else socket.AF_INET)
        self.client_timeout = client_timeout
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Without the look-up of this host's name, which may take long.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]
        self.setup_environ()


class _Handler(simple_server.WSGIRequestHandler):
    def setup(self) -> None:
        self.timeout = self.server.client_timeout
        super().setup()

    def handle(self) -> None:
        # A client that goes away or falls silent would leave a traceback.
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, *args: Any) -> None:
        pass


class _Application:
    def __init__(self, metrics: Metrics, limits: Mapping[str, float]) -> None:
        self._metrics = metrics
        self._limits = limits
        self._figures = prometheus_client.make_wsgi_app(metrics.registry)

    def __call__(self, environ: dict[str, Any],
                 start_response: Callable) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        # The server would send the body to a HEAD, too.
        start_response(status, [*headers, ('Content-Length', str(len(body)))])
        return [] if environ['REQUEST_METHOD'] == 'HEAD' else [body]

    def _answer(self, environ: dict[str, Any]
                ) -> tuple[str, list[tuple[str, str]], bytes]:
        """Status, headers and body of the answer to a GET."""
        path = environ['PATH_INFO']
        if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
            return _json('405 Method Not Allowed', ('Allow', 'GET, HEAD'),
                         error='only GET and HEAD')
        if path == '/metrics':
            start: list[Any] = []
            body = b''.join(self._figures(
                {**environ, 'REQUEST_METHOD': 'GET'},
                lambda *line: start.extend(line)))
            return start[0], start[1], body
        if path == '/healthz':
            late = self._metrics.late(self._limits)
            return _json('503 Service Unavailable' if late else '200 OK',
                         status='stuck' if late else 'ok', reasons=late)
        return _json('404 Not Found', error='there are /metrics, /healthz')


def _json(status: str, /, *headers: tuple[str, str], **body: Any
          ) -> tuple[str, list[tuple[str, str]], bytes]:
    return (status, [('Content-Type', 'application/json'), *headers],
            json.dumps(body).encode() + b'\n')
