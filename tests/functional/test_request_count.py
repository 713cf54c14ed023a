# SPDX-License-Identifier: Apache-2.0
"""The placement requests of each operation, and samples of them on a page."""

import collections
import contextlib
import io
import json
import pathlib
import re

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import database
from tests import fixtures
from tests import nova_service
from tests import statements

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
            self.assertEqual({'GET': 2 * len(host.nodes)}, self._requests())

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

    def test_wait(self) -> None:
        """A GET for each compute node, and nothing of another cell."""
        host = self.hosts[1]
        self.cloud.create_host('other', cell='cell2')
        uuids = [uuidutils.generate_uuid() for _number in range(400)]
        for uuid in uuids:
            objects.Aggregate(
                nova_context.get_admin_context(), name=uuid, uuid=uuid
            ).create()
            self.cloud.nova.add_member(uuid, host.name)
        for node in host.nodes:
            self.cloud.placement.set_aggregates(node, uuids)
        placement = client.Client(nova_service.CONF)
        # This also reads the versions, once per process.
        self.assertEqual(host.nodes[0], placement.get(host.nodes[0]).uuid)
        self._requests()
        executed = self.useFixture(statements.Statements())
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(exit_status.OK, wait_run.run(
                database.DatabaseSource(engines.Limits(1)), placement,
                frozenset({host.name}), 0.0, ''))
        self.assertIn('placement has it in 400 aggregates', out.getvalue())
        self.assertEqual({'GET': len(host.nodes)}, self._requests())
        # Placement runs in this process, too; an older one has no file.
        self.assertEqual(
            {'api.sqlite', 'cell1.sqlite'},
            {pathlib.Path(name).name for name in executed.databases if name}
            - {'placement.sqlite'})


class TestMirroringPage(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        aggregate = self.cloud.create_aggregate('rack-7', 'east')
        gone = self.cloud.create_aggregate('gone', 'east')
        host = self.cloud.create_host('compute-12')
        # The first call of a process also reads the versions.
        self.cloud.add_host(aggregate, host)
        self.cloud.remove_host(aggregate, host)
        self.cloud.placement.requests.clear()
        self.cloud.add_host(aggregate, host)
        self.cloud.delete_aggregate(gone)
        self.sent = self.cloud.placement.requests

    def test_requests(self):
        """The same requests are sent, in this order."""
        self.assertEqual(
            [(sent.method, UUID.sub('UUID', sent.path)) for sent in self.sent],
            [(method, UUID.sub('UUID', path))
             for method, path, _headers, _body in samples()])

    def test_headers_and_bodies(self):
        """They have the headers and the body length of the sample."""
        for sent, sample in zip(self.sent, samples(), strict=True):
            received = {name.lower(): value
                        for name, value in sent.headers.items()}
            _method, _path, headers, body = sample
            for name, value in headers.items():
                if name != 'X-Openstack-Request-Id':
                    self.assertEqual(value, received[name.lower()])
            self.assertRegex(received['x-openstack-request-id'], '^req-')
            if body:
                self.assertEqual(len(json.dumps(body)),
                                 int(received['content-length']))
