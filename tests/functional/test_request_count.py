# SPDX-License-Identifier: Apache-2.0
"""The number of placement requests per operation."""

import collections

import testtools

from tests import fixtures


class RequestCountTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')
        self.hosts = [self.cloud.create_host('host%d' % nodes, nodes)
                      for nodes in (1, 3)]

    def _mirrored(self) -> None:
        """Install the hooks, and do version discovery in advance."""
        self.useFixture(fixtures.MirroredNova())
        host = self.cloud.create_host('first')
        self.cloud.add_host(self.aggregate, host)
        self.cloud.remove_host(self.aggregate, host)
        self.cloud.placement.requests.clear()

    def _requests(self) -> dict[str, int]:
        """Return the requests since the last call, by method."""
        methods = [request.method for request in self.cloud.placement.requests]
        self.cloud.placement.requests.clear()
        return dict(collections.Counter(methods))

    def test_stock_add_and_remove_host(self) -> None:
        """Nova first looks up the provider by name."""
        self.useFixture(fixtures.StockNova())
        self.cloud.add_host(self.aggregate, self.hosts[0])
        # An additional GET for the versions, once per process.
        self.assertEqual({'GET': 3, 'PUT': 1}, self._requests())
        self.cloud.remove_host(self.aggregate, self.hosts[0])
        self.assertEqual({'GET': 2, 'PUT': 1}, self._requests())

    def test_mirrored_add_and_remove_host(self) -> None:
        """A GET and a PUT per compute node."""
        self._mirrored()
        for host in self.hosts:
            expected = {'GET': len(host.nodes), 'PUT': len(host.nodes)}
            self.cloud.add_host(self.aggregate, host)
            self.assertEqual(expected, self._requests())
            self.cloud.remove_host(self.aggregate, host)
            self.assertEqual(expected, self._requests())

    def test_mirrored_call_that_nova_refuses(self) -> None:
        """Two GETs per compute node; no generation changes."""
        self._mirrored()
        for host in self.hosts:
            self.cloud.add_host(self.aggregate, host)
            self._requests()
            self.assertEqual(
                409, self.cloud.add_host(self.aggregate, host).status)
            self.assertEqual({'GET': 2 * len(host.nodes)},
                             self._requests())
            self.cloud.remove_host(self.aggregate, host)
            self._requests()
            self.assertEqual(
                404, self.cloud.remove_host(self.aggregate, host).status)
            self.assertEqual({'GET': 2 * len(host.nodes)},
                             self._requests())
        self.assertEqual([], fixtures.Agent().journal.rows.all())

    def test_mirrored_first_call_of_a_process(self) -> None:
        """The first call also reads the versions."""
        self.useFixture(fixtures.MirroredNova())
        self.cloud.add_host(self.aggregate, self.hosts[0])
        self.assertEqual({'GET': 2, 'PUT': 1}, self._requests())

    def test_mirrored_delete_of_an_aggregate_that_nobody_has(self) -> None:
        """A GET finds its providers."""
        self._mirrored()
        self.cloud.delete_aggregate(self.aggregate)
        self.assertEqual({'GET': 1}, self._requests())

    def test_mirrored_delete_of_an_aggregate_that_some_have(self) -> None:
        """A GET finds its providers; each of them takes two requests."""
        self._mirrored()
        for node in self.hosts[1].nodes:
            self.cloud.placement.set_aggregates(node, [self.aggregate.uuid])
        self.cloud.delete_aggregate(self.aggregate)
        self.assertEqual({'GET': 1 + 3, 'PUT': 3}, self._requests())
        self.assertEqual([], self.cloud.drift())

    def test_mirrored_create_rename_and_metadata(self) -> None:
        """Operations that do not affect placement cost no request."""
        self._mirrored()
        path = '/os-aggregates/%d' % self.aggregate.id
        self.cloud.create_aggregate('another', 'west')
        for method, where, body in (
                ('PUT', path, {'aggregate': {'name': 'renamed'}}),
                ('PUT', path, {'aggregate': {'availability_zone': 'north'}}),
                ('POST', path + '/action',
                 {'set_metadata': {'metadata': {'ssd': 'true'}}})):
            response = self.cloud.nova.request(method, where, body)
            self.assertEqual(200, response.status_code)
        self.assertEqual({}, self._requests())

    def test_mirrored_request_id_goes_to_placement(self) -> None:
        """Each request has the request ID of nova or of the caller."""
        self._mirrored()
        self.cloud.add_host(self.aggregate, self.hosts[0])
        ids = {request.headers.get('X-Openstack-Request-Id')
               for request in self.cloud.placement.requests}
        self.assertEqual(1, len(ids))
        self.assertRegex(ids.pop() or '', '^req-')
