# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror servers``, with a real nova-api."""

from nova import objects
import webob

from tests import documents
from tests.functional import test_openstack_client
from tests import placed
from tests.unit import servers

ZONES = '/os-availability-zone'


class TestServers(test_openstack_client.ClientTest):
    """A host in a zone, and a host without a zone in another cell."""

    def setUp(self):
        super().setUp()
        self.host('near')
        self.cloud.create_host('far', cell='cell2')
        self.tiny = placed.create_flavor()
        # Nova-api reads the security groups of a server from neutron.
        neutron = self.useFixture(servers.Cloud())
        neutron.answers['/v2.0/ports'] = (200, {'ports': []})
        self.cloud.nova.conf.config(endpoint_override=neutron.url,
                                    group='neutron')
        self.keystone = self.useFixture(servers.Cloud())
        self.keystone.answers['/v3/projects/' + placed.PROJECT] = (
            200, {'project': documents.project(placed.PROJECT)})
        self.keystone.answers['/v3/projects'] = (200, {'projects': [
            documents.project(placed.PROJECT)]})
        self.write_clouds(identity_endpoint_override=(
            self.keystone.url + '/v3'), **self.clouds)

    def create(self, host, *args, **options):
        return placed.create_server(
            self.cloud.nova, self.tiny, host, *args, **options)

    def servers(self, *argv, status=0):
        return self.mirror('servers', *argv, status=status)

    def test_wrong_zone(self):
        """Each server has the command that moves it."""
        self.create('near')
        moved = self.create('far', 'cell2', state='stopped')
        with self.cloud.nova.in_cell('cell2') as context:
            found = objects.Migration(
                context, instance_uuid=moved, source_compute='near',
                dest_compute='far', status='migrating',
                migration_type='migration')
            found.create()
            found.status = 'confirmed'
            found.save()
        [row], errors = self.servers(status=7)
        self.assertRegex(row['since'], r'20\d\d-\d\d-\d\dT')
        self.assertEqual(
            [moved, 'far', 'stopped', 'zone az1', 'no zone', 'moved',
             'openstack server migrate --wait %s && openstack server '
             'migration confirm %s' % (moved, moved)],
            [row[name] for name in ('server', 'host', 'state', 'requested',
                                    'actual', 'cause', 'step')])
        self.assertIn('1 of 2 servers are on a host', errors)

    def test_which_servers(self):
        """By host, by project, by zone of the request or of the host.

        Those of a cell that is down are not audited, which the status tells.
        """
        # Nova-api does not show whether nova-scheduler enforces this zone.
        self.create('near', zone='nova')
        self.create('far', 'cell2', zone='')
        self.create('far', 'cell2')
        for argv, count, misplaced in (
                (['--host', 'near', '--host', 'far'], 3, 1),
                (['--host', 'far', '--host', 'far'], 2, 1),
                (['--host', 'near'], 1, 0), (['--project', 'demo'], 3, 1),
                (['--zone', 'az1'], 2, 1), (['--zone', 'nova'], 3, 1)):
            rows, errors = self.servers(*argv, status=7 * misplaced)
            self.assertEqual(misplaced, len(rows), argv)
            self.assertIn('%d of %d server' % (misplaced, count), errors)
        self.cloud.nova.break_cell('cell2')
        rows, errors = self.servers(status=5)
        self.assertEqual([], rows)
        self.assertIn('nova-api reports status UNKNOWN for far; their servers '
                      'are not audited: see the log of nova-api', errors)

    def test_nova_that_does_not_show_zones(self):
        """None is left out, and a command that reads databases is named."""
        self.server.answers[ZONES] = webob.Response(
            json={'availabilityZoneInfo': [{'zoneName': None}]})
        self.assertIn('GET %s' % ZONES, self.servers(status=255)[1])
        del self.server.answers[ZONES]
        self.server.latest = '2.95'
        _rows, errors = self.servers(status=255)
        self.assertIn('nova 29.0 (Caracal)', errors)
        self.assertIn('placement audit_servers', errors)
