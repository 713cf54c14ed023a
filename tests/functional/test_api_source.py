# SPDX-License-Identifier: Apache-2.0
"""Reads from a real nova-api, with two cells and two items per page."""

from oslo_utils import uuidutils
import webob

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler
from tests import fixtures
from tests.functional import test_source
from tests import nova_server

NODES = '/os-hypervisors/detail'
SERVICES = '/os-services'


class ApiSourceTest(test_source.SourceTest):

    def setUp(self):
        super().setUp()
        self.cloud.nova.conf.config(max_limit=2, group='api')
        self.server = self.useFixture(nova_server.NovaServer(self.cloud.nova))
        self.api = nova_server.source(self.server.url)

    def hide(self, *names):
        """Make nova-api omit the compute nodes of these hosts."""
        def edit(body):
            body['hypervisors'] = [
                one for one in body['hypervisors']
                if one['service']['host'] not in names]

        self.server.edits[NODES] = edit

    def silence(self, *names):
        """Make nova-api get no response from the cell of these hosts."""
        self.hide(*names)

        def edit(body):
            body['services'] = [
                {'binary': 'nova-compute', 'host': one['host'],
                 'status': 'UNKNOWN'} if one['host'] in names else one
                for one in body['services']]

        self.server.edits[SERVICES] = edit


class TestEquality(ApiSourceTest):
    """With all hosts mapped and cells up, it equals the database source."""

    def setUp(self):
        super().setUp()
        self.hosts = [
            self.host('h1', self.zone, self.other),
            self.host('h2', self.zone, cell='cell2'),
            self.host('h3'),
            self.host('ironic', self.other, nodes=5),
            self.host('h4', self.other, cell='cell2', nodes=2),
            self.host('nodeless', self.zone, nodes=0)]

    def test_read_all(self):
        """A full read follows all pages and equals the database source."""
        self.assertEqual(self.source.read_all(), self.api.read_all())
        self.assertEqual(self.source.aggregates(), self.api.aggregates())
        pages = [path for path in self.server.requests if NODES in path]
        self.assertEqual(10 / 2 + 1, len(pages))

    def test_read(self):
        """A read of some hosts and nodes equals the database source."""
        ironic = self.hosts[3].nodes
        for asked in (
                (['h1', 'nodeless', 'unknown'],), ([], ironic[:1]),
                (['h4'], [], [self.zone.uuid, uuidutils.generate_uuid()]),
                (['h3'], self.hosts[1].nodes, [self.other.uuid])):
            self.assertEqual(self.source.read(*asked), self.api.read(*asked))


class TestUnseen(ApiSourceTest):

    def test_member_that_is_not_shown(self):
        """Nova-api does not show whether a host is unmapped or has no node."""
        self.host('unmapped', self.zone, mapped=False)
        self.host('nodeless', self.zone, nodes=0)
        nova = self.api.read_all()
        self.assertEqual({'unmapped', 'nodeless'}, nova.nodeless())
        self.assertEqual(frozenset(), nova.unmapped)

    def test_node_that_is_left_out_does_not_end_a_page(self):
        """A page that is short by a hidden node is not the last page."""
        self.host('unmapped', mapped=False)
        hosts = [self.host('h%d' % number) for number in range(4)]
        self.assertEqual({host.nodes[0] for host in hosts},
                         set(self.api.read_all().nodes))

    def test_node_that_is_not_shown_any_more(self):
        """A node that is no longer shown may exist: it is not written."""
        host = self.host('h1', self.zone)
        self.hide('h1')
        nova = self.api.read(['h1'], host.nodes)
        failure, = nova.cells_down.values()
        self.assertIn(host.nodes[0], failure.observation)
        self.assertEqual({}, nova.nodes)

    def test_cell_whose_hosts_are_unknown(self):
        """They are named, and not counted as hosts without compute nodes."""
        near = self.host('near', self.zone)
        self.host('far', self.zone, cell='cell2')
        self.host('lonely', cell='cell2')
        self.host('nodeless', nodes=0)
        self.silence('far', 'lonely')
        for nova in (self.api.read_all(), self.api.read(['near', 'far'])):
            self.assertEqual({'far'}, set(nova.hosts_down))
            self.assertIn('far', *nova.cells_down)
            self.assertEqual(frozenset(), nova.nodeless())
            self.assertEqual(set(near.nodes), set(nova.nodes))
        # A cell without any of the requested hosts does not matter.
        for asked in (['near'], near.nodes), (['nodeless'],):
            self.assertEqual({}, self.api.read(*asked).cells_down)

    def test_cell_that_goes_down_meanwhile(self):
        """The status is requested last, so the outage is noticed."""
        self.host('far', self.zone, cell='cell2')

        def edit(body):
            self.silence('far')
            self.server.edits[NODES](body)

        self.server.edits[NODES] = edit
        self.assertEqual({'far'}, set(self.api.read_all().hosts_down))

    def test_cell_that_is_down(self):
        """Nova-api then lists no compute nodes; the error names the hosts."""
        self.host('near', self.zone)
        self.host('far', self.zone, cell='cell2')
        self.cloud.nova.break_cell('cell2')
        error = self.assertRaises(
            exceptions.NovaUnavailable, self.api.read_all)
        self.assertEqual(
            ('answered', 'see the log of nova-api'),
            (error.failure.kind, error.failure.step))
        self.assertIn('500', str(error))
        self.assertIn('UNKNOWN for far', str(error))


class TestPruning(ApiSourceTest):
    """Nothing is written for what nova-api does not show."""

    def setUp(self):
        super().setUp()
        self.near = self.host('near', self.zone)
        self.far = self.host('far', cell='cell2')
        for host in self.near, self.far:
            self.cloud.create_providers(host)
            self.cloud.placement.set_aggregates(
                host.nodes[0], [self.zone.uuid, self.other.uuid])

    def prune(self):
        mirror = reconciler.Reconciler(
            journal.Ledger(), self.api, client.Client(fixtures.CONF))
        return full_sync.run(
            mirror, request=full_sync.Request(full_sync.UNLIMITED))

    def left(self, host):
        return self.cloud.placement.aggregates(host.nodes[0])

    def test_cell_that_does_not_answer(self):
        """Its hosts keep their associations; the others are pruned."""
        self.silence('far')
        self.assertIn('far', *self.prune().nova.cells_down)
        self.assertEqual({self.zone.uuid}, self.left(self.near))
        self.assertEqual(2, len(self.left(self.far)))

    def test_cell_that_goes_down_between_comparing_and_writing(self):
        """A node missing from nova's second answer fails and is kept."""
        read, reads = self.api.read, []

        def read_later(*asked):
            reads.append(asked)
            self.hide('far')
            return read(*asked)

        self.api.read = read_later
        failed = self.prune().outcome.failed
        self.assertEqual(1, len(reads))
        self.assertIn(outcome.Subject(
            outcome.PROVIDER, self.far.nodes[0]), failed)
        self.assertEqual(2, len(self.left(self.far)))
        self.assertEqual({self.zone.uuid}, self.left(self.near))


class TestErrors(ApiSourceTest):

    def refused(self, *words, error=exceptions.NovaUnavailable):
        for call in (self.api.read_all, self.api.aggregates,
                     lambda: self.api.read(['h1'])):
            said = str(self.assertRaises(error, call))
            for word in words:
                self.assertIn(word, said)
            self.assertNotIn('placement', said)

    def test_user_who_may_not(self):
        """Nova's own policy is quoted, and the required role is named."""
        self.server.roles = 'member'
        self.refused('403', "Policy doesn't allow", 'admin role')

    def test_nova_that_is_too_old(self):
        """The version range that nova supports is quoted."""
        for path in ('/os-aggregates', NODES, SERVICES):
            self.server.answers[path] = webob.Response(status=406, json={
                'computeFault': {'code': 406, 'message': (
                    'Version 2.69 is not supported by the API. Minimum is 2.1 '
                    'and maximum is 2.60.')}})
        self.refused('maximum is 2.60', 'Stein',
                     error=exceptions.UnexpectedNova)

    def test_answers_that_are_not_novas(self):
        """An HTML page, truncated JSON and incomplete lists are errors."""
        for answer in (
                webob.Response('<html>', content_type='text/html'),
                webob.Response(b'{"aggregates": [', content_type='text/plain'),
                webob.Response(b'[' * 100000, content_type='text/plain'),
                webob.Response(json={}), webob.Response(json=[]),
                webob.Response(json={'aggregates': [None],
                                     'hypervisors': ['x']}),
                webob.Response(json={
                    'aggregates': [{'id': 1, 'name': 'a', 'hosts': []}],
                    'hypervisors': [{'id': 7, 'service': {'host': 'h'}}]}),
                webob.Response(json={
                    'aggregates': [{
                        'id': 1, 'name': 'a', 'hosts': [None],
                        'uuid': uuidutils.generate_uuid()}],
                    'hypervisors': [{'id': uuidutils.generate_uuid(),
                                     'service': {'host': None}}]}),
                webob.Response(json={'aggregates': [{
                    'id': 1, 'name': 'a', 'hosts': [],
                    'uuid': uuidutils.generate_uuid(),
                    'availability_zone': ['az1']}]})):
            for path in ('/os-aggregates', NODES):
                self.server.answers[path] = answer
            self.refused('GET /os-', 'nova-api ')

    def test_wrong_endpoint(self):
        """The endpoint is closed, or it is not a nova-api."""
        for url, word in (
                ('http://127.0.0.1:1/v2.1', 'refused the connection'),
                (self.server.url + '/elsewhere', '404')):
            self.api = nova_server.source(url)
            self.refused(word)
