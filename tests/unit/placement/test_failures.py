# SPDX-License-Identifier: Apache-2.0
"""Failures name the service that failed and what it did."""

from testtools import matchers

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from tests.unit import servers


class FailureTestCase(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())

    def failure(self, **placement: str) -> exceptions.Failure:
        error = self.assertRaises(
            exceptions.ServiceUnreachable, client.Client(
                servers.make_conf(**placement),
                request_timeout=servers.PATIENCE).providers)
        return error.failure

    def test_name_without_address(self) -> None:
        """Nothing else is named."""
        failure = self.failure(
            auth_type='none', endpoint_override='http://nowhere.invalid')
        self.assertEqual(
            ('placement at http://nowhere.invalid',
             'has a host name that does not resolve'),
            (failure.party, failure.observation))

    def test_port_without_tls(self) -> None:
        """OpenSSL's name of the reason is quoted."""
        url = self.cloud.url.replace('http', 'https')
        failure = self.failure(auth_type='none', endpoint_override=url)
        self.assertEqual('placement at ' + url, failure.party)
        self.assertThat(failure.observation,
                        matchers.StartsWith('failed the TLS handshake'))
