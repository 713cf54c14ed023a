# SPDX-License-Identifier: Apache-2.0
"""Flavors, services, metadata and zones as a real nova-api shows them."""

from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import context as nova_context
from nova import objects
from oslo_utils.fixture import uuidsentinel
import testtools
import webob

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import api_requests
from tests import fixtures
from tests import nova_server

FLAVORS, SERVICES = '/flavors/detail', '/os-services'
AGGREGATES, ZONES = '/os-aggregates', '/os-availability-zone'


class RequestsTest(testtools.TestCase):
    """Two items per page."""

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.cloud.nova.conf.config(max_limit=2, group='api')
        self.server = self.useFixture(nova_server.NovaServer(self.cloud.nova))
        self.requests = api_requests.Requests(api.connect(
            session=session.Session(auth=token_endpoint.Token(
                self.server.url, 'token'))), timeout=60)
        for number in range(5):
            objects.Flavor(
                nova_context.get_admin_context(), name='m%d' % number,
                flavorid='id%d' % number, vcpus=1, memory_mb=2, root_gb=3,
                ephemeral_gb=4, swap=5 * number, rxtx_factor=1.0,
                disabled=False, is_public=number % 2,
                extra_specs={'a': 'b'}).create()

    def test_flavor(self):
        """By ID or name, also on a later page and if it is not public."""
        expected = api_requests.Flavor(
            'm4', 1, 2, 3, 4, 20, {'a': 'b'}, 'id4')
        self.assertEqual(expected, self.requests.flavor('m4'))
        self.assertEqual(expected, self.requests.flavor('id4'))
        self.assertEqual(0, self.requests.flavor('m0').swap_mb)
        self.assertIn('openstack flavor list --all', str(self.assertRaises(
            exceptions.UnknownName, self.requests.flavor, 'm9')))

    def test_services(self):
        """Also those of a cell that is down, of which little is known."""
        self.cloud.create_host('h1')
        found = self.requests.services()['h1']
        self.assertEqual(
            api_requests.Service('h1', False, '', True, False), found)

        def edit(body):
            body['services'] = [{'binary': 'nova-compute', 'host': 'h1',
                                 'status': 'UNKNOWN'}]

        self.server.edits[SERVICES] = edit
        self.assertFalse(self.requests.services()['h1'].up)

    def test_metadata_and_zones(self):
        """A zone is metadata, too."""
        zone = self.cloud.create_aggregate('zone', 'az1')
        self.assertEqual({zone.uuid: {'availability_zone': 'az1'}},
                         self.requests.metadata())
        self.cloud.add_host(zone, self.cloud.create_host('h1'))
        self.assertEqual(frozenset({'az1'}), self.requests.zones())

    def test_server_that_does_not_exist(self):
        """The error differs from that for an endpoint that is not nova."""
        self.assertIn('openstack server list', str(self.assertRaises(
            exceptions.UnknownName, self.requests.server, uuidsentinel.x)))
        self.server.answers['/servers/' + uuidsentinel.x] = webob.Response(
            status=404, body=b'<html>')
        self.assertIn('Check region', str(self.assertRaises(
            exceptions.NovaUnavailable, self.requests.server,
            uuidsentinel.x)))

    def test_server_without_a_document(self):
        """What a proxy sends is not a server."""
        path = '/servers/' + uuidsentinel.x
        good = {'id': uuidsentinel.x, 'tenant_id': 'p', 'image': '',
                'flavor': {'original_name': 'm1', 'extra_specs': {}}}
        self.server.answers[path] = webob.Response(json={'server': good})
        self.assertFalse(self.requests.server(uuidsentinel.x).zone_visible)
        for body in (None, [], {'server': []}, {'server': {
                **good, 'flavor': 'm1'}}, {'server': {**good, 'image': {}}},
                {'server': {**good, 'id': 'x'}}, {'server': {
                    **good, 'pinned_availability_zone': 1}}):
            self.server.answers[path] = webob.Response(json=body)
            self.assertRaises(exceptions.NovaUnavailable,
                              self.requests.server, uuidsentinel.x)
        self.server.answers[path] = webob.Response(b'<html>', 200)
        self.assertRaises(exceptions.NovaUnavailable,
                          self.requests.server, uuidsentinel.x)

    def test_entries_that_are_malformed(self):
        """No entry is left out without an error."""
        self.cloud.create_host('h1')
        self.cloud.create_aggregate('zone', 'az1')
        for path, what, key, value, read in (
                (FLAVORS, 'flavors', 'vcpus', 'two', self.flavors),
                (FLAVORS, 'flavors', 'id', 7, self.flavors),
                (FLAVORS, 'flavors', 'extra_specs', {'a': 1}, self.flavors),
                (SERVICES, 'services', 'host', None, self.requests.services),
                (AGGREGATES, 'aggregates', 'metadata', [],
                 self.requests.metadata),
                (ZONES, 'availabilityZoneInfo', 'zoneName', '',
                 self.requests.zones)):
            def edit(body, what=what, key=key, value=value):
                body[what][0][key] = value

            self.server.edits[path] = edit
            error = self.assertRaises(exceptions.NovaUnavailable, read)
            self.assertIn('GET ' + path, str(error))

    def flavors(self):
        return self.requests.flavor('m1')
