# SPDX-License-Identifier: Apache-2.0
"""The deadline holds against servers that hang or trickle, byte by byte."""

from collections import abc
import gzip
import os
import socket
import ssl
import tracemalloc
from typing import Any
import zlib

import fixtures
import requests
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import openstack_options
from tests import patience
from tests.unit import servers

# An unlimited client would need 30 s or more to read this.
LONG_BODY = b'.' * 300
SHORT = patience.seconds(2)
CALL = errors.Call(lambda: openstack_options.party('placement'), 'GET /path')


def _says_nothing(server: servers.Server, client: socket.socket) -> None:
    while True:
        if not client.recv(4096):
            raise OSError('the client has closed')


def _answers(server: servers.Server, client: socket.socket) -> None:
    while True:
        server.request(client)
        client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')


def _trickles_headers(server: servers.Server, client: socket.socket) -> None:
    server.request(client)
    server.trickle(client, b'HTTP/1.1 200 OK\r\nX: ' + LONG_BODY)


def _trickles_body(server: servers.Server, client: socket.socket) -> None:
    server.request(client)
    client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n')
    server.trickle(client, LONG_BODY)


def _trickles_chunks(server: servers.Server, client: socket.socket) -> None:
    server.request(client)
    client.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    server.trickle(client, b'1\r\n.\r\n' * 60)


def _answers_then_trickles(server: servers.Server,
                           client: socket.socket) -> None:
    server.request(client)
    client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    _trickles_body(server, client)


class DeadlineTestCase(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.session = requests.Session()
        # Ignore proxies and certificate authorities of this machine.
        self.session.trust_env = False
        for scheme in ('http://', 'https://'):
            self.session.mount(scheme, adapter.Adapter())
        self.addCleanup(self.session.close)

    def start(self,
              script: abc.Callable[[servers.Server, socket.socket], None],
              **kwargs: ssl.SSLContext) -> servers.Server:
        return self.useFixture(servers.Server(script, **kwargs))

    def get(self, url: str, **kwargs: Any) -> requests.Response:
        with errors.translated(CALL):
            return self.session.get(url, **kwargs)

    def assert_cut(self, server: servers.Server, **kwargs: Any) -> None:
        """Assert that the client gives up before the server has finished."""
        with deadline.within(SHORT):
            self.assertRaises(exceptions.DeadlineExceeded, self.get,
                              server.url, **kwargs)
        self.assertTrue(server.closed.wait(servers.PATIENCE))
        self.assertFalse(server.done.is_set())


class TrickleTestCase(DeadlineTestCase):

    def test_slow_answers_are_cut(self) -> None:
        """A longer timeout of the caller does not extend the deadline."""
        for script in (_says_nothing, _trickles_headers, _trickles_body,
                       _trickles_chunks):
            self.assert_cut(self.start(script), timeout=1000)

    def test_request_after_the_deadline(self) -> None:
        """It is not sent, and the request before it is the reason."""
        server = self.start(_says_nothing)
        with deadline.within(SHORT):
            error = self.assertRaises(
                exceptions.DeadlineExceeded, self.get_twice, server.url)
        self.assertIn('was silent for', str(error))
        self.assertNotIn('0.0 s', str(error))

    def test_connection_that_is_not_accepted(self) -> None:
        """A full queue drops packets, as a firewall does."""
        # Also if this process comes late to it.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.is_silence',
            lambda _waited: True))
        listener = self.useFixture(servers.FullQueue())
        with deadline.within(SHORT):
            error = self.assertRaises(
                exceptions.DeadlineExceeded, self.get, listener.url)
        self.assertEqual(causes.NO_CONNECTION.kind, error.failure.kind)

    def test_request_shortly_before_the_deadline(self) -> None:
        """It is not taken for a silence; all requests together are late."""
        judgements = iter((False, True))
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.is_silence',
            lambda _waited: next(judgements)))
        server = self.start(_says_nothing)
        with deadline.within(SHORT), testtools.ExpectedException(
                exceptions.DeadlineExceeded,
                '.*placement.* did not answer in time'):
            self.get(server.url)

    def test_time_that_passes_after_an_answer(self) -> None:
        """Rule 17: it is this process's own, and no silence of placement."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.is_silence',
            lambda _waited: True))
        server = self.start(_answers)
        with deadline.within(servers.PATIENCE), testtools.ExpectedException(
                exceptions.OutOfTime, '.*was not waited for'):
            with errors.translated(CALL):
                self.session.get(server.url)
                raise TimeoutError('the deadline has passed')

    def test_option_for_more_time(self) -> None:
        """It is named in nova-api alone: other deadlines are not of it."""
        for limit, step in ((deadline.within(0.0), ''), (
                deadline.Budget(1.0).spending(),
                causes.OUT_OF_TIME.in_call().step)):
            with limit:
                self.assertEqual(step, CALL.error(
                    exceptions.OutOfTime, causes.OUT_OF_TIME).failure.step)

    def get_twice(self, url: str) -> None:
        with errors.translated(CALL):
            self.assertRaises(requests.RequestException, self.session.get, url)
            self.session.get(url)

    def test_reused_connection_is_cut(self) -> None:
        """The current deadline applies, not that of the first request."""
        server = self.start(_answers_then_trickles)
        with deadline.within(servers.PATIENCE):
            self.assertEqual('ok', self.session.get(server.url).text)
        self.assert_cut(server)
        self.assertEqual(1, server.accepted)

    def test_connection_that_was_cut_is_not_used_again(self) -> None:
        """A later response cannot be the rest of an earlier response."""
        server = self.start(_trickles_body)
        self.assert_cut(server)
        server.closed.clear()
        self.assert_cut(server)
        self.assertEqual(2, server.accepted)

    def test_answer_through_a_proxy_is_cut(self) -> None:
        """A proxy in the environment does not disable the deadline."""
        server = self.start(_trickles_body)
        proxies = {'http': server.url}
        with deadline.within(SHORT):
            self.assertRaises(
                requests.RequestException, self.session.get,
                'http://placement.example/', proxies=proxies)
        self.assertTrue(server.closed.wait(servers.PATIENCE))


def _refuses(server: servers.Server, client: socket.socket) -> None:
    while True:
        server.request(client)
        client.sendall(b'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n')


class KeystoneTestCase(DeadlineTestCase):

    def test_refusal_at_auth_url_alone_is_final(self) -> None:
        """Elsewhere on that server, a 401 is an ordinary response."""
        server = self.start(_refuses)
        self.session.mount('http://', adapter.Adapter(
            auth_url=server.url + 'identity'))
        for path, status in (('identity', 403), ('identity/', 403),
                             ('identity/v3/auth/tokens', 401),
                             ('identity2', 401), ('placement', 401)):
            with deadline.within(servers.PATIENCE):
                self.assertEqual(status, self.session.get(
                    server.url + path).status_code, path)


class BoundTestCase(DeadlineTestCase):

    def test_request_without_a_deadline(self) -> None:
        """It is refused: it might wait for ever."""
        server = self.start(_answers)
        self.assertRaises(RuntimeError, self.session.get, server.url,
                          timeout=SHORT)
        self.assertEqual(0, server.accepted)

    def test_session_that_others_use(self) -> None:
        """Their requests have no deadline and are not bounded."""
        server = self.start(_answers)
        for scheme in ('http://', 'https://'):
            self.session.mount(scheme, adapter.Adapter(is_shared=True))
        self.assertEqual('ok', self.session.get(server.url).text)

    def test_no_connection_is_made_when_no_time_is_left(self) -> None:
        """After the deadline no connection is opened."""
        server = self.start(_answers)
        with deadline.within(0):
            self.assertRaises(requests.exceptions.Timeout, self.session.get,
                              server.url)
        self.assertEqual(0, server.accepted)

    def test_shorter_timeout_of_the_caller_is_kept(self) -> None:
        """The deadline shortens a timeout and never lengthens it."""
        server = self.start(_says_nothing)
        with deadline.within(1000):
            self.assertRaises(requests.exceptions.Timeout, self.session.get,
                              server.url, timeout=0.2)
        self.assertTrue(server.closed.wait(servers.PATIENCE))


def _sends(body: bytes, encoding: str
           ) -> abc.Callable[[servers.Server, socket.socket], None]:
    def script(server: servers.Server, client: socket.socket) -> None:
        while True:
            server.request(client)
            client.sendall(
                b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n'
                b'Content-Encoding: %s\r\n\r\n'
                % (len(body), encoding.encode()))
            client.sendall(body)
    return script


class LengthTestCase(DeadlineTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.http.adapter.LONGEST_BODY', 2 ** 20))

    def assert_refused(self, text: str, body: bytes, encoding: str) -> int:
        """Return the bytes that the refused response took."""
        server = self.start(_sends(body, encoding))
        tracemalloc.start()
        try:
            with deadline.within(servers.PATIENCE):
                error = self.assertRaises(
                    exceptions.Retriable, self.get, server.url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        self.assertIsInstance(error, exceptions.MalformedAnswer)
        self.assertIn(text, str(error))
        return peak

    def test_body_that_decompresses_to_much_more(self) -> None:
        """It is given up at the limit, before it uses up the memory."""
        body = b' ' * 2 ** 26
        for encoding, compressed in (
                ('gzip', gzip.compress(body)),
                ('deflate', zlib.compress(body)),
                ('', body)):
            peak = self.assert_refused(
                'longer than 1048576 bytes', compressed, encoding)
            self.assertLess(peak, 2 ** 25)

    def test_encoding_that_was_not_requested(self) -> None:
        """Each layer multiplies the length, so that none is decoded."""
        body = gzip.compress(gzip.compress(b' ' * 2 ** 24))
        for encoding in 'gzip, gzip', 'br', 'zstd':
            peak = self.assert_refused(encoding, body, encoding)
            self.assertLess(peak, 2 ** 24)

    def test_body_of_the_greatest_length(self) -> None:
        """It is whole, and the connection is used again."""
        body = os.urandom(2 ** 20)
        for encoding, sent in ('gzip', gzip.compress(body)), ('', body):
            server = self.start(_sends(sent, encoding))
            with deadline.within(servers.PATIENCE):
                for _ in range(2):
                    self.assertEqual(body, self.get(server.url).content)
            self.assertEqual(1, server.accepted)


class TLSTestCase(DeadlineTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.context, self.session.verify = servers.certificate(
            self.useFixture(fixtures.TempDir()).path)

    def test_slow_answers_are_cut(self) -> None:
        """What arrives byte by byte over TLS ends at the deadline."""
        for script in _trickles_headers, _trickles_body:
            self.assert_cut(self.start(script, tls=self.context))

    def test_handshake_that_hangs_is_cut(self) -> None:
        """A server that never completes the handshake is dropped."""
        server = self.start(_says_nothing)
        server.url = server.url.replace('http:', 'https:')
        self.assert_cut(server)
