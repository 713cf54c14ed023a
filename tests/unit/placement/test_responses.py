# SPDX-License-Identifier: Apache-2.0
"""Malformed placement responses are errors, never empty sets."""

from collections.abc import Iterable
import json
import socket
import struct
from typing import Any

from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from tests.unit import servers

PROVIDER = uuidutils.generate_uuid()
AGGREGATE = uuidutils.generate_uuid()
PATH = '/resource_providers/%s/aggregates' % PROVIDER


class AnswerTestCase(servers.LoopbackTestCase):
    """Responses that placement does not send."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.client = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=self.cloud.url))

    def assert_malformed(self, path: str, bodies: Iterable[Any],
                         call: Any, *args: Any) -> None:
        for body in bodies:
            self.cloud.answers[path] = (200, body)
            self.assertRaises(exceptions.MalformedAnswer, call, *args)

    def test_list_of_providers(self) -> None:
        """Only a complete list of UUIDs is a list of providers."""
        self.assert_malformed('/resource_providers', (
            b'', b'<html>Welcome</html>', b'{"resource_providers": [',
            b'\xff\xfe\x00', b'[' * 100000, [], 'text', None, 0, {},
            {'resource_providers': None}, {'resource_providers': {}},
            {'resource_providers': [None]}, {'resource_providers': [{}]},
            {'resource_providers': [{'uuid': 'x'}]},
            {'resource_providers': [{'uuid': PROVIDER}, {'uuid': 1}]},
        ), self.client.providers)

    def test_provider(self) -> None:
        """Only UUIDs and an integer are a provider's state."""
        self.assert_malformed(PATH, (
            {}, {'aggregates': []},
            {'resource_provider_generation': 1},
            {'aggregates': None, 'resource_provider_generation': 1},
            {'aggregates': {}, 'resource_provider_generation': 1},
            {'aggregates': ['x'], 'resource_provider_generation': 1},
            {'aggregates': [[]], 'resource_provider_generation': 1},
            {'aggregates': [], 'resource_provider_generation': None},
            {'aggregates': [], 'resource_provider_generation': '1'},
            {'aggregates': [], 'resource_provider_generation': 1.0},
            {'aggregates': [], 'resource_provider_generation': True},
        ), self.client.get, PROVIDER)

    def test_write_that_is_not_confirmed(self) -> None:
        """The response must repeat the PUT, with the next generation."""
        provider = client.Provider(PROVIDER, frozenset(), 7)
        self.assert_malformed(PATH, (
            {'aggregates': [], 'resource_provider_generation': 8},
            {'aggregates': [AGGREGATE], 'resource_provider_generation': 7},
            {'aggregates': [AGGREGATE, PROVIDER],
             'resource_provider_generation': 8},
        ), self.client.put, provider, frozenset({AGGREGATE}))

    def test_write_of_what_is_no_json(self) -> None:
        """An argument of the wrong type is not reported as a bad response."""
        self.client.providers()
        self.assertRaises(
            TypeError, self.client.put,
            client.Provider(PROVIDER, frozenset(), 7), frozenset({object()}))

    def test_unexpected_success_is_an_error(self) -> None:
        """Only status 200 is a valid response."""
        for status in (201, 202, 204, 304):
            self.cloud.answers['/resource_providers'] = (status, b'')
            self.assertRaises(exceptions.ServiceFailed, self.client.providers)

    def test_not_found_in_other_words(self) -> None:
        """A 404 that does not name the provider is not "not found"."""
        for body in (
                {'errors': [{'status': 404, 'detail': 'No such path'}]},
                {'errors': [{'status': 500, 'detail': PROVIDER}]},
                {'errors': [PROVIDER]}, {'errors': PROVIDER}, {'errors': []},
                {'itemNotFound': {'message': PROVIDER}}, [PROVIDER]):
            self.cloud.answers[PATH] = (404, body)
            self.assertRaises(exceptions.MalformedAnswer, self.client.get,
                              PROVIDER)

    def test_conflict_of_another_kind(self) -> None:
        """Only a concurrent update is a generation conflict."""
        self.cloud.answers[PATH] = (409, {'errors': [
            {'status': 409, 'code': 'placement.undefined_code'}]})
        self.assertRaises(
            exceptions.ServiceFailed, self.client.put,
            client.Provider(PROVIDER, frozenset(), 1), frozenset())

    def test_no_answer(self) -> None:
        """The failure names the service, and quotes OpenSSL's reason."""
        for url, observation in (
                ('http://nowhere.invalid',
                 '^has a host name that does not resolve$'),
                (self.cloud.url.replace('http', 'https'),
                 '^failed the TLS handshake')):
            placement = client.Client(
                servers.make_conf(auth_type='none', endpoint_override=url),
                request_timeout=servers.PATIENCE)
            failure = self.assertRaises(
                exceptions.ServiceUnreachable, placement.providers).failure
            self.assertEqual('placement at ' + url, failure.party)
            self.assertRegex(failure.observation, observation)

    def test_secrets_stay_out_of_messages(self) -> None:
        """No password or token is in a message."""
        self.client = client.Client(servers.make_conf(
            auth_type='none', endpoint_override='http://nova:s3@cret@' +
            self.cloud.host))
        self.cloud.answers['/resource_providers'] = (400, {'errors': [{
            'status': 400, 'detail': "'password': 's3cret'; "
            'see http://nova:s3@cret@placement/doc'}]})
        error = self.assertRaises(exceptions.RequestRejected,
                                  self.client.providers)
        for text in (str(error), self.client.endpoint()):
            self.assertNotIn('s3', text)
            self.assertNotIn('cret@', text)
        self.assertIn(self.cloud.host, self.client.endpoint())


class BodyTestCase(servers.LoopbackTestCase):
    """Responses that are damaged in transit."""

    def assert_raises(self, expected: type[exceptions.MirrorError],
                      answer: bytes, reset: bool = False) -> None:
        def script(server: servers.Server, client: socket.socket) -> None:
            while server.request(client).startswith(b'GET / '):
                body = json.dumps(servers.VERSIONS).encode()
                client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d'
                               b'\r\n\r\n%s' % (len(body), body))
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack('ii', 1, 0))
            client.sendall(answer)

        server = self.useFixture(servers.Server(script))
        placement = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=server.url))
        self.assertRaises(expected, placement.providers)

    def test_what_is_no_answer_of_placement(self) -> None:
        """It is not parsed, and an error of placement, not of this package."""
        chunked = b'Transfer-Encoding: chunked\r\n\r\n'
        redirect = b'HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: '
        for answer in (
                *(b'HTTP/1.1 200 OK\r\n' + rest for rest in (
                    # A body that is shorter than announced.
                    b'Content-Length: 30\r\n\r\n{"resource_providers": []}',
                    b'Content-Length: 30\r\n\r\n{"resource_prov',
                    b'Content-Length: 30\r\n\r\n',
                    # Incomplete chunks.
                    chunked + b'1a\r\n{"resource_providers": []}\r\n',
                    chunked + b'x\r\n',
                    chunked + b'ffff\r\n{"resource_providers": []}',
                    b'Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n'
                    b'nope')),
                # A redirect to what is no URL.
                *(redirect + location + b'\r\n\r\n' for location in (
                    b'http://[', b'http://\xff', b'http://x:y/')),
                # The greeting of another service.
                b'SSH-2.0-OpenSSH_9.2\r\n', b'\x15\x03\x01\x00\x02',
                b'HTTP/1.1 abc\r\n\r\n'):
            self.assert_raises(exceptions.MalformedAnswer, answer)

    def test_relative_redirect(self) -> None:
        """RFC 9110 allows one; it is followed."""
        cloud = self.useFixture(servers.Cloud())
        cloud.answers['/resource_providers'] = 302, b''
        cloud.answers['/new/providers'] = 200, {'resource_providers': []}
        cloud.headers['Location'] = '/new/providers'
        placement = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=cloud.url))
        self.assertEqual(frozenset(), placement.providers())

    def test_redirect_that_cannot_be_followed(self) -> None:
        """What was answered comes first, not that nothing can be asked."""
        cloud = self.useFixture(servers.Cloud())
        placement = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=cloud.url))
        placement.providers()
        cloud.answers['/resource_providers'] = 302, {}
        for location in 'ftp://elsewhere/', 'http://[', '//[', 'x:y':
            cloud.headers['Location'] = location
            error = self.assertRaises(exceptions.MalformedAnswer,
                                      placement.providers)
            self.assertEqual(
                'placement at %s answered 302, which cannot be used (GET '
                '/resource_providers)' % cloud.url,
                str(error).partition(': ')[0])

    def test_version_document_that_is_refused(self) -> None:
        """The error names the request that was made, and no other."""
        cloud = self.useFixture(servers.Cloud())
        for status in 503, 404, 401:
            cloud.answers['/'] = status, b''
            error = self.assertRaises(
                exceptions.MirrorError, client.Client(servers.make_conf(
                    auth_type='none', endpoint_override=cloud.url)).providers)
            self.assertEqual('GET /', error.failure.occasion)
            self.assertEqual(0, cloud.count('/resource_providers'))

    def test_connection_that_ends(self) -> None:
        """A closed or reset connection means placement is unavailable."""
        self.assert_raises(exceptions.ServiceUnreachable, b'')
        self.assert_raises(exceptions.ServiceUnreachable, b'', reset=True)
