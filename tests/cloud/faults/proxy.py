# SPDX-License-Identifier: Apache-2.0
"""A proxy of placement that serves some requests badly."""

from collections import abc
import http.client
import http.server
import itertools
import json
import re
import threading
from typing import Any

from tests.cloud.faults import table

ABOUT = re.compile('/resource_providers/([^/]+)/aggregates$')
# Placements that the proxy asks in turn; one of them is bad.
BACKENDS = 3
HTML = {'Content-Type': 'text/html'}
JSON = {'Content-Type': 'application/json'}
# As a load balancer answers.
PAGE = b'<html><body>No server is available</body></html>'
Answer = tuple[int, abc.Mapping[str, str], bytes]


def _failure(status: int, title: str, detail: str,
             code: str = 'placement.undefined_code') -> bytes:
    """Return the document of an error, as placement writes it."""
    error = {'status': status, 'title': title, 'detail': detail, 'code': code}
    return json.dumps({'errors': [error]}).encode()


FAILURE = _failure(500, 'Internal Server Error', 'it failed')
REFUSAL = _failure(403, 'Forbidden', 'the policy does not allow it')
CONFLICT = _failure(409, 'Conflict', 'another writer has changed the provider',
                    'placement.concurrent_update')
ANSWERS: abc.Mapping[str, Answer] = {
    '500': (500, JSON, FAILURE), '409': (409, JSON, CONFLICT),
    '403': (403, JSON, REFUSAL),
    '401': (401, {**HTML, 'WWW-Authenticate': 'Keystone uri="/"'}, PAGE),
    'garbage': (200, HTML, b'<html>Welcome</html>'),
    'overloaded': (429, {**HTML, 'Retry-After': '1'}, PAGE),
    **{str(status): (status, HTML, PAGE) for status in (404, 406, 429, 503)}}
# If only one kind of request about a bad provider is served badly.
METHODS = {'409': 'PUT', 'silent-get': 'GET', 'silent-put': 'PUT'}
# They belong to a connection, not to what it transports.
HOPS = {'connection', 'keep-alive', 'transfer-encoding', 'content-length',
        'server', 'date', 'host'}


class Proxy(http.server.ThreadingHTTPServer):
    """A port whose requests continue to placement, run by threads."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: int) -> None:
        super().__init__(('127.0.0.1', 0), _Proxied)
        self.row: table.Row | None = None
        """What is bad at the moment."""
        self.providers: abc.Collection[str] = ()
        """UUIDs of the providers that are bad."""
        self.unserved: set[str] = set()
        """UUIDs of the providers about which a request was served badly."""
        self.placement = target
        self.ended = threading.Event()
        self._requests = itertools.count()
        threading.Thread(
            target=self.serve_forever, name='proxy', daemon=True).start()

    def server_close(self) -> None:
        self.ended.set()
        self.shutdown()
        super().server_close()

    def handle_error(self, _request: Any, _address: Any) -> None:
        # Either side may be killed.
        pass

    def is_bad(self, method: str, path: str) -> bool:
        """Check whether a request is served badly, and record its provider."""
        row, about = self.row, ABOUT.search(path)
        provider = about[1] if about else ''
        if row is None:
            return False
        if row.party == 'moved':
            bad = True
        elif row.party == 'backend':
            bad = not next(self._requests) % BACKENDS
        else:
            bad = (provider in self.providers
                   and method == METHODS.get(row.kind, method))
        if bad:
            self.unserved.add(provider)
        return bad


class _Proxied(http.server.BaseHTTPRequestHandler):

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Proxy

    def setup(self) -> None:
        super().setup()
        self._upstream = http.client.HTTPConnection(
            '127.0.0.1', self.server.placement)

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.server.is_bad(self.command, self.path):
            self._fail()
            return
        self._upstream.request(
            self.command, self.path, body or None, _kept(self.headers.items()))
        answer = self._upstream.getresponse()
        self._answer(answer.status, _kept(answer.getheaders()), answer.read())

    do_PUT = do_POST = do_DELETE = do_GET

    def _fail(self) -> None:
        assert self.server.row is not None
        if self.server.row.kind.startswith('silent'):
            # The number that placement accepts is limited.
            self._upstream.close()
            self.server.ended.wait()
            self.close_connection = True
        else:
            self._answer(*ANSWERS[self.server.row.kind])

    def _answer(self, status: int, headers: abc.Mapping[str, str],
                content: bytes) -> None:
        self.send_response(status)
        for header in headers.items():
            self.send_header(*header)
        if status != 204:
            self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: Any) -> None:
        pass


def _kept(headers: abc.Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in HOPS}
