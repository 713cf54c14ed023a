# SPDX-License-Identifier: Apache-2.0
"""The rules of availability zones, on mirrored aggregates.

The agents are stopped: they would repair what a call missed.
"""

import contextlib
import uuid

from keystoneauth1 import exceptions

from tests.cloud.integration import base

# A key of nova's servers.
ZONE = 'OS-EXT-AZ:availability_zone'
OTHER = {'compute-1': 'compute-2', 'compute-2': 'compute-1'}


class TestZones(base.TestCase):

    without_agents = True

    def setUp(self):
        super().setUp()
        unique = uuid.uuid4().hex[:8]
        self.first, self.second = 'zone-%s-1' % unique, 'zone-%s-2' % unique

    def tearDown(self):
        super().tearDown()
        # While the aggregates exist: moving servers changes no association.
        self.assert_equal()

    def zone(self, name, *hosts):
        """Create an aggregate that is a zone with hosts; return its name."""
        aggregate = self.aggregate(name)
        for host in hosts:
            self.action(aggregate, 'add_host', host=host)
        return aggregate

    def action(self, aggregate, name, **values):
        """Run an action of an aggregate directly by REST."""
        nova = self.cloud.nova()
        number, = (each['id'] for each in nova.get(
            '/os-aggregates').json()['aggregates']
            if each['name'] == aggregate)
        nova.post('/os-aggregates/%s/action' % number, json={name: values})
        self.assert_equal()

    def refused(self, error, *arguments, **values):
        """Check that nova refuses an action and that nothing changes."""
        self.assertRaises(error, self.action, *arguments, **values)
        self.assert_equal()

    def stays(self, server, zone, host, status='ACTIVE'):
        """Wait until a server is on a host, and check its zone."""
        self.assertEqual(zone, self.wait_for(server, status, host)[ZONE])

    def shelve(self, server):
        """Shelve a server; nova offloads it at once by default."""
        self.run_client('openstack', 'server', 'shelve', server['id'])
        self.wait_for(server, 'SHELVED_OFFLOADED', None)

    def flavor(self):
        """Create a larger flavor for this test alone; return its ID."""
        made = self.cloud.nova().post('/flavors', json={'flavor': {
            'name': 'larger-%s' % self.first, 'vcpus': 1, 'ram': 96,
            'disk': 1}}).json()['flavor']['id']
        self.addCleanup(self.cloud.nova().delete, '/flavors/%s' % made)
        return made

    def test_a_host_has_one_zone(self):
        """A host may be in several aggregates, but in only one zone."""
        self.zone(self.first, 'compute-1')
        other = self.zone(self.second)
        self.refused(exceptions.Conflict, other, 'add_host', host='compute-1')
        status, _out, err = self.cloud.run(
            'openstack', 'aggregate', 'add', 'host', other, 'compute-1')
        self.assertEqual(1, status)
        self.assertIn('409', err)
        self.assertEqual(set(), self.placement_has(other))
        plain = self.aggregate()
        self.action(plain, 'add_host', host='compute-1')
        self.assertEqual({'compute-1'}, self.placement_has(plain))
        self.refused(exceptions.BadRequest, plain, 'set_metadata',
                     metadata={'availability_zone': self.second})

    def test_a_renamed_zone_takes_servers(self):
        """A renamed zone takes servers; its old name no longer exists."""
        aggregate = self.zone(self.first, 'compute-3')
        self.action(aggregate, 'set_metadata',
                    metadata={'availability_zone': self.second})
        made = self.server('--availability-zone', self.second)
        self.assertEqual('compute-3', made[base.HOST])
        self.assertEqual(self.second, made[ZONE])
        status, _out, err = self.cloud.run(
            'openstack', 'server', 'create', '--flavor', 'tiny', '--image',
            'empty', '--network', 'public', '--availability-zone', self.first,
            'server-%s' % self.first)
        self.assertEqual(1, status)
        self.assertIn('availability zone is not available', err)

    def test_a_zone_with_servers_stays(self):
        """A zone with servers cannot be renamed, and keeps its hosts."""
        aggregate = self.zone(self.first, 'compute-3')
        self.server('--availability-zone', self.first)
        self.refused(exceptions.BadRequest, aggregate, 'set_metadata',
                     metadata={'availability_zone': self.second})
        self.refused(exceptions.Conflict, aggregate, 'remove_host',
                     host='compute-3')
        self.assertEqual({'compute-3'}, self.placement_has(aggregate))

    def test_moves_stay_in_the_zone(self):
        """Cold and live migration and resize use the zone's other host."""
        self.zone(self.first, 'compute-1', 'compute-2')
        self.zone(self.second, 'compute-3', 'ironic-1')
        server = self.server('--availability-zone', self.first)
        host = OTHER[server[base.HOST]]
        for move, moved in (
                (['migrate'], 'migration'),
                (['resize', '--flavor', self.flavor()], 'resize')):
            # The client's --wait may check before nova has begun.
            self.run_client('openstack', 'server', *move, server['id'])
            self.wait_for(server, 'VERIFY_RESIZE', host)
            self.run_client('openstack', 'server', moved, 'confirm',
                            server['id'])
            self.stays(server, self.first, host)
            host = OTHER[host]
        self.run_client('openstack', 'server', 'migrate', '--live-migration',
                        server['id'])
        self.stays(server, self.first, host)

    def test_evacuated_within_the_zone(self):
        """A server is evacuated to the other host of its zone."""
        self.zone(self.first, 'compute-1', 'compute-2')
        server = self.server('--availability-zone', self.first)
        self.addCleanup(self._bring_back, server[base.HOST])
        self.cloud.process(server[base.HOST]).kill()
        self._force_down(server[base.HOST], True)
        self.run_client('openstack', 'server', 'evacuate', server['id'])
        # Nova leaves the evacuated server to its user to start.
        self.stays(server, self.first, OTHER[server[base.HOST]], 'SHUTOFF')

    def test_unshelved_in_its_zone(self):
        """An unshelved server gets a host of its zone, of all free hosts."""
        self.zone(self.first, 'compute-2')
        self.zone(self.second, 'compute-1', 'compute-3', 'ironic-1')
        server = self.server('--availability-zone', self.first)
        self.shelve(server)
        self.run_client('openstack', 'server', 'unshelve', server['id'])
        self.stays(server, self.first, 'compute-2')

    def test_unshelved_in_another_zone(self):
        """A shelved server can be unshelved into another zone."""
        self.zone(self.first, 'compute-1')
        self.zone(self.second, 'compute-2')
        server = self.server('--availability-zone', self.first)
        self.shelve(server)
        self.run_client('openstack', 'server', 'unshelve',
                        '--availability-zone', self.second, server['id'])
        self.stays(server, self.second, 'compute-2')

    def _service(self, host):
        service, = self.cloud.nova().get(
            '/os-services?host=%s' % host).json()['services']
        return service

    def _force_down(self, host, down):
        self.cloud.nova().put('/os-services/%s' % self._service(host)['id'],
                              json={'forced_down': down})

    def _bring_back(self, host):
        """Start nova-compute, which removes its evacuated servers."""
        self.cloud.start(host)

        def accepted():
            # Nova refuses until the evacuated servers are removed.
            with contextlib.suppress(exceptions.BadRequest):
                self._force_down(host, False)
                return True

        def reported():
            service = self._service(host)
            return (service['state'] == 'up'
                    and service['updated_at'] != before['updated_at'])

        self.wait_until(accepted, '%s is back' % host)
        # Its last report is from before it was killed.
        before = self._service(host)
        self.wait_until(reported, '%s is up' % host)
