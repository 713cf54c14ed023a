# SPDX-License-Identifier: Apache-2.0
"""Nova's REST API behind a real socket, with faults."""

from collections import abc
import json
import threading
from typing import Any
from wsgiref import simple_server

import fixtures
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import webob

from nova_aggregate_mirror.source import api
from tests import nova_service
from tests import patience
from tests import placement_service

PREFIX = '/v2.1'


class NovaServer(fixtures.Fixture):
    """A nova of this process on a loopback port, without a keystone.

    ``url`` is the endpoint, ``requests`` are the requests received, and
    ``roles`` the user's roles in keystone. ``answers`` maps a path to a
    response in place of nova's; ``edits`` changes nova's response to a path.
    ``latest`` is the latest microversion, if not that of nova.
    """

    def __init__(self, nova: nova_service.NovaService) -> None:
        super().__init__()
        self._nova = nova

    def _setUp(self) -> None:
        self.requests: list[str] = []
        self.roles = 'admin'
        self.latest = ''
        self.answers: dict[str, webob.Response] = {}
        self.edits: dict[str, abc.Callable[..., None]] = {}
        server = simple_server.make_server(
            '127.0.0.1', 0, self._serve,
            handler_class=placement_service.Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = 'http://127.0.0.1:%d%s' % (server.server_port, PREFIX)
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def _serve(self, environ: dict[str, Any], start: abc.Callable[..., Any]
               ) -> abc.Iterable[bytes]:
        request = webob.Request(environ)
        self.requests.append(request.path_qs)
        path = request.path.removeprefix(PREFIX)
        for name, value in {**nova_service.ADMINISTRATOR,
                            'X-Roles': self.roles}.items():
            request.headers.setdefault(name, value)
        request.script_name, request.path_info = PREFIX, path
        response = self.answers.get(path) or self._too_late(request)
        if response is None:
            response = request.get_response(self._nova.app)
            if path in self.edits and response.status_code == 200:
                body = response.json
                self.edits[path](body)
                response.body = json.dumps(body).encode()
        return response(environ, start)

    def _too_late(self, request: webob.Request) -> webob.Response | None:
        """Refuse a microversion as an older nova does."""
        asked = request.headers.get('OpenStack-API-Version', '')
        if not self.latest or _number(asked) <= _number(self.latest):
            return None
        text = 'Version %s is not supported by the API. Maximum is %s.' % (
            asked, self.latest)
        return webob.Response(status=406, json={
            'computeFault': {'code': 406, 'message': text}})


def source(url: str) -> api.ApiSource:
    """Return the source that reads the nova-api at a URL."""
    return api.ApiSource(api.Api(
        session.Session(auth=token_endpoint.Token(url, 'token')),
        timeout=patience.seconds(60)))


def _number(version: str) -> list[int]:
    return [int(one) for one in version.rpartition(' ')[2].split('.')]
