# SPDX-License-Identifier: Apache-2.0
"""The placement requests of each operation, and samples of them on a page."""

import collections
import json
import pathlib
import re

import testtools

from tests import fixtures

PAGE = (pathlib.Path(__file__).parent.parent.parent / 'doc' / 'source'
        / 'user' / 'mirroring.rst')
UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
BLOCK = re.compile(r'\.\. code-block:: http\n\n((?:   .*\n|\n)+)')
OURS = 'OpenStack-API-Version'


def samples():
    """Yield method, path, headers and body of each of our samples."""
    for text in BLOCK.findall(PAGE.read_text()):
        stripped = '\n'.join(line.strip() for line in text.splitlines())
        head, _empty, body = stripped.strip().partition('\n\n')
        first, *lines = head.splitlines()
        headers = dict(line.split(': ', 1) for line in lines)
        if OURS in headers:
            method, path, _version = first.split()
            yield method, path, headers, body and json.loads(body)


class RequestCountTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')
        self.hosts = [self.cloud.create_host('host%d' % nodes, nodes)
                      for nodes in (1, 3)]
        self.useFixture(fixtures.MirroredNova())
        # The first call of a process also reads the versions.
        self.cloud.add_host(self.aggregate, self.hosts[0])
        self.cloud.remove_host(self.aggregate, self.hosts[0])
        self.cloud.placement.requests.clear()

    def _requests(self) -> dict[str, int]:
        """Return the requests since the last call, by method."""
        methods = [request.method for request in self.cloud.placement.requests]
        self.cloud.placement.requests.clear()
        return dict(collections.Counter(methods))

    def test_mirrored_add_and_remove_host(self) -> None:
        """A GET and a PUT per compute node.

        Two GETs, and no new generation, if nova refuses.
        """
        for host in self.hosts:
            count = len(host.nodes)
            for act, status, expected in (
                    (self.cloud.add_host, 200, {'GET': count, 'PUT': count}),
                    (self.cloud.add_host, 409, {'GET': 2 * count}),
                    (self.cloud.remove_host, 200,
                     {'GET': count, 'PUT': count})):
                self.assertEqual(status, act(self.aggregate, host).status)
                self.assertEqual(expected, self._requests())

    def test_mirrored_delete_of_an_aggregate_that_some_have(self) -> None:
        """A GET finds its providers; each of them takes two requests."""
        for node in self.hosts[1].nodes:
            self.cloud.placement.set_aggregates(node, [self.aggregate.uuid])
        self.cloud.delete_aggregate(self.aggregate)
        self.assertEqual({'GET': 1 + 3, 'PUT': 3}, self._requests())
        self.assertEqual([], self.cloud.drift())

    def test_mirrored_create_rename_and_metadata(self) -> None:
        """Operations that do not affect placement cost no request."""
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

    def test_samples_of_the_page(self) -> None:
        """These requests are sent, with these headers and body lengths."""
        gone = self.cloud.create_aggregate('gone', 'east')
        self.cloud.add_host(self.aggregate, self.hosts[0])
        self.cloud.delete_aggregate(gone)
        requests = self.cloud.placement.requests
        for sent, sample in zip(requests, samples(), strict=True):
            method, path, headers, body = sample
            self.assertEqual(
                (method, UUID.sub('UUID', path)),
                (sent.method, UUID.sub('UUID', sent.path)))
            received = {name.lower(): value
                        for name, value in sent.headers.items()}
            for name, value in headers.items():
                if name != 'X-Openstack-Request-Id':
                    self.assertEqual(value, received[name.lower()])
            self.assertRegex(received['x-openstack-request-id'], '^req-')
            if body:
                self.assertEqual(len(json.dumps(body)),
                                 int(received['content-length']))
