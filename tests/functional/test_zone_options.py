# SPDX-License-Identifier: Apache-2.0
"""Nova's options for availability zones, and moves in and out of a zone.

What the page of availability zones says about nova, with the newest nova.
"""

from nova.tests import fixtures as nova_fixtures
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

    def act(self, server, **action):
        self.admin_api.post_server_action(server['id'], action)

    def migrate(self, server):
        self.act(server, migrate=None)
        self.become(server, status='VERIFY_RESIZE')
        return self.admin_api.get_server(server['id'])[HOST]

    def live_migrate(self, server, host, **options):
        self.act(server, **{'os-migrateLive': {
            'host': host, 'block_migration': 'auto', **options}})

    def assert_refused(self, status, call, *arguments, **wanted):
        """Check nova's answer; return its text."""
        error = self.assertRaises(
            client.OpenStackApiException, call, *arguments, **wanted)
        self.assertEqual(status, error.response.status_code)
        return str(error)


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
        self.assert_refused(400, self.boot, flavor_id=self.wanted)


class TestRenamedZone(ZonesTest):

    def test_new_servers(self):
        """The zone takes them; its old name no longer exists."""
        number = self.aggregate('old', ['outside'], availability_zone='old')
        self.admin_api.post_aggregate_action(number, {'set_metadata': {
            'metadata': {'availability_zone': 'new'}}})
        self.assertEqual('outside', self.created(az='new')[HOST])
        self.assertIn('availability zone is not available',
                      self.assert_refused(400, self.boot, az='old',
                                          flavor_id=self.wanted))


class TestMoves(ZonesTest):

    def test_moves_stay_in_the_zone(self):
        """Cold and live migration and resize use the zone's other host."""
        server = self.created(az='east')
        larger = self._create_flavor(
            name='larger', memory_mb=96, vcpu=1, disk=1, ephemeral=0)
        for move, host in (({'migrate': None}, 'east-too'),
                           ({'resize': {'flavorRef': larger}}, 'east')):
            self.act(server, **move)
            self.become(server, status='VERIFY_RESIZE', **{HOST: host})
            self.act(server, confirmResize=None)
            self.become(server, status='ACTIVE')
        self.live_migrate(server, None)
        self.become(server, status='ACTIVE', **{HOST: 'east-too'})

    def test_evacuated_within_the_zone(self):
        """A server is evacuated to the other host of its zone."""
        server = self.created(az='east')
        self.computes['east'].stop()
        service, = self.admin_api.get_services(
            binary='nova-compute', host='east')
        self.admin_api.put_service_force_down(service['id'], True)
        self.act(server, evacuate={})
        self.become(server, **{HOST: 'east-too', ZONE: 'east'})

    def test_unshelved_in_another_zone(self):
        """An unshelved server gets a host of its zone, or of a new one."""
        server = self.created(az='east')
        for target, zone in ((None, 'east'),
                             ({'availability_zone': 'west'}, 'west')):
            self.act(server, shelve={})
            self.become(server, status='SHELVED_OFFLOADED')
            self.act(server, unshelve=target)
            self.become(server, status='ACTIVE', **{HOST: zone})
            self.assertEqual(zone, self.admin_api.get_server(
                server['id'])[PINNED])

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
        self.assert_refused(409, self.add, number, server[HOST])


class TestReservedNames(ZonesTest):

    def test_zone_with_a_colon(self):
        """Nova takes what follows for a host, and finds none."""
        self.aggregate('odd', ['outside'], availability_zone='a:b')
        server = self.boot(flavor_id=self.wanted, az='a:b')
        self.assertEqual('ERROR', server['status'])


class TestVolumes(ZonesTest):
    """``cross_az_attach = False``."""

    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.CinderFixture(self, az='east'))
        self.flags(cross_az_attach=False, group='cinder')

    def create(self, **wanted):
        """Create a server with a volume of the zone ``east``."""
        server = self._build_server(image_uuid='', flavor_id=self.wanted,
                                    networks='none', **wanted)
        server['block_device_mapping_v2'] = [{
            'boot_index': 0, 'source_type': 'volume',
            'destination_type': 'volume',
            'uuid': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}]
        return self.admin_api.post_server({'server': server})

    def test_server_follows_its_volume(self):
        """It is created in the zone of its volume, and stays there."""
        server = self.create()
        self.become(server, status='ACTIVE', **{HOST: 'east', ZONE: 'east'})
        self.assertEqual('east-too', self.migrate(server))

    def test_volume_of_another_zone(self):
        """Nova refuses it."""
        self.assertIn('availability zone',
                      self.assert_refused(400, self.create, az='west'))
