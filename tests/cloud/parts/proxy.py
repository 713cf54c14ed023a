# SPDX-License-Identifier: Apache-2.0
"""A proxy of placement that answers for some providers itself."""

from collections import abc
import http.client
import http.server
import json
import re
import threading
from typing import Any
from typing import Self

ABOUT = re.compile('/resource_providers/([^/]+)/aggregates$')
CONFLICT = json.dumps({'errors': [{
    'status': 409, 'title': 'Conflict', 'code': 'placement.concurrent_update',
    'detail': 'another writer has changed the provider'}]}).encode()
FAILURE = json.dumps({'errors': [{
    'status': 500, 'title': 'Internal Server Error', 'detail': 'it failed',
    'code': 'placement.undefined_code'}]}).encode()
ANSWERS = {'provider-500': (500, 'application/json', FAILURE),
           'provider-409': (409, 'application/json', CONFLICT),
           'provider-garbage': (200, 'text/html', b'<html>Welcome</html>')}
# They belong to a connection, not to what it transports.
HOPS = {'connection', 'keep-alive', 'transfer-encoding', 'content-length',
        'server', 'date', 'host'}


class Proxy:
    """A port whose requests continue to placement, run by threads.

    :param target: the port of placement
    """

    def __init__(self, target: int) -> None:
        self.part = ''
        """A key of ``ANSWERS`` while providers are bad."""
        self.providers: abc.Collection[str] = ()
        """UUIDs of the providers that are bad."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True
            wbufsize = -1

            def setup(self) -> None:
                super().setup()
                self._upstream = http.client.HTTPConnection(
                    '127.0.0.1', target)

            def finish(self) -> None:
                self._upstream.close()
                super().finish()

            def do_GET(self) -> None:
                body = self.rfile.read(
                    int(self.headers.get('Content-Length', 0)))
                about = ABOUT.search(self.path)
                if (proxy.part and about and about[1] in proxy.providers
                        and (proxy.part != 'provider-409'
                             or self.command == 'PUT')):
                    status, kind, content = ANSWERS[proxy.part]
                    self._answer(status, {'Content-Type': kind}, content)
                    return
                self._upstream.request(
                    self.command, self.path, body or None,
                    {name: value for name, value in self.headers.items()
                     if name.lower() not in HOPS})
                answer = self._upstream.getresponse()
                self._answer(answer.status, {
                    name: value for name, value in answer.getheaders()
                    if name.lower() not in HOPS}, answer.read())

            do_PUT = do_POST = do_DELETE = do_GET

            def _answer(self, status: int, headers: dict[str, str],
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

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, _request: Any, _address: Any) -> None:
                # Either side may be killed.
                pass

        self._server = Server(('127.0.0.1', 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, name='proxy', daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_details: object) -> None:
        self._server.shutdown()
        self._server.server_close()
