# SPDX-License-Identifier: Apache-2.0
"""Failures name the service that failed and what it did."""

import socket

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from tests.unit import servers

ACCOUNT = {'auth_type': 'password', 'username': 'nova', 'password': 'x',
           'user_domain_id': 'default'}


class FailureTestCase(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        with socket.create_server(('127.0.0.1', 0)) as listener:
            self.closed = 'http://127.0.0.1:%d' % listener.getsockname()[1]

    def failure(self, timeout: float = servers.PATIENCE, **placement: str
                ) -> exceptions.Failure:
        placement = placement or {
            **ACCOUNT, 'auth_url': self.cloud.url + '/v3'}
        error = self.assertRaises(
            exceptions.MirrorError, client.Client(
                servers.make_conf(**placement),
                request_timeout=timeout).providers)
        return error.failure

    def assert_failure(self, party: str, observation: str,
                       **placement: str) -> None:
        failure = self.failure(**placement)
        self.assertEqual((party, observation),
                         (failure.party, failure.observation))

    def test_placement_that_is_stopped(self) -> None:
        """The library suppresses the refusal: "no supported versions"."""
        self.assert_failure(
            'placement at ' + self.closed, 'refused the connection',
            auth_type='none', endpoint_override=self.closed)
        self.cloud.answers['/v3/auth/tokens'] = (
            201, self.cloud.token(self.closed))
        self.assert_failure('placement at ' + self.closed,
                            'refused the connection')

    def test_keystone_that_is_stopped(self) -> None:
        """It is named, and not placement."""
        self.assert_failure(
            'keystone at ' + self.closed, 'refused the connection', **ACCOUNT,
            auth_url=self.closed + '/v3')

    def test_password_that_is_wrong(self) -> None:
        """Keystone says so; its message has a request ID."""
        self.cloud.answers['/v3/auth/tokens'] = (401, {'error': {
            'code': 401, 'title': 'x', 'message': 'x'}})
        self.assert_failure('keystone at ' + self.cloud.url,
                            'refused the credentials with 401')

    def test_status(self) -> None:
        """Keystone's and placement's, in any step."""
        for path in '/v3/auth/tokens', '/resource_providers':
            self.cloud.answers[path] = (503, {})
            failure = self.failure()
            self.assertEqual(
                ('keystone' if 'auth' in path else 'placement') + ' at '
                + self.cloud.url, failure.party)
            self.assertEqual('answered 503', failure.observation)
            self.cloud.answers['/v3/auth/tokens'] = (
                201, self.cloud.token(self.cloud.url))

    def test_silence(self) -> None:
        """The seconds that were waited for are named."""
        self.cloud.hanging.add('/v3/auth/tokens')
        failure = self.failure(timeout=0.5)
        self.assertEqual('keystone at ' + self.cloud.url, failure.party)
        self.assertStartsWith(failure.observation, 'was silent for 0.')

    def test_name_without_address(self) -> None:
        """Nothing else is named."""
        self.assert_failure(
            'placement at http://nowhere.invalid',
            'has a name that does not resolve',
            auth_type='none', endpoint_override='http://nowhere.invalid')

    def test_port_without_tls(self) -> None:
        """OpenSSL's name of the reason is quoted."""
        url = self.cloud.url.replace('http', 'https')
        failure = self.failure(auth_type='none', endpoint_override=url)
        self.assertEqual('placement at ' + url, failure.party)
        self.assertStartsWith(failure.observation, 'failed the TLS handshake')

    def test_catalog_without_placement(self) -> None:
        """What was looked for is named."""
        failure = self.failure(**ACCOUNT, region_name='S',
                               auth_url=self.cloud.url + '/v3')
        self.assertEqual(
            ('placement', 'has no endpoint in the catalog for region S, '
             'interface internal,public'),
            (failure.party, failure.observation))

    def assertStartsWith(self, text: str, start: str) -> None:
        self.assertEqual(start, text[:len(start)])
