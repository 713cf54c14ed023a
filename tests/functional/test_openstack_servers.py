# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror servers``, with a real nova-api."""

import datetime
import pathlib

from nova import objects
from oslo_utils.fixture import uuidsentinel

from tests import fixtures
from tests.functional import test_openstack_explain
from tests.unit import servers

JANUARY = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class TestServers(test_openstack_explain.ExplainTest):
    """Two hosts in a zone, one of them only in placement, in two cells."""

    def setUp(self):
        super().setUp()
        self.ready('near', self.zone)
        self.cloud.create_host('far', cell='cell2')
        self.small = self.flavor('m1.tiny', ssd='true')

    def create(self, host, cell='cell1', zone='az1', image='', **fields):
        return self.create_server(
            self.small, zone, image, cell=cell, host=host,
            launched_at=JANUARY, **{'vm_state': 'active', **fields})

    def servers(self, *argv, status=0):
        return self.mirror('servers', *argv, status=status)

    def test_nothing_is_misplaced(self):
        """One line, and the exit status 0."""
        for _server in range(3):
            self.create('near')
        self.create(None, 'cell0', vm_state='error')
        self.assertEqual(([], (
            '0 of 3 servers are on a host that contradicts the request\n')),
            self.servers())

    def test_wrong_zone(self):
        """Each server has the command that moves it."""
        self.create('near')
        moved = self.create('far', 'cell2', vm_state='stopped')
        with self.cloud.nova.in_cell('cell2') as context:
            found = objects.Migration(
                context, instance_uuid=moved, source_compute='near',
                dest_compute='far', status='migrating',
                migration_type='migration')
            found.create()
            found.status = 'confirmed'
            found.save()
        [row], errors = self.servers(status=7)
        since = row.pop('Since')
        self.assertRegex(since, r'20\d\d-\d\d-\d\dT')
        self.assertEqual({
            'Server': moved, 'Name': 'web', 'Host': 'far',
            'Project': 'tenant-a', 'Asked for': 'zone az1',
            'Found': 'no zone', 'Why': 'moved to the host by a cold migration',
            'To move it': 'openstack server migrate --wait %s && openstack '
            'server migration confirm %s' % (moved, moved)}, row)
        self.assertIn('1 of 2 servers are on a host', errors)

    def test_which_servers(self):
        """By host, by project, by zone of the request or of the host."""
        self.create('near')
        self.create('far', 'cell2', zone='')
        self.create('far', 'cell2')
        for argv, count, misplaced in (
                (['--host', 'near', '--host', 'far'], 3, 1),
                (['--host', 'near'], 1, 0), (['--project', 'other'], 0, 0),
                (['--project', 'tenant-a'], 3, 1), (['--zone', 'az1'], 2, 1)):
            rows, errors = self.servers(*argv, status=7 * misplaced)
            self.assertEqual(misplaced, len(rows), argv)
            self.assertIn('%d of %d server' % (misplaced, count), errors)

    def test_rules(self):
        """Those that nova-api does not show are checked if selected."""
        server = self.create('near')
        self.metadata(self.rack, ssd='true')
        self.metadata(self.zone, filter_tenant_id='another')
        self.assertEqual([], self.servers()[0])
        rows, _errors = self.servers(
            '--rule', 'tenant_isolation', '--rule', 'flavor_extra_specs',
            '--rule', 'type_affinity', '--rule', 'image_properties', status=7)
        self.assertEqual(
            [(server, 'tenant tenant-a', 'in zone (%s), which is for others'
              % self.zone.uuid),
             (server, 'the flavor\'s extra spec ssd', 'not in rack (%s)'
              % self.rack.uuid)],
            [(row['Server'], row['Asked for'], row['Found']) for row in rows])

    def test_default_zone(self):
        """Servers that ask for it belong on hosts without a zone."""
        self.create('far', 'cell2', zone='nova')
        wrong = self.create('near', zone='nova')
        self.assertEqual([], self.servers()[0])
        [row], _errors = self.servers('--rule', 'zone', status=7)
        self.assertEqual((wrong, 'zone az1'), (row['Server'], row['Found']))

    def test_cell_that_is_down(self):
        """Its servers are not audited, which the status tells."""
        self.create('near')
        self.create('far', 'cell2')
        pathlib.Path(fixtures.CONF.state_path, 'cell2.sqlite').write_bytes(
            b'no database any more' * 999)
        rows, errors = self.servers(status=5)
        self.assertEqual([], rows)
        self.assertIn('Servers on 1 host are not audited: nova-api cannot '
                      'read the cell of far', errors)

    def test_image_that_was_deleted(self):
        """Its servers are not audited by properties of the image."""
        glance = self.useFixture(servers.Cloud())
        self.write_clouds(**self.clouds, image_endpoint_override=glance.url)
        self.create('near', image=uuidsentinel.deleted)
        self.create('near')
        rows, errors = self.servers('--rule', 'image_properties')
        self.assertEqual([], rows)
        self.assertIn('1 server is not audited: glance does not have', errors)
        self.assertIn('0 of 1 server', errors)
