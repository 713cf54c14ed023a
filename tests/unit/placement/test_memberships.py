# SPDX-License-Identifier: Apache-2.0
"""The aggregates of all providers when one of them cannot be read."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from tests.unit import doubles

AGGREGATES = ['a%d' % number for number in range(9)]


class TestMemberships(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.placement = doubles.Placement([])
        for node in ('n1', 'n2', 'n3', 'n4'):
            self.placement.create(node, 'a1')
        self.placement.create('n5')

    def read(self, count: int = 1) -> dict[str, set[str]]:
        return {provider: set(aggregates) for provider, aggregates
                in client.Client.memberships(
                    self.placement, AGGREGATES, ['rare'],
                    parallel.Workers(count).each, 2).items()}

    def test_provider_that_cannot_be_read(self) -> None:
        """The lists of members tell of all providers, also of this one."""
        whole = self.read()
        self.assertNotIn(('MEMBERS', 'a1'), self.placement.log)
        for error in (exceptions.ServiceFailed('500'),
                      exceptions.MalformedAnswer('HTML'),
                      exceptions.DeadlineExceeded('no answer')):
            self.placement.broken['GET', 'n3'] = error
            for count in (1, 3):
                self.assertEqual(whole, self.read(count))
        self.assertEqual({'n1', 'n2', 'n3', 'n4', 'n5'}, set(whole))

    def test_placement_that_fails(self) -> None:
        """The error of the lists is the answer."""
        error = exceptions.ServiceUnreachable('refused')
        for party in (('GET', 'n1'), ('MEMBERS', 'a0')):
            self.placement.broken[party] = error
        self.assertIs(error, self.assertRaises(
            exceptions.ServiceUnreachable, self.read))

    def test_first_request_without_a_token(self) -> None:
        """It is alone; all others would wait for the token that it gets."""
        for is_connected, first in (True, 'a0'), (False, 'a1'):
            self.placement.is_connected = is_connected
            parallel_queries: list[list[str]] = []

            def each(function, queries):
                parallel_queries.extend(queries)
                return [function(query) for query in queries]

            memberships = client.Client.memberships(
                self.placement, AGGREGATES, ['rare'], each)
            self.assertEqual([first], parallel_queries[0])
            self.assertEqual({'n1', 'n2', 'n3', 'n4'}, set(memberships))
