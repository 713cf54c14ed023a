# SPDX-License-Identifier: Apache-2.0
"""A real placement behind a real socket, with faults."""

from collections import abc
import contextlib
from http import HTTPStatus
import itertools
import os
import socketserver
import threading
import time
from typing import Any
from typing import NamedTuple
from wsgiref import simple_server

import fixtures
from placement import auth
from placement import deploy
from placement.tests.functional.fixtures import placement as placement_fixtures
import webob

from tests import patience

Environ = dict[str, Any]
Start = abc.Callable[..., Any]
Body = abc.Iterable[bytes]
App = abc.Callable[[Environ, Start], Body]

MICROVERSION = 'placement 1.36'
LIMITED = 'nova_aggregate_mirror.placement.client.Client._limited'
TOKEN = 'admin'
EVERY_METHOD = ('GET', 'PUT', 'POST', 'DELETE')
# How many seconds "for ever" lasts, because a test may wait for it.
FOR_EVER = patience.seconds(300)


class Request(NamedTuple):
    """A request that reached placement's socket, whether answered or not."""

    method: str
    path: str
    headers: dict[str, str]


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    # A hanging request must block neither the others nor the shutdown.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the requests are recorded."""


class _Database(placement_fixtures.PlacementFixture):
    """Placement's configuration and database, in a file for many threads."""

    def _configure_placement(self, conf_fixture: Any) -> None:
        path = self.useFixture(fixtures.TempDir()).path
        conf_fixture.config(
            connection='sqlite:///' + os.path.join(path, 'placement.sqlite'),
            group='placement_database')


class PlacementService(fixtures.Fixture):
    """Placement on a loopback port, with faults to be turned on and off.

    ``url`` is its endpoint and ``requests`` are the requests received. The
    methods named after resources use the application directly, whatever
    the fault, so that a test sees the truth during an outage.
    """

    def _setUp(self) -> None:
        # However busy this machine is, no request of a test is repeated.
        self.useFixture(fixtures.MonkeyPatch(
            LIMITED, lambda *_kind: contextlib.nullcontext()))
        database = self.useFixture(_Database(use_intercept=False))
        self._placement: App = deploy.loadapp(database.conf_fixture.conf)
        # SQLite has a single writer.
        self._one_at_a_time = threading.Lock()
        self.requests: list[Request] = []
        self.stuck = threading.Event()
        """Set as soon as a request hangs, trickles or is held back."""
        self._server: _Server | None = None
        self._port = 0
        self.recover()
        self.url = 'http://127.0.0.1:%d' % self._port
        self.addCleanup(self._stop)

    def recover(self) -> None:
        """Stop the fault; requests that hang are answered or dropped."""
        self._release()
        self._fault: App = self._run
        self._methods: tuple[str, ...] = EVERY_METHOD
        if self._server is None:
            self._server = simple_server.make_server(
                '127.0.0.1', self._port, self._serve, _Server, Handler)
            self._port = self._server.server_port
            threading.Thread(target=self._server.serve_forever, args=(0.01,),
                             daemon=True).start()

    def refuse(self) -> None:
        """Refuse connections to the port."""
        self._stop()

    def fail_with(self, status: int,
                  methods: tuple[str, ...] = EVERY_METHOD,
                  provider: str = '') -> None:
        """Respond with a status and an HTML page."""
        page = self._page('%d %s' % (status, HTTPStatus(status).phrase))

        def app(environ: Environ, start: Start) -> Body:
            broken = provider in environ['PATH_INFO']
            return (page if broken else self._run)(environ, start)

        self._break(app, methods)

    def refuse_role(self, methods: tuple[str, ...]) -> None:
        """Answer like to an account that has only the role reader."""
        def app(environ: Environ, start: Start) -> Body:
            return self._run({**environ, 'HTTP_X_ROLES': 'reader'}, start)

        self._break(app, methods)

    def answer_with_a_page(self) -> None:
        """Respond with 200 and HTML, like a proxy with its own page."""
        self._break(self._page('200 OK'), EVERY_METHOD)

    def answer_with_garbage(self) -> None:
        """Respond with 200 and a truncated JSON document."""
        def app(environ: Environ, start: Start) -> Body:
            start('200 OK', [('Content-Type', 'application/json')])
            return [b'{"aggregates": ["']

        self._break(app, EVERY_METHOD)

    def authenticate(self, url: str) -> None:
        """Ask the keystone at this URL about the token of each request."""
        self._break(auth.filter_factory(
            {}, auth_type='none', endpoint=url,
            www_authenticate_uri=url)(self._run), EVERY_METHOD)

    def hang(self, methods: tuple[str, ...] = EVERY_METHOD,
             every: int = 1) -> None:
        """Accept requests, or one of many, and drop them after the fault."""
        released = self._released = threading.Event()
        numbers = itertools.count()

        def app(environ: Environ, start: Start) -> Body:
            if next(numbers) % every:
                return self._run(environ, start)
            self.stuck.set()
            released.wait(FOR_EVER)
            return self._drop(environ, start)

        self._break(app, methods)

    def slow(self, seconds: float) -> None:
        """Delay the answer to each request."""
        def app(environ: Environ, start: Start) -> Body:
            time.sleep(seconds)
            return self._run(environ, start)

        self._break(app, EVERY_METHOD)

    def trickle(self) -> None:
        """Respond with a byte per second."""
        released = self._released = threading.Event()

        def app(environ: Environ, start: Start) -> Body:
            body = b''.join(self._run(environ, start))
            self.stuck.set()
            for byte in body:
                yield bytes([byte])
                released.wait(1)

        self._break(app, EVERY_METHOD)

    def drop_connection(self, methods: tuple[str, ...] = ('PUT',),
                        lands: bool = False) -> None:
        """Close the connection without a response, or after processing."""
        def app(environ: Environ, start: Start) -> Body:
            if lands:
                self._run(environ, lambda status, headers, exc_info=None: None)
            return self._drop(environ, start)

        self._break(app, methods)

    def conflict(self) -> None:
        """Change the provider just before each PUT."""
        def app(environ: Environ, start: Start) -> Body:
            provider = environ['PATH_INFO'].split('/')[2]
            self.set_aggregates(provider, self.aggregates(provider))
            return self._run(environ, start)

        self._break(app, ('PUT',))

    def hold_after(self, count: int, methods: tuple[str, ...] = ('PUT',)
                   ) -> abc.Callable[[], None]:
        """Answer this many requests, and hold later requests back.

        That is even after the fault has ended. ``stuck`` is set when the first
        of these has arrived.

        :returns: a function that lets them land, and returns when one has
        """
        go, landed, left = (
            threading.Event(), threading.Event(), itertools.count(1))
        self.addCleanup(go.set)

        def app(environ: Environ, start: Start) -> Body:
            if next(left) <= count:
                return self._run(environ, start)
            self.stuck.set()
            go.wait(FOR_EVER)
            try:
                return self._run(environ, start)
            finally:
                landed.set()

        def land() -> None:
            go.set()
            if not landed.wait(FOR_EVER):
                raise AssertionError('no request was on its way')

        self._break(app, methods)
        return land

    def create_provider(self, uuid: str, name: str, parent: str = '') -> None:
        self._call('POST', '/resource_providers', {
            'uuid': uuid, 'name': name,
            **({'parent_provider_uuid': parent} if parent else {})})

    def create_trait(self, name: str) -> None:
        self._call('PUT', '/traits/' + name)

    def set_traits(self, provider: str, *traits: str) -> None:
        self._set(provider, 'traits', list(traits))

    def set_inventories(self, provider: str, **totals: int) -> None:
        self._set(provider, 'inventories', {
            name: {'total': total} for name, total in totals.items()})

    def rename_provider(self, uuid: str, name: str) -> None:
        self._call('PUT', '/resource_providers/' + uuid, {'name': name})

    def generation(self, provider: str) -> int:
        return self._aggregates(provider)['resource_provider_generation']

    def _set(self, provider: str, what: str, value: Any) -> None:
        self._call('PUT', '/resource_providers/%s/%s' % (provider, what), {
            what: value,
            'resource_provider_generation': self.generation(provider)})

    def delete_provider(self, uuid: str) -> None:
        self._call('DELETE', '/resource_providers/%s' % uuid)

    def has_provider(self, uuid: str) -> bool:
        found = self._call('GET', '/resource_providers?uuid=%s' % uuid)
        return bool(found['resource_providers'])

    def aggregates(self, provider: str) -> frozenset[str]:
        return frozenset(self._aggregates(provider)['aggregates'])

    def set_aggregates(self, provider: str, uuids: abc.Iterable[str]) -> None:
        self._call('PUT', '/resource_providers/%s/aggregates' % provider, {
            'aggregates': sorted(uuids),
            'resource_provider_generation': self.generation(provider)})

    def _aggregates(self, provider: str) -> Any:
        return self._call(
            'GET', '/resource_providers/%s/aggregates' % provider)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        request = webob.Request.blank(path, method=method, headers={
            'X-Auth-Token': TOKEN, 'OpenStack-API-Version': MICROVERSION,
            'Accept': 'application/json'})
        if body is not None:
            request.content_type = 'application/json'
            request.json = body
        with self._one_at_a_time:
            response = request.get_response(self._placement)
        if response.status_code >= 400:
            raise AssertionError('%s %s: %s' % (method, path, response.text))
        return response.json if response.body else None

    def _serve(self, environ: Environ, start: Start) -> Body:
        request = webob.Request(environ)
        self.requests.append(Request(request.method, request.path_qs,
                                     dict(request.headers)))
        broken = request.method in self._methods
        return (self._fault if broken else self._run)(environ, start)

    def _run(self, environ: Environ, start: Start) -> Body:
        with self._one_at_a_time:
            return list(self._placement(environ, start))

    @staticmethod
    def _drop(environ: Environ, start: Start) -> Body:
        # The only error after which wsgiref closes without a response.
        raise ConnectionAbortedError

    @staticmethod
    def _page(status: str) -> App:
        def app(environ: Environ, start: Start) -> Body:
            start(status, [('Content-Type', 'text/html')])
            return [b'<html><body>%s</body></html>' % status.encode()]

        return app

    def _break(self, fault: App, methods: tuple[str, ...]) -> None:
        self._fault, self._methods = fault, methods

    def _release(self) -> None:
        released = getattr(self, '_released', None)
        if released is not None:
            released.set()
        self.stuck.clear()

    def _stop(self) -> None:
        self._release()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
