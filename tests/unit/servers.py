# SPDX-License-Identifier: Apache-2.0
"""Scripted loopback servers, and a configuration to reach them."""

from collections import abc
import datetime
import http.server
import ipaddress
import json
import os
import pathlib
import socket
import ssl
import threading
from typing import Any
import urllib.parse

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid
import fixtures
from keystoneauth1 import loading
from oslo_config import cfg
import testtools

import nova_aggregate_mirror.conf
from tests import documents
from tests import patience

# How long a test waits for an expected event; only a failing test waits.
PATIENCE = patience.seconds(60)
# Between two bytes of a trickle: much shorter than any read timeout.
PAUSE = 0.1
VERSIONS = {'versions': [documents.placement_version()]}
DISCOVERY = json.dumps(VERSIONS).encode()
Answer = tuple[int, Any]
"""A status, and an object or the bytes of a body."""


def make_conf(**placement: Any) -> cfg.ConfigOpts:
    """Return nova's configuration, with these options in [placement]."""
    conf = cfg.ConfigOpts()
    conf([])
    nova_aggregate_mirror.conf.register_opts(conf)
    conf.set_default(
        'inline_timeout', patience.LONGEST_CALL, 'aggregate_mirror')
    loading.register_session_conf_options(conf, 'placement')
    loading.register_auth_conf_options(conf, 'placement')
    loading.register_adapter_conf_options(conf, 'placement')
    conf.set_default('service_type', 'placement', 'placement')
    conf.set_default('valid_interfaces', ['internal', 'public'], 'placement')
    if placement.get('auth_type') in loading.get_available_plugin_names():
        conf.register_opts(
            loading.get_auth_plugin_conf_options(placement['auth_type']),
            group='placement')
    for name, value in placement.items():
        conf.set_override(name, value, 'placement')
    return conf


def certificate(folder: str | os.PathLike[str], host: str = '',
                days: int = 1, since: int = -2) -> tuple[ssl.SSLContext, str]:
    """Write a self-signed certificate for this machine.

    :param host: a name that it is for, instead of the address
    :param days: until it expires
    :param since: days from now on which it becomes valid
    :returns: what a server needs, and the path of the certificate
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, 'test')])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    address = x509.DNSName(host) if host else x509.IPAddress(
        ipaddress.ip_address('127.0.0.1'))
    unsigned = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    unsigned = unsigned.public_key(key.public_key()).serial_number(1)
    unsigned = unsigned.not_valid_before(now + since * day)
    unsigned = unsigned.not_valid_after(now + days * day)
    names = x509.SubjectAlternativeName([address])
    signed = unsigned.add_extension(names, False).sign(key, hashes.SHA256())
    path = os.path.join(folder, 'server.pem')
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption())
    pathlib.Path(path).write_bytes(
        private + signed.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, path


class LoopbackTestCase(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        # Ignore the proxy settings of the machine that runs the tests.
        self.useFixture(fixtures.EnvironmentVariable('no_proxy', '127.0.0.1'))
        self.useFixture(fixtures.FakeLogger())

    def nova_conf(self, *lines: str) -> str:
        """Write a nova.conf; return its path."""
        path: str = self.useFixture(fixtures.TempDir()).join('nova.conf')
        pathlib.Path(path).write_text('\n'.join(lines))
        return path


class FullQueue(fixtures.Fixture):
    """A port that accepts no connection, and refuses none."""

    def _setUp(self) -> None:
        listener = socket.create_server(('127.0.0.1', 0), backlog=0)
        self.addCleanup(listener.close)
        address = listener.getsockname()
        self.url = 'http://127.0.0.1:%d/' % address[1]
        for _number in range(2):
            waiting = socket.socket()
            self.addCleanup(waiting.close)
            waiting.setblocking(False)
            waiting.connect_ex(address)


class Server(fixtures.Fixture):
    """A loopback server that runs a script for each connection.

    :param script: called with the server and the connected socket, in a
        separate thread; an OSError ends it.
    """

    def __init__(self, script: abc.Callable[['Server', socket.socket], None],
                 tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._script = script
        self._tls = tls
        self.accepted = 0
        self.closed = threading.Event()
        """Set when a client closed its connection early."""
        self.done = threading.Event()
        """Set when a script has finished."""
        self._over = threading.Event()

    def _setUp(self) -> None:
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self._listener.close)
        self.addCleanup(self._over.set)
        self.url = '%s://127.0.0.1:%d/' % (
            'https' if self._tls else 'http',
            self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(
                target=self._run, args=(client,), daemon=True).start()

    def _run(self, client: socket.socket) -> None:
        try:
            if self._tls:
                client = self._tls.wrap_socket(client, server_side=True)
            self._script(self, client)
            self.done.set()
        except OSError:
            self.closed.set()
        finally:
            client.close()

    def request(self, client: socket.socket) -> bytes:
        """Read a request without a body."""
        text = b''
        while not text.endswith(b'\r\n\r\n'):
            if not (piece := client.recv(4096)):
                raise OSError('the client has closed')
            text += piece
        return text

    def answer(self, client: socket.socket, body: bytes,
               status: str = '200 OK') -> None:
        """Send a response with a JSON document."""
        client.sendall(
            b'HTTP/1.1 %s\r\nContent-Type: application/json\r\n'
            b'Content-Length: %d\r\n\r\n%s' % (
                status.encode(), len(body), body))

    def trickle(self, client: socket.socket, text: bytes) -> None:
        """Send a byte at a time, with a pause before each."""
        for byte in text:
            if self._over.wait(PAUSE):
                return
            client.sendall(bytes([byte]))


def say_nothing(_server: Server, client: socket.socket) -> None:
    """Read all that is sent until the client closes the connection."""
    while client.recv(4096):
        pass
    raise OSError('the client has closed')


class Cloud(fixtures.Fixture):
    """A loopback server that is keystone and placement, by script.

    ``answers`` maps a path, or a method and a path, to its response: a status
    and an object or the bytes of a body; a path in ``hanging`` gets no
    response.
    """

    def _setUp(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.hanging: set[str] = set()
        self.token_id = 'the-token-itself'
        self.secret = b''
        """What a request for a token must have; others get a 401."""
        self.content_type = 'application/json'
        self.headers: dict[str, str] = {}
        self.failures: dict[str, list[Answer]] = {}
        """Paths to the answers of sick backends, which come first."""
        self.stuck = threading.Event()
        """Set as soon as a request hangs."""
        self._over = threading.Event()
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            body = b''

            def do_GET(self) -> None:
                self.body = self.rfile.read(
                    int(self.headers.get('Content-Length', 0)))
                cloud._answer(self)

            do_PUT = do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: the requests are recorded."""

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(self._over.set)
        self.host = '127.0.0.1:%d' % server.server_port
        self.url = 'http://' + self.host
        identity = documents.identity(self.url + '/v3/')
        self.answers: dict[str, Answer] = {
            '/': (200, VERSIONS),
            '/resource_providers': (200, {'resource_providers': []}),
            '/v3': (200, {'version': identity}),
            '/v3/auth/tokens': (201, self.token(self.url)),
        }
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        path = urllib.parse.urlsplit(handler.path).path
        self.requests.append((handler.command, path))
        if path in self.hanging:
            self.stuck.set()
            self._over.wait()
            return
        status, body = self.answers.get(
            '%s %s' % (handler.command, path),
            self.answers.get(path, (404, {})))
        if self.failures.get(path):
            status, body = self.failures[path].pop(0)
        if path == '/v3/auth/tokens' and self.secret not in handler.body:
            status, body = 401, {'error': {'message': 'refused'}}
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header('X-Subject-Token', self.token_id)
        handler.send_header('Content-Type', self.content_type)
        handler.send_header('Content-Length', str(len(body)))
        for header in self.headers.items():
            handler.send_header(*header)
        handler.end_headers()
        handler.wfile.write(body)

    @staticmethod
    def token(*placements: str, expires: str = '2099-01-01',
              others: abc.Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """Return a token whose catalog has these placement endpoints.

        :param others: the entries of other services
        """
        entries = [documents.service('placement', *placements), *others]
        return {'token': documents.token(
            entries, expires + 'T00:00:00.000000Z')}

    def grant(self, *placements: str, **options: Any) -> None:
        """Answer with this token from now on."""
        self.answers['/v3/auth/tokens'] = (
            201, self.token(*placements, **options))

    def account(self, **options: Any) -> dict[str, Any]:
        """Return the options of an account at this keystone."""
        return {'auth_type': 'password', 'auth_url': self.url + '/v3',
                'username': 'mirror', 'password': 's3cret',
                'project_name': 'service', 'user_domain_name': 'Default',
                'project_domain_name': 'Default', **options}

    def count(self, path: str) -> int:
        return [asked for _method, asked in self.requests].count(path)
