# SPDX-License-Identifier: Apache-2.0
"""Service discovery, step by step, with scripted responses."""

from typing import Any

from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror import exceptions
from tests.unit import servers


class TestDiscovery(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())

    def way(self, **placement: Any) -> discovery.Discovery:
        account = {} if 'token' in placement else self.cloud.account()
        conf = servers.make_conf(**{**account, **placement})
        return discovery.Discovery(conf, 'placement')

    def answer(self, path: str, status: int, body: Any) -> None:
        self.cloud.answers[path] = (status, body)

    def test_each_step_asks_no_more_than_it_needs(self) -> None:
        """A token, no request, and a single version document."""
        way = self.way()
        way.authenticate()
        self.assertEqual([('GET', '/v3'), ('POST', '/v3/auth/tokens')],
                         self.cloud.requests)
        self.cloud.requests.clear()
        self.assertEqual(self.cloud.url, way.endpoint())
        self.assertEqual([('R', 'internal')], way.offered())
        self.assertEqual([], self.cloud.requests)
        for one in (way, self.way()):
            self.assertEqual(('1.0', '1.39'),
                             one.microversions(self.cloud.url))
            self.assertEqual([('GET', '/')], self.cloud.requests)
            self.cloud.requests.clear()

    def test_endpoint_of_the_configuration(self) -> None:
        """endpoint_override is used unchanged."""
        way = self.way(endpoint_override='http://elsewhere')
        self.assertEqual('http://elsewhere', way.endpoint())

    def test_plugin_without_a_catalog(self) -> None:
        """A fixed token has a fixed endpoint."""
        way = self.way(auth_type='admin_token', endpoint=self.cloud.url,
                       token='t')
        way.authenticate()
        self.assertEqual((self.cloud.url, []), (way.endpoint(), way.offered()))

    def test_options_that_exclude_each_other(self) -> None:
        """It is reported as invalid configuration, with the option."""
        error = self.assertRaises(
            exceptions.InvalidConfiguration,
            self.way(valid_interfaces=['inside']).endpoint)
        self.assertIn('valid_interfaces', str(error))

    def test_what_is_no_version_document(self) -> None:
        """The endpoint is not placement."""
        url = self.cloud.url
        for body in ({}, {'versions': []}, {'versions': ['1.0']}, b'hello',
                     {'versions': [{'min_version': '1.0'}]},
                     {'versions': [{'min_version': '1.0',
                                    'max_version': 'one'}]}):
            self.answer('/', 200, body)
            self.assertRaises(exceptions.MalformedAnswer,
                              self.way().microversions, url)
        self.answer('/', 503, {})
        self.assertRaises(exceptions.ServiceFailed,
                          self.way().microversions, url)

    def test_secrets_are_not_told(self) -> None:
        """The user and password in a URL are masked."""
        error = self.assertRaises(
            exceptions.MirrorError, self.way().microversions,
            'http://user:geheim@127.0.0.1:1/')
        self.assertNotIn('geheim', str(error))
