# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror``, for operators without database access."""

import json
import os
import pathlib

import fixtures as base_fixtures
from oslo_utils import uuidutils
import testtools
import webob
import yaml

from tests import commands
from tests import documents
from tests import fixtures
from tests import nova_server
from tests import patience
from tests import placement_service
from tests.unit import servers


class ClientTest(testtools.TestCase):
    """Two items per page, and a user with a token and two endpoints."""

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.cloud.nova.conf.config(max_limit=2, group='api')
        self.placement = self.cloud.placement
        self.server = self.useFixture(nova_server.NovaServer(self.cloud.nova))
        self.home = pathlib.Path(self.useFixture(base_fixtures.TempDir()).path)
        self.clouds = {
            'auth_type': 'admin_token',
            'auth': {'endpoint': self.placement.url,
                     'token': placement_service.TOKEN},
            'compute_endpoint_override': self.server.url,
            'placement_endpoint_override': self.placement.url}
        self.write_clouds(**self.clouds)
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.rack = self.cloud.create_aggregate('rack')

    def write_clouds(self, **cloud):
        (self.home / 'clouds.yaml').write_text(
            yaml.safe_dump({'clouds': {'test': cloud}}))

    def host(self, name, **kwargs):
        """Add a member of the zone without associations in placement."""
        host = self.cloud.create_host(name, **kwargs)
        self.cloud.nova.add_member(self.zone.uuid, name)
        return host

    def openstack(self, *argv, status=0):
        """Run a command; return standard output and standard error."""
        # Without the environment of the user who runs the tests.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('OS_')}
        done = commands.run(
            commands.OPENSTACK, ['--os-cloud', 'test', *argv], {
                **environment, 'HOME': str(self.home), 'COLUMNS': '250',
                # The SDK looks for it where it was imported.
                'OS_CLIENT_CONFIG_FILE': str(self.home / 'clouds.yaml'),
                'no_proxy': '127.0.0.1'}, self.home)
        said, errors = done.stdout, done.stderr
        if status is not None:
            self.assertEqual(status, done.returncode, said + errors)
        self.assertNotIn('Traceback', said + errors)
        self.assertNotIn('X-Auth-Token', said + errors)
        return said, errors

    def mirror(self, *argv, status=0):
        """Run a command; return its rows and its standard error."""
        said, errors = self.openstack(
            'aggregate', 'mirror', *argv, '-f', 'json', status=status)
        return json.loads(said or '[]'), errors

    def left(self, host):
        return self.placement.aggregates(host.nodes[0])


class TestComparison(ClientTest):

    def test_list_and_show(self):
        """Both sides are counted, and each provider has its state."""
        good, bad = self.host('good'), self.host('bad', nodes=2)
        self.placement.set_aggregates(good.nodes[0], [self.zone.uuid])
        rows, errors = self.mirror('list')
        self.assertEqual([
            {'Name': 'rack', 'UUID': self.rack.uuid, 'Hosts': 0, 'In Nova': 0,
             'In Placement': 0, 'State': 'in_sync'},
            {'Name': 'zone', 'UUID': self.zone.uuid, 'Hosts': 2, 'In Nova': 3,
             'In Placement': 1, 'State': 'missing'}], rows)
        self.assertEqual('', errors)
        storage = uuidutils.generate_uuid()
        self.placement.create_provider(storage, 'shared')
        self.placement.set_aggregates(storage, [self.zone.uuid])
        stale = self.cloud.create_host('stale')
        self.placement.set_aggregates(stale.nodes[0], [self.zone.uuid])
        waiting = self.host('waiting', providers=False)
        expected = [
            ('', storage, 'foreign_provider'),
            *(('bad', node, 'missing') for node in bad.nodes),
            ('good', good.nodes[0], 'in_sync'),
            ('stale', stale.nodes[0], 'stale'),
            ('waiting', waiting.nodes[0], 'pending')]
        for name in 'zone', str(self.zone.id):
            rows, _errors = self.mirror('show', name)
            self.assertEqual(
                sorted(expected), [tuple(row.values()) for row in rows])

    def test_names(self):
        """An unknown name, an ambiguous one and that of an empty aggregate."""
        self.cloud.create_aggregate(str(self.zone.id))
        for name, status, text in (
                ('nothing', 255, 'no aggregate nothing'),
                (str(self.zone.id), 255,
                 'nova has 2 aggregates with the name'),
                ('rack', 0, 'Aggregate rack has no host in nova, and no '
                 'provider in placement\n')):
            rows, errors = self.mirror('show', name, status=status)
            self.assertEqual([], rows)
            self.assertIn(text, errors)

    def test_diff_and_sync(self):
        """Sync repairs what diff lists, and removes only with --prune."""
        host, stale = self.host('h1', nodes=2), self.cloud.create_host('stale')
        foreign = uuidutils.generate_uuid()
        self.placement.set_aggregates(
            stale.nodes[0], [self.rack.uuid, foreign])
        missing = [('missing', 'h1', node, 'zone', self.zone.uuid)
                   for node in sorted(host.nodes)]
        gone = ('stale', 'stale', stale.nodes[0], 'rack', self.rack.uuid)
        rows, errors = self.mirror('diff', status=7)
        self.assertIn('run "openstack aggregate mirror sync --prune"', errors)
        self.assertEqual([*missing, gone], [tuple(row.values())
                                            for row in rows])
        for scope, expected in ((('--host', 'stale'), [gone]),
                                (('--aggregate', 'zone'), missing)):
            rows, _errors = self.mirror('diff', *scope, status=7)
            self.assertEqual(expected, [tuple(row.values()) for row in rows])
        document, _errors = self.mirror(
            'sync', '--dry-run', '--aggregate', 'zone', status=7)
        self.assertEqual(
            [2, [], True, 7],
            [len(document['missing']), document['stale'],
             document['dry_run'], document['exit_status']])
        self.assertEqual(set(), self.left(host))
        _document, errors = self.mirror('sync')
        self.assertIn('--prune removes stale associations', errors)
        self.assertEqual([gone], [
            tuple(row.values()) for row in self.mirror('diff', status=7)[0]])
        _document, errors = self.mirror('sync', '--prune')
        self.assertIn('1 association removed.', errors)
        self.assertEqual(
            ([], 'Placement matches nova: 2 aggregates, 3 compute nodes\n'),
            self.mirror('diff'))
        self.assertEqual([], self.cloud.drift())
        self.assertEqual({foreign}, self.left(stale))

    def test_foreign(self):
        """Listed on request, with how to remove one that is on hosts alone."""
        host, foreign = self.host('h1'), uuidutils.generate_uuid()
        self.placement.set_aggregates(
            host.nodes[0], [self.zone.uuid, foreign])
        self.assertNotIn(foreign, str(self.mirror('list')))
        rows, errors = self.mirror('list', '--foreign')
        self.assertIn(
            'Aggregate %s of h1: nova does not have it' % foreign, errors)
        self.assertIn('provider aggregate set', errors)
        self.assertNotIn('journal', errors)
        self.assertEqual(('', foreign, 0, 0, 1, 'foreign_aggregate'),
                         tuple(rows[0].values()))
        document, _errors = self.mirror('sync', '--dry-run', '--foreign')
        self.assertEqual([foreign], [
            entry['aggregate_uuid']
            for entry in document['foreign_aggregates']])


class TestWait(ClientTest):

    def setUp(self):
        super().setUp()
        # No nova-compute hears that its service is enabled.
        self.cloud.nova.conf.config(long_rpc_timeout=1)

    def wait(self, *hosts, status=0):
        """Run the command; return standard output and standard error."""
        # It expires if not all is there. An attempt may take as long.
        seconds = patience.seconds(5 if status else 120)
        return self.openstack('aggregate', 'mirror', 'wait', *hosts,
                              '--timeout', str(seconds), status=status)

    def disabled(self, name, reason='new', missing=False):
        """Create a host whose compute service is disabled."""
        host = self.host(name)
        if not missing:
            self.placement.set_aggregates(host.nodes[0], [self.zone.uuid])
        self.cloud.nova.request(
            'PUT', '/os-services/' + host.service,
            {'status': 'disabled', 'disabled_reason': reason})
        return host

    def states(self):
        """Return the status of each compute service."""
        services = self.cloud.nova.request('GET', '/os-services').json
        return {service['host']: service['status']
                for service in services['services']}

    def test_enable(self):
        """What nova-compute has disabled itself is named and stays so."""
        self.disabled('h1')
        self.disabled('h2', 'AUTO: Connection to libvirt lost')
        self.disabled('h3')
        self.wait('h1', 'h2')
        self.assertEqual({'disabled'}, {*self.states().values()})
        output, errors = self.wait('h2', 'h1', 'h1', '--enable', status=8)
        self.assertEqual(1, output.count('Host h1: nova-compute is enabled\n'))
        self.assertEqual(
            'Host h2: not enabled; nova-compute disabled it, and enables it '
            'itself: AUTO: Connection to libvirt lost\n', errors)
        self.assertEqual({'h1': 'enabled', 'h2': 'disabled', 'h3': 'disabled'},
                         self.states())
        # A host that is enabled already is not written.
        del self.server.requests[:]
        self.assertIn('Host h1: nova-compute is enabled\n',
                      self.wait('h1', '--enable')[0])
        self.assertNotIn('/os-services/', ' '.join(self.server.requests))

    def test_host_that_cannot_be_enabled(self):
        """The others are, but none before placement has all of them."""
        first = self.disabled('h1')
        second = self.disabled('h2', missing=True)
        output, errors = self.wait('h1', 'h2', '--enable', status=7)
        self.assertEqual('', output)
        self.assertIn(
            'Missing: host h2 (provider %s): aggregate zone (%s): run '
            '"openstack aggregate mirror sync --host h2"' % (
                second.nodes[0], self.zone.uuid), errors)
        self.assertEqual({'disabled'}, {*self.states().values()})
        self.openstack('aggregate', 'mirror', 'sync')
        # As nova-api shows it if its cell goes down.
        self.server.edits['/os-services'] = lambda body: body['services'][
            0].pop('id')
        self.wait('h1', 'h2', '--enable', status=5)
        self.assertEqual({'h1': 'disabled', 'h2': 'enabled'}, self.states())
        path = '/os-services/' + first.service
        del self.server.edits['/os-services']
        self.server.answers[path] = webob.Response(status=503)
        _output, errors = self.wait('h2', 'h1', '--enable', status=255)
        self.assertIn('Host h1: not enabled: nova-api at http:', errors)
        # It was deleted meanwhile: no address is wrong.
        self.server.answers[path] = webob.Response(
            status=404, json={'itemNotFound': {'message': 'Gone.'}})
        _output, errors = self.wait('h1', '--enable', status=255)
        self.assertIn('answered 404: Gone (', errors)
        self.assertIn(': run this again', errors)


class TestCatalog(ClientTest):
    """A user with a password finds both services in the catalog."""

    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(servers.Cloud())
        self.keystone.token_id = placement_service.TOKEN
        self.host('h1')
        self.write_clouds(auth={
            'auth_url': self.keystone.url + '/v3', 'username': 'nova',
            'password': 'the-password', 'project_name': 'service',
            'user_domain_id': 'default', 'project_domain_id': 'default'})
        self.keystone.grant(self.placement.url, others=[
            documents.service('compute', self.server.url)])

    def test_region_and_interface(self):
        """The options apply to both services."""
        where = ('--os-region-name', 'R', '--os-interface', 'internal')
        self.openstack(*where, 'aggregate', 'mirror', 'sync')
        self.assertEqual([], self.cloud.drift())
        for wrong in ({1: 'elsewhere'}, {3: 'public'}):
            argv = [wrong.get(number, one) for number, one in enumerate(where)]
            _said, errors = self.openstack(
                *argv, 'aggregate', 'mirror', 'list', status=255)
            self.assertIn(*wrong.values(), errors)
            self.assertIn('nova-api has no endpoint', errors)
