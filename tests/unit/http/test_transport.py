# SPDX-License-Identifier: Apache-2.0
"""The deadline holds against servers that hang or trickle, byte by byte.

Reads are sent again after the answer of one sick backend of many.
"""

from collections import abc
import errno
import gzip
import itertools
import math
import os
import socket
import ssl
import tracemalloc
from typing import Any
import zlib

import fixtures
from keystoneauth1 import adapter as ks_adapter
import requests
import testtools
from urllib3.util import connection

from nova_aggregate_mirror import causes
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.source import api
from tests import documents
from tests import patience
from tests.unit import servers

# An unlimited client would need 30 s or more to read this.
LONG_BODY = b'.' * 300
SHORT = patience.seconds(2)
CALL = errors.Call(lambda: causes.openstack_client('placement'), 'GET /path')

LIST, TOKEN = '/resource_providers', '/v3/auth/tokens'
SICK = (503, b'<html>No server is available</html>')
LISTED = b'{"resource_providers": []}'
PAGE = (200, b'<html>Welcome</html>')
PROVIDER = 'c2a1c1f4-62c5-4ac4-b1a5-5a5b6a0c1d11'
PATH = '/resource_providers/%s/aggregates' % PROVIDER


def _sends(body: bytes, encoding: str = ''
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


def _refuses(server: servers.Server, client: socket.socket) -> None:
    while True:
        server.request(client)
        client.sendall(b'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n')


class DeadlineTestCase(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.session = requests.Session()
        # Ignore proxies and certificate authorities of this machine.
        self.session.trust_env = False
        for scheme in ('http://', 'https://'):
            self.session.mount(scheme, transport.Adapter())
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
        for script in (servers.say_nothing, _trickles_headers, _trickles_body,
                       _trickles_chunks):
            self.assert_cut(self.start(script), timeout=1000)

    def judge(self, are_silences: abc.Iterator[bool]) -> None:
        """Let each wait be judged so."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.is_silence',
            lambda _waited: next(are_silences)))

    def test_request_after_the_deadline(self) -> None:
        """It is not sent, and the request before it is the reason."""
        server = self.start(servers.say_nothing)
        with deadline.within(SHORT), testtools.ExpectedException(
                exceptions.DeadlineExceeded, r'.*was silent for (?!0\.0 s)'):
            with errors.translated(CALL):
                self.assertRaises(requests.RequestException,
                                  self.session.get, server.url)
                self.session.get(server.url)

    def test_connection_that_is_not_accepted(self) -> None:
        """A full queue drops packets, as a firewall does."""
        # Also if this process comes late to it.
        self.judge(itertools.repeat(True))
        listener = self.useFixture(servers.FullQueue())
        with deadline.within(SHORT):
            error = self.assertRaises(
                exceptions.DeadlineExceeded, self.get, listener.url)
        self.assertEqual(causes.NO_CONNECTION.kind, error.failure.kind)

    def test_request_shortly_before_the_deadline(self) -> None:
        """It is not taken for a silence; all requests together are late."""
        self.judge(iter((False, True)))
        server = self.start(servers.say_nothing)
        with deadline.within(SHORT), testtools.ExpectedException(
                exceptions.DeadlineExceeded,
                '.*placement.* did not answer in time'):
            self.get(server.url)

    def test_time_that_passes_after_an_answer(self) -> None:
        """Rule 17: it is this process's own, and no silence of placement."""
        self.judge(itertools.repeat(True))
        server = self.start(_sends(b'ok'))
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

    def test_refusal_at_auth_url_alone_is_final(self) -> None:
        """Elsewhere on that server, a 401 is an ordinary response."""
        server = self.start(_refuses)
        self.session.mount('http://', transport.Adapter(
            auth_url=server.url + 'identity'))
        for path, status in (('identity', 403), ('identity/', 403),
                             ('identity/v3/auth/tokens', 401),
                             ('identity2', 401), ('placement', 401)):
            with deadline.within(servers.PATIENCE):
                self.assertEqual(status, self.session.get(
                    server.url + path).status_code, path)

    def test_request_without_a_deadline(self) -> None:
        """It is refused: it might wait for ever."""
        server = self.start(_sends(b'ok'))
        self.assertRaises(RuntimeError, self.session.get, server.url,
                          timeout=SHORT)
        self.assertEqual(0, server.accepted)

    def test_session_that_others_use(self) -> None:
        """Their requests have no deadline and are not bounded."""
        server = self.start(_sends(b'ok'))
        for scheme in ('http://', 'https://'):
            self.session.mount(scheme, transport.Adapter(is_shared=True))
        self.assertEqual('ok', self.session.get(server.url).text)

    def test_no_connection_is_made_when_no_time_is_left(self) -> None:
        """After the deadline no connection is opened."""
        server = self.start(_sends(b'ok'))
        with deadline.within(0):
            self.assertRaises(requests.exceptions.Timeout, self.session.get,
                              server.url)
        self.assertEqual(0, server.accepted)


class LengthTestCase(DeadlineTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.http.transport.LONGEST_BODY', 2 ** 20))

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
        server = self.start(servers.say_nothing)
        server.url = server.url.replace('http:', 'https:')
        self.assert_cut(server)


def raising(errors: list[exceptions.MirrorError]) -> None:
    raise errors.pop(0)


class RepeatsTest(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.conf = servers.make_conf(**self.cloud.account(region_name='R'))
        self.client = client.Client(self.conf)

    def test_answer_of_a_sick_backend(self) -> None:
        """Whatever it sends: the same GET is answered by another one."""
        for failure in (SICK, PAGE, (500, {}), (502, b''), (504, b''),
                        (429, b'slow down'), (404, b'<html>'), (406, b''),
                        (200, {'nothing': 'of placement'}), (409, {}),
                        (401, b''), (403, {'errors': [{'status': 403}]})):
            self.cloud.failures[LIST] = [failure] * transport.REPEATS
            self.assertEqual(frozenset(), self.client.providers())
            self.assertEqual([], self.cloud.failures[LIST])

    def test_answer_that_took_the_time(self) -> None:
        """It is the cause, not that no time is left for another."""
        of_nova = exceptions.NovaUnavailable('answered 504')
        of_nova.is_repeatable = True
        for answer, late in (
                (exceptions.ServiceFailed('answered 504'),
                 exceptions.OutOfTime('no time is left')),
                (of_nova, exceptions.NovaUnavailable(
                    'no time is left', kind=causes.OUT_OF_TIME.kind))):
            with deadline.within(60.0):
                self.assertIs(answer, self.assertRaises(
                    type(answer), transport.repeating(raising),
                    [answer, late]))
        self.assertRaises(exceptions.OutOfTime, transport.repeating(raising),
                          [exceptions.OutOfTime('no time is left')])

    def test_service_that_asks_for_pauses(self) -> None:
        """It is asked as often as any other, whoever waits."""
        self.client.providers()
        self.cloud.answers[PATH] = 429, b'slow down'
        self.cloud.headers = {'Retry-After': '1'}
        self.useFixture(fixtures.MonkeyPatch('time.sleep', lambda _s: None))
        answers = self.client.ask(
            self.client.get, [PROVIDER], isolation.in_turn, math.inf)
        self.assertIn(PROVIDER, answers.failures)
        self.assertEqual(1 + transport.REPEATS, self.cloud.count(PATH))

    def test_write(self) -> None:
        """It begins again at its GET, if at all: nothing is sent twice."""
        self.client.providers()
        self.cloud.answers[PATH] = SICK
        self.assertRaises(
            exceptions.ServiceFailed, self.client.put,
            client.Provider(PROVIDER, frozenset(), 1), frozenset())
        self.assertEqual(1, self.cloud.count(PATH))

    def test_new_connection(self) -> None:
        """A kept connection would lead to the same backend."""
        server = self.useFixture(servers.Server(_sick_connections))
        placement = client.Client(servers.make_conf(
            auth_type='admin_token', endpoint=server.url, token='any'))
        placement.probe()
        self.assertEqual(1 + transport.REPEATS, server.accepted)

    def test_backend_that_refuses_the_connection(self) -> None:
        """The next one may lead to another backend."""
        self.client.providers()
        self.client.release()
        connect, refusals = connection.create_connection, transport.REPEATS

        def refused(*args: Any, **kwargs: Any) -> socket.socket:
            nonlocal refusals
            refusals -= 1
            if refusals >= 0:
                raise ConnectionRefusedError(errno.ECONNREFUSED, 'refused')
            return connect(*args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(
            'urllib3.util.connection.create_connection', refused))
        self.assertEqual(frozenset(), self.client.providers())
        self.assertEqual(-1, refusals)

    def test_kept_connection_that_is_closed(self) -> None:
        """The server closes it while the request is on its way."""
        server = self.useFixture(servers.Server(_closes_second_request))
        placement = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=server.url))
        for _request in range(2):
            placement.probe()
        self.assertEqual(2, server.accepted)

    def test_time_that_placement_asks_for(self) -> None:
        """It is waited, if it fits into the deadline of the call."""
        self.client.providers()
        for seconds, expected, count in (
                ('0', frozenset(), 2), ('1', None, 1), ('999999999', None, 1)):
            self.cloud.headers = {'Retry-After': seconds}
            self.cloud.failures[LIST] = [(429, b'')]
            self.cloud.requests.clear()
            with deadline.within(0.9):
                answer = None
                try:
                    answer = self.client.providers()
                except exceptions.ServiceFailed as exc:
                    self.assertEqual(float(seconds), exc.retry_after)
            self.assertEqual(expected, answer)
            self.assertEqual(count, self.cloud.count(LIST))

    def test_pause_before_the_repetition(self) -> None:
        """So many seconds, once per 429 that has such a header."""
        pauses: list[float] = []
        self.useFixture(fixtures.MonkeyPatch('time.sleep', pauses.append))
        self.client.providers()
        for header in ('7', 'soon', '-1', 'Wed, 21 Oct 2026 07:28:00 GMT'):
            self.cloud.headers = {'Retry-After': header}
            self.cloud.failures[LIST] = [(429, b''), SICK]
            self.client.providers()
        self.assertEqual([7.0, 0.0] + [0.0] * 6, pauses)

    def test_token(self) -> None:
        """One answer of a sick keystone is no outage of placement."""
        self.cloud.failures[TOKEN] = [SICK]
        self.assertEqual(frozenset(), self.client.providers())

    def test_nova_api_of_the_openstack_client(self) -> None:
        """It has the same kind of load balancer in front."""
        self.cloud.grant(self.cloud.url, others=[
            documents.service('compute', self.cloud.url)])
        source = api.ApiSource(api.Api(
            auth.session(self.conf, 'placement'), servers.PATIENCE, 'R',
            'internal'))
        self.cloud.answers['/os-aggregates'] = (200, {'aggregates': []})
        for failure in SICK, PAGE, (200, {}):
            self.cloud.failures['/os-aggregates'] = [failure]
            self.assertEqual([], source.all_aggregates())

    def test_look_up_of_a_name(self) -> None:
        """In keystone, glance or neutron, for explain."""
        self.cloud.answers['/v2/images'] = (200, {'images': [
            {'id': 'the-id', 'name': 'linux'}]})
        for path in '/v2/images', '/v2/images/linux':
            self.cloud.failures[path] = [SICK]
        with deadline.within(servers.PATIENCE):
            self.assertEqual(['the-id'], lookup.identifiers(
                self._adapter, lambda: causes.openstack_client('glance'),
                resources.IMAGE, 'linux'))

    def _adapter(self) -> ks_adapter.Adapter:
        return ks_adapter.Adapter(
            auth.session(self.conf, 'placement'),
            endpoint_override=self.cloud.url)


def _closes_second_request(server: servers.Server, connected: socket.socket
                           ) -> None:
    for _request in range(2):
        path = server.request(connected).split()[1]
        server.answer(connected, servers.DISCOVERY if path == b'/' else LISTED)
    server.request(connected)


def _sick_connections(server: servers.Server, connected: socket.socket
                      ) -> None:
    """Answer all requests of a connection alike; only the last one is good."""
    is_good = server.accepted > transport.REPEATS
    while True:
        path = server.request(connected).split()[1]
        if path == b'/':
            server.answer(connected, servers.DISCOVERY)
        elif is_good:
            server.answer(connected, LISTED)
        else:
            server.answer(connected, b'', '503 No')
