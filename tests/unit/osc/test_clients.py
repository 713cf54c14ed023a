# SPDX-License-Identifier: Apache-2.0
"""A placement client on an existing connection."""

import json

import fixtures
import openstack

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.placement import client
from tests import documents
from tests.unit import servers

PROVIDER = 'c2a1c1f4-62c5-4ac4-b1a5-5a5b6a0c1d11'
NOBODY = (200, {'resource_providers': []})


class TestPlacementAccess(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.cloud.answers['/placement/resource_providers'] = NOBODY
        self.cloud.answers['/placement/'] = (200, servers.VERSIONS)
        self.cloud.answers['/placement'] = (200, servers.VERSIONS)

    def connect(self, timeout: float = servers.PATIENCE, **options: str
                ) -> client.Client:
        self.sdk = openstack.connection.Connection(**{
            'auth': {'auth_url': self.cloud.url + '/v3', 'username': 'nova',
                     'password': 'the-password', 'user_domain_id': 'default'},
            'region_name': 'R', 'interface': 'internal', **options})
        return client.Client(command.placement_access(self.sdk, timeout))

    def test_endpoint_of_the_service(self) -> None:
        """An endpoint override takes precedence over the catalog."""
        self.cloud.grant()
        client = self.connect(
            placement_endpoint_override=self.cloud.url + '/placement')
        client.providers()
        self.assertEqual(
            'region R, interface internal, endpoint %s/placement'
            % self.cloud.url, client.endpoint().rstrip('/'))
        self.assertEqual(1, self.cloud.count('/placement/resource_providers'))

    def test_placement_that_moved(self) -> None:
        """The connection stays; its next token has another catalog."""
        client = self.connect()
        client.providers()
        moved = self.useFixture(servers.Cloud())
        self.cloud.grant(moved.url)
        self.cloud.answers['/resource_providers'] = 503, b''
        self.assertRaises(exceptions.ServiceFailed, client.providers)
        self.assertEqual(frozenset(), client.providers())
        self.assertEqual(1, moved.count('/resource_providers'))

    def test_cache_of_the_cloud(self) -> None:
        """A cache in clouds.yaml is not used for these requests."""
        path = self.useFixture(fixtures.TempDir()).join('clouds.yaml')
        with open(path, 'w') as stream:
            json.dump({'clouds': {'cached': {}}, 'cache': {
                'class': 'dogpile.cache.memory', 'expiration_time': 3600,
                'expiration': {'placement.resource_providers': 3600}}}, stream)
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', path))
        client = self.connect(cloud='cached')
        self.assertEqual(frozenset(), client.providers())
        self.cloud.answers['/resource_providers'] = (
            200, {'resource_providers': [documents.provider(PROVIDER)]})
        self.assertEqual({PROVIDER}, client.providers())

    def test_answer_that_never_comes(self) -> None:
        """The session has no timeout, so the client adds its own."""
        client = self.connect(timeout=0.5)
        self.cloud.hanging.add('/resource_providers')
        self.assertRaises(exceptions.DeadlineExceeded, client.providers)

    def test_token_that_was_revoked(self) -> None:
        """A new token is fetched, although the session is the same."""
        client = self.connect()
        client.providers()
        fetched = self.cloud.count('/v3/auth/tokens')
        self.cloud.answers['/resource_providers'] = (401, {})
        self.assertRaises(exceptions.NotAuthorized, client.providers)
        self.cloud.answers['/resource_providers'] = NOBODY
        client.providers()
        self.assertLess(fetched, self.cloud.count('/v3/auth/tokens'))
