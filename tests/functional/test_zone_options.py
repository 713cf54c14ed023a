# SPDX-License-Identifier: Apache-2.0
"""Nova's options for availability zones, and moves out of a zone.

What the page of availability zones says about nova, with the newest nova.
"""

from nova.tests.functional.api import client

from tests.scheduling import cloud

HOST = 'OS-EXT-SRV-ATTR:host'
ZONE = 'OS-EXT-AZ:availability_zone'
PINNED = 'pinned_availability_zone'


class ZonesTest(cloud.CloudTest):

    hosts = ('outside', 'west', 'east', 'east-too')

    def setUp(self):
        super().setUp()
        self.admin_api.microversion = '2.96'
        self.wanted = self.flavor()
        self.aggregate('east', ['east', 'east-too'], availability_zone='east')
        self.aggregate('west', ['west'], availability_zone='west')

    def created(self, **wanted):
        server = self.boot(flavor_id=self.wanted, **wanted)
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        return server

    def migrate(self, server):
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self.become(server, status='VERIFY_RESIZE')
        return self.admin_api.get_server(server['id'])[HOST]

    def live_migrate(self, server, host, **options):
        self.admin_api.post_server_action(server['id'], {
            'os-migrateLive': {'host': host, 'block_migration': 'auto',
                               **options}})


class TestDefaultScheduleZone(ZonesTest):

    def test_request_without_a_zone(self):
        """It gets the zone, and the server stays in it."""
        self.assertEqual('outside', self.created()[HOST])
        self.flags(default_schedule_zone='east')
        server = self.created()
        self.assertEqual(('east', 'east', 'east'), (
            server[HOST], server[ZONE], server[PINNED]))
        self.assertEqual('east-too', self.migrate(server))

    def test_request_with_a_zone(self):
        """The option is not used."""
        self.flags(default_schedule_zone='east')
        server = self.created(az='west')
        self.assertEqual(('west', 'west'), (server[HOST], server[PINNED]))

    def test_zone_that_does_not_exist(self):
        """Each request without a zone fails, as the status check says."""
        self.flags(default_schedule_zone='nowhere')
        error = self.assertRaises(client.OpenStackApiException, self.boot,
                                  flavor_id=self.wanted)
        self.assertEqual(400, error.response.status_code)


class TestMoves(ZonesTest):

    def test_server_without_a_zone(self):
        """It is pinned to none, and may move to another zone."""
        server = self.created()
        self.assertEqual(('outside', None), (server[HOST], server[PINNED]))
        self.assertEqual('west', self.migrate(server))

    def test_host_of_another_zone(self):
        """Nova refuses it for a server that is pinned to a zone."""
        server = self.created(az='east')
        self.live_migrate(server, 'west')
        self.become(server, status='ACTIVE')
        self.assertEqual('east', self.admin_api.get_server(
            server['id'])[HOST])

    def test_forced_move(self):
        """Before microversion 2.68 an administrator could force it."""
        server = self.created(az='east')
        self.admin_api.microversion = '2.67'
        self.live_migrate(server, 'west', force=True)
        self.become(server, status='ACTIVE', **{HOST: 'west'})
        self.admin_api.microversion = '2.96'
        moved = self.admin_api.get_server(server['id'])
        self.assertEqual(('west', 'east'), (moved[ZONE], moved[PINNED]))

    def test_host_of_a_zone_with_servers(self):
        """Nova's API refuses changes of the zone of their host."""
        server = self.created(az='west')
        number = self.aggregate('more', availability_zone='more')
        for change in (lambda: self.add(number, 'west'),
                       lambda: self.add(number, server[HOST])):
            error = self.assertRaises(client.OpenStackApiException, change)
            self.assertEqual(409, error.response.status_code)


class TestReservedNames(ZonesTest):

    def test_zone_with_a_colon(self):
        """Nova takes what follows for a host, and finds none."""
        self.aggregate('odd', ['outside'], availability_zone='a:b')
        server = self.boot(flavor_id=self.wanted, az='a:b')
        self.assertEqual('ERROR', server['status'])
