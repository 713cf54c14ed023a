# SPDX-License-Identifier: Apache-2.0
"""The connection of a placement client."""

import gc
import os
from unittest import mock

import fixtures
from keystoneauth1 import session

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import connection
from tests.unit import servers


class TestConnection(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())

    def test_option_that_cannot_be_read(self) -> None:
        """The error names it; the endpoint is described nevertheless."""
        for name in 'region_name', 'valid_interfaces', 'endpoint_override':
            conf = servers.make_conf(**self.cloud.account())
            conf.clear_override(name, 'placement')
            conf(['--config-file', self.nova_conf(
                '[placement]', name + ' = http://$nope')])
            placement = client.Client(conf)
            error = self.assertRaises(
                exceptions.InvalidConfiguration, placement.providers)
            self.assertIn(name.replace('_', '-'), str(error).replace('_', '-'))
            self.assertIn('unknown', placement.endpoint())

    def test_options_are_read_for_the_first_failure_only(self) -> None:
        """Thousands of providers may fail in one sync."""
        access = connection.configured(
            servers.make_conf(**self.cloud.account()))
        self.assertIs(access.party(), access.party())

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

    def test_tls_settings_are_kept(self) -> None:
        """TLS settings of a session apply to its new adapters, too."""
        try:
            given = session.Session(tls_min_version='1.3')
        except TypeError:
            self.skipTest('keystoneauth has no such settings yet')
        transport.bound(given)
        self.assertEqual(
            {'1.3'}, {new.tls_min_version
                      for new in given.session.adapters.values()})
        self.assertIsInstance(given.session.get_adapter('https://host/'),
                              transport.Adapter)
