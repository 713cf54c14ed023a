# SPDX-License-Identifier: Apache-2.0
"""Servers and volumes in the same zone, with a real cinder.

Nova and cinder compare the names of their zones. Nova enforces its own through
placement, so that a server follows its volume only on mirrored aggregates. The
agents are stopped: they would repair what a call missed.
"""

from keystoneauth1 import exceptions

from tests.cloud import config
from tests.cloud.integration import appended
from tests.cloud.integration import base

FIRST, SECOND = config.VOLUME_ZONES
HOSTS = {FIRST: 'compute-1', SECOND: 'compute-2'}
SAME_ZONE = '''
[cinder]
cross_az_attach = False
'''
# A key of nova's servers.
ZONE = 'OS-EXT-AZ:availability_zone'


class TestSameZone(base.TestCase):
    """``cross_az_attach = False``."""

    without_agents = True

    def setUp(self):
        super().setUp()
        for zone, host in HOSTS.items():
            self.add_host(self.aggregate(zone), host)
        self.useFixture(appended.Appended(self.cloud, {
            'nova-api-1': 'controller-1.conf',
            **{host: '%s.conf' % host for host in HOSTS.values()}},
            SAME_ZONE))
        self.volumes = self.cloud.rest('block-storage')

    def show(self, volume):
        return self.volumes.get('/volumes/%s' % volume).json()['volume']

    def wait_for_volume(self, volume, status):
        def shown():
            found = self.show(volume)['status']
            self.assertNotEqual('error', found)
            return found == status

        self.wait_until(shown, 'volume %s is %s' % (volume, status))

    def volume(self, zone):
        """Create a bootable volume in a zone; return its ID."""
        made = self.volumes.post('/volumes', json={'volume': {
            'size': 1, 'availability_zone': zone}}).json()['volume']['id']
        self.addCleanup(self.volumes.delete, '/volumes/%s' % made)
        self.wait_for_volume(made, 'available')
        self.volumes.post('/volumes/%s/action' % made, json={
            'os-set_bootable': {'bootable': True}})
        return made

    def attach(self, server, volume):
        """Attach a volume; return the result of nova-compute's attempt."""
        url = '/servers/%s' % server['id']
        self.cloud.nova().post(url + '/os-volume_attachments', json={
            'volumeAttachment': {'volumeId': volume}})
        actions = self.cloud.nova().get(
            url + '/os-instance-actions').json()['instanceActions']
        url += '/os-instance-actions/%s' % actions[0]['request_id']
        results = []

        def done():
            events = self.cloud.nova().get(url).json()['instanceAction'][
                'events']
            results[:] = [each['result'] for each in events
                          if each['event'] == 'compute_attach_volume']
            return results and results[0]

        self.wait_until(done, 'nova-compute has tried to attach %s' % volume)
        return results[0]

    def boot_from(self, volume, **values):
        """Create a server with a volume as its root disk."""
        return self.boot(imageRef='', block_device_mapping_v2=[
            {'boot_index': 0, 'uuid': volume, 'source_type': 'volume',
             'destination_type': 'volume'}], **values)

    def refused(self, kind, call, *arguments, **values):
        """Check that nova refuses a request because of the zones."""
        error = self.assertRaises(kind, call, *arguments, **values)
        self.assertIn('availability zone', error.response.text)

    def test_server_and_its_volumes(self):
        """They are in the same zone, whichever is created first."""
        self.boot_in_the_zone_of_a_volume()
        self.attach_in_the_zone_of_a_server()

    def attach_in_the_zone_of_a_server(self):
        """A server in a zone has volumes of this zone only.

        Those that nova creates for it are in its zone. It cannot be unshelved
        in another zone.
        """
        other, same = self.volume(FIRST), self.volume(SECOND)
        server = self.boot(
            zone=SECOND, block_device_mapping_v2=[
                {'boot_index': 0, 'uuid': self.image(),
                 'source_type': 'image', 'destination_type': 'local'},
                {'boot_index': -1, 'source_type': 'blank', 'volume_size': 1,
                 'destination_type': 'volume',
                 'delete_on_termination': True}])
        self.assertEqual(HOSTS[SECOND], server[base.HOST], server)
        made, = server['os-extended-volumes:volumes_attached']
        self.assertEqual(SECOND, self.show(made['id'])['availability_zone'])
        # Nova's API no longer checks this; nova-compute does.
        self.assertEqual('Error', self.attach(server, other))
        self.assertEqual('available', self.show(other)['status'])
        self.assertEqual('Success', self.attach(server, same))

        url = '/servers/%s/action' % server['id']
        self.cloud.nova().post(url, json={'shelve': None})
        self.wait_for(server, 'SHELVED_OFFLOADED', None)
        self.refused(exceptions.Conflict, self.cloud.nova().post, url, json={
            'unshelve': {'availability_zone': FIRST}})
        self.cloud.nova().post(url, json={'unshelve': None})
        found = self.wait_for(server, 'ACTIVE', HOSTS[SECOND])
        self.assertEqual(SECOND, found[ZONE])

    def boot_in_the_zone_of_a_volume(self):
        """A server without a requested zone is created in its volume's."""
        for zone in (SECOND, FIRST):
            server = self.boot_from(self.volume(zone))
            self.assertEqual((HOSTS[zone], zone),
                             (server[base.HOST], server[ZONE]), server)
            self.assertEqual(zone, server['pinned_availability_zone'])
        self.refused(exceptions.BadRequest, self.boot_from,
                     self.volume(FIRST), zone=SECOND)
