# SPDX-License-Identifier: Apache-2.0
"""An unavailable placement, or a stand-in on its port that returns errors."""

import http.server
import threading

import fixtures

from tests.cloud import cloud


class NoPlacement(fixtures.Fixture):
    """Placement's process is stopped until the test ends.

    :param status: the answer to every request to its port; 0 refuses
        connections
    """

    def __init__(self, running: cloud.Cloud, status: int = 0) -> None:
        super().__init__()
        self._cloud = running
        self._status = status

    def _setUp(self) -> None:
        placement = self._cloud.process('placement')
        self.addCleanup(self._cloud.start, 'placement')
        placement.kill()
        if self._status:
            server = http.server.ThreadingHTTPServer(
                ('127.0.0.1', placement.port), _handler(self._status))
            self.addCleanup(server.server_close)
            thread = threading.Thread(target=server.serve_forever)
            self.addCleanup(thread.join)
            self.addCleanup(server.shutdown)
            thread.start()


def _handler(status: int) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):

        def _answer(self) -> None:
            # Unread data would reset the connection.
            self.rfile.read(int(self.headers.get('Content-Length', 0)))
            self.send_response(status)
            self.send_header('Content-Length', '0')
            self.end_headers()

        do_GET = do_PUT = do_POST = do_DELETE = _answer

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler
