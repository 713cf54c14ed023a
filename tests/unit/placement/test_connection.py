# SPDX-License-Identifier: Apache-2.0
"""A placement client on an existing connection."""

import gc
import json
import os
import pathlib
from unittest import mock

import fixtures
from keystoneauth1 import session
import openstack
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import connected
from nova_aggregate_mirror.placement import connection
from tests import documents
from tests.unit import servers

PROVIDER = 'c2a1c1f4-62c5-4ac4-b1a5-5a5b6a0c1d11'
NOBODY = (200, {'resource_providers': []})


class TestConfigured(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())

    def test_option_that_cannot_be_read(self) -> None:
        """The error names it; the endpoint is described nevertheless."""
        for name in 'region_name', 'valid_interfaces', 'endpoint_override':
            conf = servers.make_conf(**self.cloud.account())
            conf.clear_override(name, 'placement')
            path = pathlib.Path(
                self.useFixture(fixtures.TempDir()).path, 'nova.conf')
            path.write_text('[placement]\n%s = http://$nope\n' % name)
            conf([], default_config_files=[str(path)])
            placement = client.Client(conf)
            error = self.assertRaises(
                exceptions.InvalidConfiguration, placement.providers)
            self.assertIn(name.replace('_', '-'),
                          str(error).replace('_', '-'))
            self.assertIn('unknown', placement.endpoint())

    def test_options_are_read_for_the_first_failure_only(self) -> None:
        """Thousands of providers may fail in one sync."""
        slot = connection.configured(
            servers.make_conf(**self.cloud.account()))()
        self.assertIs(slot.party(), slot.party())

    def test_looks_at_the_catalog(self) -> None:
        """One that finds the same address, or fails, leaves none open."""
        placement = client.Client(
            servers.make_conf(**self.cloud.account(region_name='R')))
        placement.providers()
        self.cloud.answers['/resource_providers'] = 503, b'no'
        # Otherwise the server closes each connection.
        self.useFixture(fixtures.MonkeyPatch(
            'http.server.BaseHTTPRequestHandler.protocol_version',
            'HTTP/1.1'))
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        counts = []
        for look in range(20):
            if look == 10:
                self.cloud.grant()
            with mock.patch.object(connection, 'REDISCOVERY', 0.0):
                self.assertRaises(
                    exceptions.ServiceFailed, placement.providers)
                counts.append(len(os.listdir('/proc/self/fd')))
        # The test's own server closes its ends a little later.
        self.assertLess(counts[-1] - counts[0], 5)


class ConnectedTest(servers.LoopbackTestCase):

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
        return client.Client(connected.access(self.sdk, timeout))

    def test_region_and_interface(self) -> None:
        """Region and interface are the connection's, and named in errors."""
        client = self.connect()
        self.assertEqual(frozenset(), client.providers())
        self.assertEqual(
            'region R, interface internal, endpoint %s' % self.cloud.url,
            client.endpoint().rstrip('/'))
        for options in {'region_name': 'S'}, {'interface': 'public'}:
            client = self.connect(**options)
            error = self.assertRaises(exceptions.ServiceUnreachable,
                                      client.providers)
            self.assertIn(*options.values(), str(error))

    def test_endpoint_of_the_service(self) -> None:
        """An endpoint override takes precedence over the catalog."""
        self.cloud.grant()
        client = self.connect(
            placement_endpoint_override=self.cloud.url + '/placement')
        client.providers()
        self.assertIn('/placement', client.endpoint())
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


class TestErrors(testtools.TestCase):

    def test_programming_error(self) -> None:
        """It is not reported as a malformed response."""
        for error in (TypeError(), AttributeError(), KeyError(),
                      AssertionError()):
            slot = connection.Slot(
                mock.Mock(side_effect=error), mock.Mock(),
                lambda: servers.PATIENCE)
            placement = client.Client(lambda: slot)
            self.assertIs(error, self.assertRaises(
                type(error), placement.providers))


class TestBound(testtools.TestCase):

    def test_tls_settings_are_kept(self) -> None:
        """TLS settings of a session apply to its new adapters, too."""
        try:
            given = session.Session(tls_min_version='1.3')
        except TypeError:
            self.skipTest('keystoneauth has no such settings yet')
        adapter.bound(given)
        self.assertEqual(
            {'1.3'}, {new.tls_min_version
                      for new in given.session.adapters.values()})
        self.assertIsInstance(given.session.get_adapter('https://host/'),
                              adapter.Adapter)
